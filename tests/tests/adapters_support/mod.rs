//! What the tests of adapters have in common.

// Each test program uses a part of it, and all of it is for tests.
#![allow(dead_code, clippy::unwrap_used)]

use std::{
    future::pending,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use axum::Router;
use bytes::Bytes;
use http_body_util::{BodyExt, Empty};
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tenure::{Elector, Leadership, MemoryStore, Term};
use tokio::{
    net::{TcpListener, TcpStream},
    task::JoinHandle,
};

/// A candidate that leads until it is told otherwise.
pub(crate) struct Leader {
    pub(crate) store: MemoryStore,
    pub(crate) leadership: Leadership,
    pub(crate) term: Term,
    running: JoinHandle<()>,
}

impl Leader {
    /// Handing over, it waits for as long as `drain_timeout`. Its lease is short enough to lead again within a test.
    pub(crate) async fn with(drain_timeout: Duration) -> Self {
        let store = MemoryStore::new();
        let elector = Elector::builder("adapters", store.clone())
            .lease_duration(Duration::from_secs(3))
            .drain_timeout(drain_timeout)
            .build()
            .unwrap();
        let leadership = elector.leadership();
        let running = tokio::spawn(async move {
            let _ = elector.run(pending::<()>()).await;
        });
        let term = leadership.leading().await.unwrap();
        Self { store, leadership, term, running }
    }

    /// With a minute of patience, which no test has.
    pub(crate) async fn patient() -> Self {
        Self::with(Duration::from_secs(60)).await
    }

    /// Ends the term at once: what is in flight is not waited for.
    pub(crate) async fn end_the_term(&mut self) {
        self.running.abort();
        let _ = (&mut self.running).await;
    }
}

/// A candidate that never runs, and so never leads.
pub(crate) fn standby() -> Leadership {
    Elector::builder("adapters", MemoryStore::new()).build().unwrap().leadership()
}

/// A free port on loopback.
pub(crate) async fn listen() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    (listener, address)
}

/// Serves until the test's runtime is gone.
pub(crate) async fn serve(app: Router) -> SocketAddr {
    let (listener, address) = listen().await;
    tokio::spawn(async move { axum::serve(listener, app).await });
    address
}

/// A client over a connection of its own.
pub(crate) async fn http1(address: SocketAddr) -> http1::SendRequest<Empty<Bytes>> {
    let stream = TcpStream::connect(address).await.unwrap();
    let (client, connection) = http1::handshake(TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    client
}

/// A client over a connection of its own, without TLS.
pub(crate) async fn http2(address: SocketAddr) -> http2::SendRequest<Empty<Bytes>> {
    let stream = TcpStream::connect(address).await.unwrap();
    let io = TokioIo::new(stream);
    let (client, connection) = http2::handshake(TokioExecutor::new(), io).await.unwrap();
    tokio::spawn(connection);
    client
}

/// The whole body as text.
pub(crate) async fn text<B>(body: B) -> String
where
    B: http_body::Body,
    B::Error: std::fmt::Debug,
{
    let bytes = body.collect().await.unwrap().to_bytes();
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// For hand-overs that have nothing to wait for any more: long before they would give up waiting.
pub(crate) async fn promptly<F: Future>(work: F) -> F::Output {
    tokio::select! {
        done = work => done,
        () = tokio::time::sleep(Duration::from_secs(30)) => panic!("still waiting"),
    }
}

/// Waits until `condition` holds.
pub(crate) async fn until(mut condition: impl FnMut() -> bool) {
    let holds = async {
        while !condition() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    promptly(holds).await;
}

/// How many are in there.
#[derive(Clone, Default)]
pub(crate) struct Counter(Arc<AtomicU64>);

/// One more while it lives.
pub(crate) struct Counted(Counter);

impl Counter {
    pub(crate) fn enter(&self) -> Counted {
        self.add(1);
        Counted(self.clone())
    }

    pub(crate) fn add(&self, more: u64) {
        self.0.fetch_add(more, Ordering::Relaxed);
    }

    pub(crate) fn value(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Relaxed);
    }
}
