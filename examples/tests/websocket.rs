//! The `websocket` example, run as a program.
#![cfg(unix)]
#![allow(clippy::unwrap_used)] // helpers of tests are tests

mod support;

use std::time::Duration;

use futures::{SinkExt, StreamExt};
use http::StatusCode;
use support::Replica;
use tempfile::TempDir;
use tokio::net::TcpStream;
use tokio_tungstenite::{
    MaybeTlsStream, WebSocketStream, connect_async,
    tungstenite::{Error, Message, protocol::frame::coding::CloseCode},
};

type Socket = WebSocketStream<MaybeTlsStream<TcpStream>>;

fn start(directory: &TempDir) -> Replica {
    let store = format!("sqlite:{}", directory.path().join("example.db").display());
    Replica::start_as(&["websocket"], &["--store", &store])
}

async fn connect(replica: &Replica) -> Result<Socket, Error> {
    let (socket, _response) = connect_async(format!("ws://{}/ws", replica.address())).await?;
    Ok(socket)
}

async fn next(socket: &mut Socket) -> Option<Result<Message, Error>> {
    tokio::select! {
        message = socket.next() => message,
        () = tokio::time::sleep(Duration::from_secs(30)) => panic!("nothing is heard"),
    }
}

#[tokio::test]
async fn sessions_are_closed_with_a_reason_when_the_term_ends() {
    let directory = TempDir::new().unwrap();
    let leader = start(&directory);
    leader.is_leader();
    let standby = start(&directory);
    let Err(Error::Http(refused)) = connect(&standby).await else {
        panic!("a standby opened a session")
    };
    assert_eq!(refused.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(refused.headers()["tenure-reason"], "refused");

    let mut talking = connect(&leader).await.unwrap();
    let mut silent = connect(&leader).await.unwrap();
    talking.send(Message::text("hello")).await.unwrap();
    let answer = next(&mut talking).await.unwrap().unwrap();
    assert!(answer.to_text().unwrap().starts_with("hello (fence "), "{answer:?}");

    leader.terminate();
    for socket in [&mut talking, &mut silent] {
        let last = next(socket).await.unwrap().unwrap();
        let Message::Close(Some(frame)) = last else { panic!("{last:?} is no goodbye") };
        assert_eq!(frame.code, CloseCode::Restart);
        assert!(frame.reason.contains("does not lead any more"), "{}", frame.reason);
        // Confirms it.
        assert!(next(socket).await.is_none());
    }
    assert_eq!(leader.exited().code(), Some(0));

    standby.is_leader();
    assert!(connect(&standby).await.is_ok());
}

#[tokio::test]
async fn a_client_that_hears_nothing_does_not_keep_the_program_from_stopping() {
    let directory = TempDir::new().unwrap();
    let replica = start(&directory);
    replica.is_leader();
    // Never read from, so that nothing is confirmed.
    let _deaf = connect(&replica).await.unwrap();
    replica.terminate();
    assert_eq!(replica.exited().code(), Some(0));
}
