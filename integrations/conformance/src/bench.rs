//! What obligations are written with: candidates, snapshots of the record, and waiting for conditions.

use std::{
    error::Error, future::poll_fn, panic::resume_unwind, pin::pin, sync::Arc, task::Poll,
    time::Duration,
};

use futures::future::join_all;
use tenure::{
    ElectionName, Fence, Identity, Lease, Store, StoreError,
    store::{
        AcquireRequest, Hints, Observed, Outcome, PlaceRequest, ReleaseRequest, RenewRequest,
        Session, When,
    },
};
use tokio::{sync::Barrier, time::sleep};

use crate::subject::{Subject, Unsupported};

/// A lease that does not expire while an obligation runs, however slow the machine is.
pub(crate) const LONG: Duration = Duration::from_secs(600);
/// The shortest lease that a store must serve: for what happens when one expires.
pub(crate) const SHORT: Duration = Duration::from_millis(300);

/// One obligation's own part of the database, its schema in place.
pub(crate) struct Bench<S: Subject> {
    pub(crate) subject: S,
    pub(crate) store: S::Store,
    pub(crate) election: ElectionName,
    /// Whether candidates listen to hints, from before their first call on.
    pub(crate) listening: bool,
}

impl<S: Subject> Bench<S> {
    pub(crate) async fn new(subject: S) -> Self {
        let store = subject.store().await;
        let bench = Self { subject, store, election: election("an election"), listening: false };
        bench.store.ensure_schema().await.expect_store("ensure_schema");
        bench
    }

    /// A candidate in a process of its own.
    pub(crate) async fn candidate(&self, name: &str) -> Candidate<Sess<S>> {
        self.candidate_of(name, &self.election).await
    }

    pub(crate) async fn candidate_of(
        &self,
        name: &str,
        election: &ElectionName,
    ) -> Candidate<Sess<S>> {
        let store = self.subject.store().await;
        let mut candidate = Candidate::new(identity(name), &store, election);
        candidate.hints = self.listening.then(|| candidate.session.hints());
        candidate
    }

    /// That many candidates, each with an open connection.
    pub(crate) async fn candidates(&self, count: usize) -> Vec<Candidate<Sess<S>>> {
        let mut candidates = Vec::new();
        for number in 0..count {
            let mut candidate = self.candidate(&format!("candidate {number}")).await;
            candidate.inspect().await;
            candidates.push(candidate);
        }
        candidates
    }

    /// The record as somebody sees it who has no part in the election.
    pub(crate) async fn record(&self) -> Record {
        self.record_of(&self.election).await
    }

    pub(crate) async fn record_of(&self, election: &ElectionName) -> Record {
        let lease = self.candidate_of("an onlooker", election).await.inspect().await;
        let bytes = self.subject.bytes(election).await.ok().flatten();
        Record { lease: lease.map(|lease| with_ttl(lease, None)), bytes }
    }

    /// The store must have a clock for what follows.
    pub(crate) fn needs_clock(&self) -> Result<(), Unsupported> {
        if !self.store.capabilities().clock {
            return Err(Unsupported("the store shows no clock"));
        }
        Ok(())
    }

    /// Deletes the record.
    pub(crate) async fn lose_record(&self) -> Result<(), Unsupported> {
        self.subject.lose_record(&self.election).await
    }
}

/// The sessions of a subject's store.
pub(crate) type Sess<S> = <<S as Subject>::Store as Store>::Session;

/// All of a record that stays as it is while nobody writes.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Record {
    pub(crate) lease: Option<Lease>,
    bytes: Option<Vec<u8>>,
}

/// One identity and its session. Errors of the store break every obligation.
pub(crate) struct Candidate<Se> {
    pub(crate) identity: Identity,
    pub(crate) session: Se,
    /// Kept, so that the store goes on giving them.
    hints: Option<Hints>,
}

impl<Se: Session> Candidate<Se> {
    pub(crate) fn new(
        identity: Identity,
        store: &impl Store<Session = Se>,
        election: &ElectionName,
    ) -> Self {
        Self { identity, session: store.session(election), hints: None }
    }

    pub(crate) async fn inspect(&mut self) -> Option<Lease> {
        self.session.inspect().await.expect_store("inspect")
    }

    /// The record, where there must be one.
    pub(crate) async fn look(&mut self) -> Lease {
        self.inspect().await.expect("there is a record")
    }

    pub(crate) fn request(&self, observed: Option<&Lease>, duration: Duration) -> AcquireRequest {
        AcquireRequest::new(self.identity.clone(), observed.map(Observed::from), duration)
    }

    pub(crate) async fn acquire(&mut self, request: &AcquireRequest) -> Outcome {
        self.session.acquire(request).await.expect_store("acquire")
    }

    /// Claims the record that was observed, whether it has expired or not.
    pub(crate) async fn claim(&mut self, observed: Option<&Lease>, duration: Duration) -> Outcome {
        self.acquire(&self.request(observed, duration)).await
    }

    /// Claims the record that was observed if it has expired by the store's clock.
    pub(crate) async fn claim_expired(&mut self, observed: &Lease, duration: Duration) -> Outcome {
        let mut request = self.request(Some(observed), duration);
        request.when = When::Expired;
        self.acquire(&request).await
    }

    /// A new term, whatever the record is now.
    pub(crate) async fn lead(&mut self, duration: Duration) -> Lease {
        let seen = self.inspect().await;
        won(self.claim(seen.as_ref(), duration).await)
    }

    pub(crate) async fn renew(&mut self, fence: Fence, duration: Duration) -> Outcome {
        self.renew_with(&RenewRequest::new(self.identity.clone(), fence, duration)).await
    }

    pub(crate) async fn renew_with(&mut self, request: &RenewRequest) -> Outcome {
        self.session.renew(request).await.expect_store("renew")
    }

    pub(crate) async fn release(&mut self, fence: Fence) -> Outcome {
        let request = ReleaseRequest::new(self.identity.clone(), fence);
        self.session.release(&request).await.expect_store("release")
    }

    pub(crate) async fn place(&mut self, duration: Duration, floor: Option<Fence>) -> Lease {
        let mut request = PlaceRequest::new(duration);
        request.floor = floor;
        self.session.place(&request).await.expect_store("place")
    }

    /// Waits until the lease has expired on the store's clock.
    pub(crate) async fn wait_for_expiry(&mut self) -> Lease {
        for _ in 0..3_000 {
            let lease = self.look().await;
            if lease.ttl == Some(Duration::ZERO) {
                return lease;
            }
            sleep(Duration::from_millis(10)).await;
        }
        panic!("the lease does not expire: {:?}", self.look().await);
    }
}

/// The lease that was won.
pub(crate) fn won(outcome: Outcome) -> Lease {
    match outcome {
        Outcome::Won(lease) => lease,
        Outcome::Lost(stood_in_the_way) => {
            panic!("must succeed, but lost to the record {stood_in_the_way:?}")
        }
    }
}

/// The record that stood in the way.
pub(crate) fn lost(outcome: Outcome) -> Option<Lease> {
    match outcome {
        Outcome::Won(lease) => panic!("must lose, but succeeded and reports {lease:?}"),
        Outcome::Lost(stood_in_the_way) => stood_in_the_way,
    }
}

/// The lease as it is beside how long it is still valid.
pub(crate) fn with_ttl(mut lease: Lease, ttl: Option<Duration>) -> Lease {
    lease.ttl = ttl;
    lease
}

pub(crate) fn election(name: &str) -> ElectionName {
    ElectionName::new(name).expect("the name keeps the limits")
}

pub(crate) fn identity(name: &str) -> Identity {
    Identity::new(name).expect("the name keeps the limits")
}

pub(crate) fn fence(number: i64) -> Fence {
    Fence::try_from(number).expect("the number is a fence")
}

/// Starts all calls at one moment and gives their results in the order of the calls.
pub(crate) async fn at_once<T: Send + 'static>(
    calls: impl IntoIterator<Item = impl Future<Output = T> + Send + 'static>,
) -> Vec<T> {
    let calls: Vec<_> = calls.into_iter().collect();
    let start = Arc::new(Barrier::new(calls.len()));
    let started = calls.into_iter().map(|call| {
        let start = start.clone();
        tokio::spawn(async move {
            start.wait().await;
            call.await
        })
    });
    let results = join_all(started).await.into_iter();
    results.map(|result| result.unwrap_or_else(|error| resume_unwind(error.into_panic()))).collect()
}

/// Polls `call` that many times at most, and drops it then: `None` if it was not done.
pub(crate) async fn dropped_after<T>(polls: usize, call: impl Future<Output = T>) -> Option<T> {
    let mut call = pin!(call);
    let mut left = polls;
    poll_fn(|cx| {
        if left == 0 {
            return Poll::Ready(None);
        }
        left -= 1;
        match call.as_mut().poll(cx) {
            Poll::Ready(result) => Poll::Ready(Some(result)),
            Poll::Pending if left == 0 => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        }
    })
    .await
}

/// A store's error breaks an obligation, with everything that the error knows.
pub(crate) trait ExpectStore<T> {
    fn expect_store(self, call: &str) -> T;
}

impl<T> ExpectStore<T> for Result<T, StoreError> {
    fn expect_store(self, call: &str) -> T {
        self.unwrap_or_else(|error| {
            let mut message = format!("{call} failed: {error}");
            let mut source = error.source();
            while let Some(cause) = source {
                message += &format!(": {cause}");
                source = cause.source();
            }
            panic!("{message}");
        })
    }
}
