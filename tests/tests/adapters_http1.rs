//! The tower layer behind a real HTTP/1 server, with clients that see what is on the wire.

#![allow(clippy::unwrap_used)] // helpers of tests are tests

mod adapters_support;

use std::{convert::Infallible, net::SocketAddr, sync::Arc, time::Duration};

use adapters_support::{Counter, Leader, promptly, standby, until};
use axum::{Extension, Router, body::Body, http::StatusCode, routing::get};
use bytes::Bytes;
use futures::{StreamExt, channel::mpsc, stream};
use http::{Request, Response};
use http_body_util::{BodyExt, Empty};
use hyper::body::Incoming;
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::TokioExecutor,
};
use tenure::{Leadership, Term, TermEnd};
use tenure_http::REASON;
use tenure_tower::LeaderOnlyLayer;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    sync::Semaphore,
};
use tower::{Layer, ServiceExt};

/// A replica that leads and serves on loopback; everything of it goes with the test's runtime.
struct Replica {
    address: SocketAddr,
    leader: Leader,
    /// Lets handlers of `/gated` go on.
    gate: Arc<Semaphore>,
    /// How many of them are waiting.
    waiting: Counter,
    /// What `/lines` answers, line by line.
    lines: mpsc::UnboundedSender<&'static str>,
    /// How many blocks `/flood` has produced.
    flooded: Counter,
}

impl Replica {
    async fn leading(drain_timeout: Duration) -> Self {
        let leader = Leader::with(drain_timeout).await;
        let gate = Arc::new(Semaphore::new(0));
        let (waiting, flooded) = (Counter::default(), Counter::default());
        let (lines, receiver) = mpsc::unbounded();
        let app = app(gate.clone(), waiting.clone(), receiver, flooded.clone())
            .route_layer(LeaderOnlyLayer::new(leader.leadership.clone()));
        let address = adapters_support::serve(app).await;
        Self { address, leader, gate, waiting, lines, flooded }
    }

    async fn get(&self, path: &str) -> hyper::Result<Response<Incoming>> {
        let request = Request::builder().uri(path).header("host", "replica");
        let mut client = adapters_support::http1(self.address).await;
        client.send_request(request.body(Empty::<Bytes>::new()).unwrap()).await
    }

    /// Asks, and leaves the answer in the socket.
    async fn ask(&self, path: &str) -> TcpStream {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        stream
            .write_all(format!("GET {path} HTTP/1.1\r\nhost: replica\r\n\r\n").as_bytes())
            .await
            .unwrap();
        stream
    }
}

fn app(
    gate: Arc<Semaphore>,
    waiting: Counter,
    lines: mpsc::UnboundedReceiver<&'static str>,
    flooded: Counter,
) -> Router {
    let gated = move |Extension(term): Extension<Term>| async move {
        let _waiting = waiting.enter();
        gate.acquire().await.unwrap().forget();
        term.fence().to_string()
    };
    let lines = Arc::new(std::sync::Mutex::new(Some(lines)));
    let lines = move || async move {
        let lines = lines.lock().unwrap().take().expect("asked for once");
        Body::from_stream(lines.map(Ok::<_, Infallible>))
    };
    let flood = move || async move {
        Body::from_stream(stream::repeat_with(move || {
            flooded.add(1);
            Ok::<_, Infallible>(Bytes::from_static(&[b'x'; 64 * 1024]))
        }))
    };
    Router::new()
        .route("/gated", get(gated))
        .route("/lines", get(lines))
        .route("/flood", get(flood))
}

#[tokio::test]
async fn a_body_that_was_cut_is_no_clean_end() {
    let mut replica = Replica::leading(Duration::from_secs(10)).await;
    replica.lines.unbounded_send("one\n").unwrap();
    let mut body = replica.get("/lines").await.unwrap().into_body();
    assert_eq!(body.frame().await.unwrap().unwrap().into_data().unwrap(), "one\n");

    replica.leader.end_the_term().await;
    // Whatever is sent from here on is nobody's.
    let _ = replica.lines.unbounded_send("two\n");
    let error = body.frame().await.expect("the body ended as if it were whole").unwrap_err();
    let source = std::error::Error::source(&error).and_then(|e| e.downcast_ref::<std::io::Error>());
    assert_eq!(
        source.map(std::io::Error::kind),
        Some(std::io::ErrorKind::UnexpectedEof),
        "{error:?}"
    );
}

#[tokio::test]
async fn the_last_chunk_of_a_body_that_was_cut_is_never_sent() {
    let mut replica = Replica::leading(Duration::from_secs(10)).await;
    replica.lines.unbounded_send("one\n").unwrap();
    let mut stream = replica.ask("/lines").await;
    let mut received = Vec::new();
    while !received.ends_with(b"4\r\none\n\r\n") {
        assert_ne!(stream.read_buf(&mut received).await.unwrap(), 0, "closed too early");
    }
    replica.leader.end_the_term().await;
    // However the connection goes, closed or reset.
    let _ = stream.read_to_end(&mut received).await;
    assert!(received.ends_with(b"4\r\none\n\r\n"), "{}", String::from_utf8_lossy(&received));
}

#[tokio::test]
async fn a_hand_over_lets_requests_finish_and_admits_no_new_ones() {
    let replica = Replica::leading(Duration::from_secs(60)).await;
    let other_requests = async {
        until(|| replica.waiting.value() == 1).await;
        let resigned = replica.leader.leadership.resign();
        replica.leader.term.cancelled().await;

        let refused = replica.get("/gated").await.unwrap();
        assert_eq!(refused.headers()[REASON], "refused");
        assert_eq!(replica.leader.term.end(), None, "the hand-over did not wait");
        replica.gate.add_permits(1);
        promptly(resigned).await;
    };
    let (served, ()) = tokio::join!(replica.get("/gated"), other_requests);
    let served = served.unwrap();
    assert_eq!(served.status(), StatusCode::OK);
    let body = served.into_body().collect().await.unwrap().to_bytes();
    assert_eq!(body, replica.leader.term.fence().to_string());
    assert_eq!(replica.leader.term.ended().await, TermEnd::Resigned);
}

#[tokio::test]
async fn a_handler_that_outlives_the_drain_is_cut() {
    let replica = Replica::leading(Duration::from_millis(100)).await;
    let hand_over = async {
        until(|| replica.waiting.value() == 1).await;
        replica.leader.leadership.resign().await;
    };
    let (cut, ()) = tokio::join!(replica.get("/gated"), hand_over);
    let cut = cut.unwrap();
    assert_eq!(cut.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(cut.headers()[REASON], "cut");
    assert_eq!(replica.waiting.value(), 0, "the handler outlives its term");
}

#[tokio::test]
async fn a_client_that_goes_away_takes_its_request_out_of_flight() {
    let replica = Replica::leading(Duration::from_secs(60)).await;
    let stream = replica.ask("/gated").await;
    until(|| replica.waiting.value() == 1).await;
    let resigned = replica.leader.leadership.resign();
    replica.leader.term.cancelled().await;
    assert_eq!(replica.leader.term.end(), None, "the hand-over did not wait");

    drop(stream);
    promptly(resigned).await;
    assert_eq!(replica.leader.term.ended().await, TermEnd::Resigned);
}

#[tokio::test]
async fn a_client_that_never_reads_does_not_keep_the_replica_from_leading_again() {
    let replica = Replica::leading(Duration::from_millis(100)).await;
    let mut stream = replica.ask("/flood").await;
    // Until no more fits into the sockets: the server then waits for the client and nothing else.
    let mut before = 0;
    loop {
        tokio::time::sleep(Duration::from_millis(50)).await;
        let now = replica.flooded.value();
        if now > 0 && now == before {
            break;
        }
        before = now;
    }

    replica.leader.leadership.resign().await;
    let next = replica.leader.leadership.leading().await.unwrap();
    assert!(next.fence() > replica.leader.term.fence());

    // What had been produced before arrives, nothing more, and no end of the body.
    let mut received = Vec::new();
    let _ = stream.read_to_end(&mut received).await;
    assert_eq!(replica.flooded.value(), before, "the body was polled after the end");
    assert!(!received.ends_with(b"\r\n0\r\n\r\n"));
}

/// A client's body has no `Default`, which some layers ask for.
#[tokio::test]
async fn around_a_client_requests_are_sent_only_by_the_leader() {
    let replica = Replica::leading(Duration::from_secs(10)).await;
    let client: Client<HttpConnector, Empty<Bytes>> =
        Client::builder(TokioExecutor::new()).build_http();
    let ask = |leadership: Leadership| {
        let uri = format!("http://{}/no-such-path", replica.address);
        let request = Request::builder().uri(uri).body(Empty::new()).unwrap();
        LeaderOnlyLayer::new(leadership).layer(client.clone()).oneshot(request)
    };
    let sent = ask(replica.leader.leadership.clone()).await.unwrap();
    assert_eq!(sent.status(), StatusCode::NOT_FOUND);
    let refused = ask(standby()).await.unwrap();
    assert_eq!(refused.headers()[REASON], "refused");
}
