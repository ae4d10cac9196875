//! The tower layer behind a real HTTP/1 server, with clients that see what is on the wire.

#![allow(clippy::unwrap_used)] // helpers of tests are tests

use std::{
    convert::Infallible,
    future::pending,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use axum::{Extension, Router, body::Body, http::StatusCode, routing::get};
use bytes::Bytes;
use futures::{StreamExt, channel::mpsc, stream};
use http::{Request, Response};
use http_body_util::{BodyExt, Empty};
use hyper::{body::Incoming, client::conn::http1};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::{TokioExecutor, TokioIo},
};
use tenure::{Elector, Leadership, MemoryStore, Term, TermEnd};
use tenure_http::REASON;
use tenure_tower::LeaderOnlyLayer;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::Semaphore,
    task::JoinHandle,
};
use tower::{Layer, ServiceExt};

/// A replica that leads and serves on loopback; everything of it goes with the test's runtime.
struct Replica {
    address: SocketAddr,
    leadership: Leadership,
    term: Term,
    running: JoinHandle<()>,
    /// Lets handlers of `/gated` go on.
    gate: Arc<Semaphore>,
    /// How many of them are waiting.
    waiting: Arc<AtomicU64>,
    /// What `/lines` answers, line by line.
    lines: mpsc::UnboundedSender<&'static str>,
    /// How many blocks `/flood` has produced.
    flooded: Arc<AtomicU64>,
}

impl Replica {
    async fn leading(drain_timeout: Duration) -> Self {
        let elector = Elector::builder("http", MemoryStore::new())
            .lease_duration(Duration::from_secs(3))
            .drain_timeout(drain_timeout)
            .build()
            .unwrap();
        let leadership = elector.leadership();
        let running = tokio::spawn(async move {
            let _ = elector.run(pending::<()>()).await;
        });
        let term = leadership.leading().await.unwrap();

        let gate = Arc::new(Semaphore::new(0));
        let waiting = Arc::new(AtomicU64::new(0));
        let flooded = Arc::new(AtomicU64::new(0));
        let (lines, receiver) = mpsc::unbounded();
        let app = app(gate.clone(), waiting.clone(), receiver, flooded.clone())
            .route_layer(LeaderOnlyLayer::new(leadership.clone()));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move { axum::serve(listener, app).await });
        Self { address, leadership, term, running, gate, waiting, lines, flooded }
    }

    /// Ends the term at once: what is in flight is not waited for.
    async fn end_the_term(&mut self) {
        self.running.abort();
        let _ = (&mut self.running).await;
    }

    async fn get(&self, path: &str) -> hyper::Result<Response<Incoming>> {
        let stream = TcpStream::connect(self.address).await.unwrap();
        let (mut client, connection) = http1::handshake(TokioIo::new(stream)).await?;
        tokio::spawn(connection);
        let request = Request::builder().uri(path).header("host", "replica");
        client.send_request(request.body(Empty::<Bytes>::new()).unwrap()).await
    }

    fn waiting(&self) -> u64 {
        self.waiting.load(Ordering::Relaxed)
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
    waiting: Arc<AtomicU64>,
    lines: mpsc::UnboundedReceiver<&'static str>,
    flooded: Arc<AtomicU64>,
) -> Router {
    let gated = move |Extension(term): Extension<Term>| async move {
        let _waiting = Counted::up(waiting);
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
            flooded.fetch_add(1, Ordering::Relaxed);
            Ok::<_, Infallible>(Bytes::from_static(&[b'x'; 64 * 1024]))
        }))
    };
    Router::new()
        .route("/gated", get(gated))
        .route("/lines", get(lines))
        .route("/flood", get(flood))
}

/// One more while it lives.
struct Counted(Arc<AtomicU64>);

impl Counted {
    fn up(counter: Arc<AtomicU64>) -> Self {
        counter.fetch_add(1, Ordering::Relaxed);
        Self(counter)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// For hand-overs that have nothing to wait for any more: long before they would give up waiting.
async fn promptly<F: Future>(work: F) -> F::Output {
    tokio::select! {
        done = work => done,
        () = tokio::time::sleep(Duration::from_secs(30)) => panic!("still waiting"),
    }
}

/// Waits until `condition` holds.
async fn until(mut condition: impl FnMut() -> bool) {
    while !condition() {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

#[tokio::test]
async fn a_body_that_was_cut_is_no_clean_end() {
    let mut replica = Replica::leading(Duration::from_secs(10)).await;
    replica.lines.unbounded_send("one\n").unwrap();
    let mut body = replica.get("/lines").await.unwrap().into_body();
    assert_eq!(body.frame().await.unwrap().unwrap().into_data().unwrap(), "one\n");

    replica.end_the_term().await;
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
    replica.end_the_term().await;
    // However the connection goes, closed or reset.
    let _ = stream.read_to_end(&mut received).await;
    assert!(received.ends_with(b"4\r\none\n\r\n"), "{}", String::from_utf8_lossy(&received));
}

#[tokio::test]
async fn a_hand_over_lets_requests_finish_and_admits_no_new_ones() {
    let replica = Replica::leading(Duration::from_secs(60)).await;
    let other_requests = async {
        until(|| replica.waiting() == 1).await;
        let resigned = replica.leadership.resign();
        replica.term.cancelled().await;

        let refused = replica.get("/gated").await.unwrap();
        assert_eq!(refused.headers()[REASON], "refused");
        assert_eq!(replica.term.end(), None, "the hand-over did not wait");
        replica.gate.add_permits(1);
        promptly(resigned).await;
    };
    let (served, ()) = tokio::join!(replica.get("/gated"), other_requests);
    let served = served.unwrap();
    assert_eq!(served.status(), StatusCode::OK);
    let body = served.into_body().collect().await.unwrap().to_bytes();
    assert_eq!(body, replica.term.fence().to_string());
    assert_eq!(replica.term.ended().await, TermEnd::Resigned);
}

#[tokio::test]
async fn a_handler_that_outlives_the_drain_is_cut() {
    let replica = Replica::leading(Duration::from_millis(100)).await;
    let hand_over = async {
        until(|| replica.waiting() == 1).await;
        replica.leadership.resign().await;
    };
    let (cut, ()) = tokio::join!(replica.get("/gated"), hand_over);
    let cut = cut.unwrap();
    assert_eq!(cut.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(cut.headers()[REASON], "cut");
    assert_eq!(replica.waiting(), 0, "the handler outlives its term");
}

#[tokio::test]
async fn a_client_that_goes_away_takes_its_request_out_of_flight() {
    let replica = Replica::leading(Duration::from_secs(60)).await;
    let stream = replica.ask("/gated").await;
    until(|| replica.waiting() == 1).await;
    let resigned = replica.leadership.resign();
    replica.term.cancelled().await;
    assert_eq!(replica.term.end(), None, "the hand-over did not wait");

    drop(stream);
    promptly(resigned).await;
    assert_eq!(replica.term.ended().await, TermEnd::Resigned);
}

#[tokio::test]
async fn a_client_that_never_reads_does_not_keep_the_replica_from_leading_again() {
    let replica = Replica::leading(Duration::from_millis(100)).await;
    let mut stream = replica.ask("/flood").await;
    // Until no more fits into the sockets: the server then waits for the client and nothing else.
    let mut before = 0;
    loop {
        tokio::time::sleep(Duration::from_millis(50)).await;
        let now = replica.flooded.load(Ordering::Relaxed);
        if now > 0 && now == before {
            break;
        }
        before = now;
    }

    replica.leadership.resign().await;
    let next = replica.leadership.leading().await.unwrap();
    assert!(next.fence() > replica.term.fence());

    // What had been produced before arrives, nothing more, and no end of the body.
    let mut received = Vec::new();
    let _ = stream.read_to_end(&mut received).await;
    assert_eq!(
        replica.flooded.load(Ordering::Relaxed),
        before,
        "the body was polled after the end"
    );
    assert!(!received.ends_with(b"\r\n0\r\n\r\n"));
}

/// A client's body has no `Default`, which some layers ask for.
#[tokio::test]
async fn around_a_client_requests_are_sent_only_by_the_leader() {
    let replica = Replica::leading(Duration::from_secs(10)).await;
    let standby = Elector::builder("client", MemoryStore::new()).build().unwrap();
    let client: Client<HttpConnector, Empty<Bytes>> =
        Client::builder(TokioExecutor::new()).build_http();
    let ask = |leadership: Leadership| {
        let uri = format!("http://{}/no-such-path", replica.address);
        let request = Request::builder().uri(uri).body(Empty::new()).unwrap();
        LeaderOnlyLayer::new(leadership).layer(client.clone()).oneshot(request)
    };
    let sent = ask(replica.leadership.clone()).await.unwrap();
    assert_eq!(sent.status(), StatusCode::NOT_FOUND);
    let refused = ask(standby.leadership()).await.unwrap();
    assert_eq!(refused.headers()[REASON], "refused");
}
