//! A replica whose term begins and ends when a test says so.

use std::{
    convert::Infallible,
    future::{Future, pending},
    time::Duration,
};

use bytes::Bytes;
use futures::channel::mpsc;
use http::{Request, Version, header::CONTENT_TYPE};
use http_body::Frame;
use http_body_util::StreamBody;
use tenure::{Candidacy, Elector, Leadership, MemoryStore, Term};
use tokio::task::JoinHandle;

/// An elector on a store of its own.
pub(crate) struct Replica {
    pub(crate) leadership: Leadership,
    running: JoinHandle<()>,
}

impl Replica {
    /// One that does not run yet.
    pub(crate) fn elector() -> Elector {
        Elector::builder("billing", MemoryStore::new()).build().unwrap()
    }

    /// One that leads. Handing over, it waits a minute for what is in flight.
    pub(crate) async fn leading() -> (Self, Term) {
        Self::leading_with(Duration::from_secs(60)).await
    }

    /// The same with another patience. Its lease is short enough to lead again within a test.
    pub(crate) async fn leading_with(drain_timeout: Duration) -> (Self, Term) {
        let elector = Elector::builder("billing", MemoryStore::new())
            .lease_duration(Duration::from_secs(3))
            .drain_timeout(drain_timeout)
            .build()
            .unwrap();
        let leadership = elector.leadership();
        let running = tokio::spawn(async move {
            let _stopped = elector.run(pending::<()>()).await;
        });
        let term = leadership.leading().await.unwrap();
        (Self { leadership, running }, term)
    }

    /// Ends the term at once: what is in flight is not waited for.
    pub(crate) async fn end_the_term(self) {
        self.running.abort();
        let _ = self.running.await;
    }
}

/// A replica that knows who leads, and publishes what.
pub(crate) struct Standby {
    pub(crate) leadership: Leadership,
    pub(crate) term_of_leader: Term,
    _running: [Candidacy; 2],
}

impl Standby {
    /// What it publishes itself.
    pub(crate) const PAYLOAD: &str = "http://standby";

    pub(crate) async fn of_a_leader_at(payload: &str) -> Self {
        let store = MemoryStore::new();
        let contender = |payload| {
            Elector::builder("billing", store.clone()).payload(payload).build().unwrap().spawn()
        };
        let leader = contender(payload);
        let term_of_leader = leader.leadership().leading().await.unwrap();
        let standby = contender(Self::PAYLOAD);
        let leadership = standby.leadership();
        let mut watch = leadership.watch();
        watch.wait_for(|status| status.leader().is_some()).await.unwrap();
        Self { leadership, term_of_leader, _running: [leader, standby] }
    }
}

/// For hand-overs that have nothing to wait for any more: long before they would give up waiting.
pub(crate) async fn promptly<F: Future>(work: F) -> F::Output {
    tokio::select! {
        done = work => done,
        () = tokio::time::sleep(Duration::from_secs(30)) => panic!("still waiting"),
    }
}

pub(crate) fn request() -> Request<()> {
    Request::new(())
}

/// Over HTTP/2, as it is required.
pub(crate) fn grpc_request() -> Request<()> {
    let request = Request::builder().version(Version::HTTP_2);
    request.header(CONTENT_TYPE, "application/grpc+proto").body(()).unwrap()
}

/// A body that gives what is sent to it. The sender sees when it was dropped.
pub(crate) type Fed = StreamBody<mpsc::UnboundedReceiver<Result<Frame<Bytes>, Infallible>>>;

pub(crate) struct Feeder(mpsc::UnboundedSender<Result<Frame<Bytes>, Infallible>>);

impl Feeder {
    pub(crate) fn feed(&self, bytes: &'static [u8]) {
        self.0.unbounded_send(Ok(Frame::data(Bytes::from_static(bytes)))).unwrap();
    }

    pub(crate) fn is_dropped(&self) -> bool {
        self.0.is_closed()
    }
}

pub(crate) fn fed() -> (Feeder, Fed) {
    let (sender, receiver) = mpsc::unbounded();
    (Feeder(sender), StreamBody::new(receiver))
}
