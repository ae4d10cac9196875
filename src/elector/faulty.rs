//! Stores that hang, fail, panic or lose their hints, as stores do.

use std::{
    sync::atomic::{AtomicBool, AtomicUsize, Ordering},
    time::Duration,
};

use super::{
    tests::{Fleet, LEASE},
    *,
};
use crate::{
    LastError, MemoryStore, TermEnd,
    lease::Lease,
    store::{
        AcquireRequest, Capabilities, Hints, Outcome, PlaceRequest, ReleaseRequest, RenewRequest,
        Session, StoreError,
    },
};

/// What a [`Faulty`] store does to calls.
#[derive(Default)]
struct Faults {
    hang: AtomicBool,
    panic: AtomicBool,
    fail: AtomicBool,
    renewals: AtomicUsize,
    /// How many sessions were opened.
    sessions: AtomicUsize,
    /// Gives each session's stream of hints; the streams that were asked for are counted.
    hints: AtomicUsize,
    hint: tokio::sync::Notify,
}

/// The in-process store behind a network that can be broken.
#[derive(Clone)]
struct Faulty {
    inner: MemoryStore,
    faults: Arc<Faults>,
}

struct FaultySession {
    inner: <MemoryStore as Store>::Session,
    faults: Arc<Faults>,
}

impl Store for Faulty {
    type Session = FaultySession;

    fn session(&self, election: &ElectionName) -> FaultySession {
        self.faults.sessions.fetch_add(1, Ordering::Relaxed);
        FaultySession { inner: Store::session(&self.inner, election), faults: self.faults.clone() }
    }

    fn capabilities(&self) -> Capabilities {
        Store::capabilities(&self.inner)
    }
}

impl FaultySession {
    async fn disturb(&self) -> Result<(), StoreError> {
        assert!(!self.faults.panic.load(Ordering::Relaxed), "the driver has a bug");
        if self.faults.hang.load(Ordering::Relaxed) {
            std::future::pending::<()>().await;
        }
        if self.faults.fail.load(Ordering::Relaxed) {
            return Err(StoreError::fatal("table leader_election does not exist"));
        }
        Ok(())
    }
}

impl Session for FaultySession {
    async fn inspect(&mut self) -> Result<Option<Lease>, StoreError> {
        self.disturb().await?;
        self.inner.inspect().await
    }

    async fn place(&mut self, request: &PlaceRequest) -> Result<Lease, StoreError> {
        self.disturb().await?;
        self.inner.place(request).await
    }

    async fn acquire(&mut self, request: &AcquireRequest) -> Result<Outcome, StoreError> {
        self.disturb().await?;
        self.inner.acquire(request).await
    }

    async fn renew(&mut self, request: &RenewRequest) -> Result<Outcome, StoreError> {
        self.faults.renewals.fetch_add(1, Ordering::Relaxed);
        self.disturb().await?;
        self.inner.renew(request).await
    }

    async fn release(&mut self, request: &ReleaseRequest) -> Result<Outcome, StoreError> {
        self.disturb().await?;
        self.inner.release(request).await
    }

    /// One hint, and then the stream is lost.
    fn hints(&mut self) -> Hints {
        self.faults.hints.fetch_add(1, Ordering::Relaxed);
        let faults = self.faults.clone();
        Hints::new(futures::stream::once(async move { faults.hint.notified().await }))
    }
}

#[tokio::test(start_paused = true)]
async fn a_hint_makes_a_follower_look_at_once_and_a_lost_stream_is_asked_for_again() {
    let fleet = Fleet::new();
    let faults = Arc::new(Faults::default());
    let store = Faulty { inner: fleet.store.clone(), faults: faults.clone() };
    let leader = fleet.candidate();
    leader.leadership().leading().await.unwrap();
    let patient = Duration::from_secs(3_600);
    let follower = fleet.builder_on(store).retry_period(patient).build().unwrap().spawn();
    let sees_it = |status: &crate::Status| status.leader().is_some();
    follower.leadership().watch().wait_for(sees_it).await.unwrap();
    for hints in 1..4 {
        assert_eq!(faults.hints.load(Ordering::Relaxed), hints);
        let before = fleet.clock.now();
        faults.hint.notify_one();
        while follower.leadership().status().observed_age() > Some(Duration::from_millis(1)) {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        assert!(fleet.clock.now().saturating_since(before) < LEASE / 10);
        // The next look, which the lease itself is the reason for, asks the session for another stream.
        tokio::time::sleep(LEASE * 2).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_store_that_hangs_ends_the_term_in_time_and_the_election_recovers() {
    let fleet = Fleet::new();
    let faults = Arc::new(Faults::default());
    let store = Faulty { inner: fleet.store.clone(), faults: faults.clone() };
    let candidacy = fleet.builder_on(store).build().unwrap().spawn();
    let leadership = candidacy.leadership();
    let term = leadership.leading().await.unwrap();
    let before = fleet.clock.now();
    faults.hang.store(true, Ordering::Relaxed);
    assert_eq!(term.ended().await, TermEnd::Expired);
    assert!(fleet.clock.now().saturating_since(before) <= LEASE);
    assert!(faults.renewals.load(Ordering::Relaxed) >= 2, "no second try");
    leadership
        .watch()
        .wait_for(|s| matches!(s.last_error(), Some(LastError::LeaseExpiredLocally)))
        .await
        .unwrap();
    leadership
        .watch()
        .wait_for(|s| matches!(s.last_error(), Some(LastError::Store(e)) if e.is_retryable()))
        .await
        .unwrap();
    faults.hang.store(false, Ordering::Relaxed);
    assert!(leadership.leading().await.unwrap().fence() > term.fence());
    assert!(leadership.status().last_error().is_none());
}

#[tokio::test(start_paused = true)]
async fn a_call_that_was_abandoned_takes_its_session_with_it_and_one_that_failed_does_not() {
    let fleet = Fleet::new();
    let faults = Arc::new(Faults::default());
    let store = Faulty { inner: fleet.store.clone(), faults: faults.clone() };
    let candidacy = fleet.builder_on(store).build().unwrap().spawn();
    let leadership = candidacy.leadership();
    leadership.leading().await.unwrap();
    let mut watch = leadership.watch();
    for (fault, sessions) in [(&faults.fail, 1), (&faults.hang, 2)] {
        assert_eq!(faults.sessions.load(Ordering::Relaxed), 1);
        fault.store(true, Ordering::Relaxed);
        watch.wait_for(|status| status.last_error().is_some()).await.unwrap();
        fault.store(false, Ordering::Relaxed);
        watch.wait_for(|status| status.last_error().is_none()).await.unwrap();
        assert_eq!(faults.sessions.load(Ordering::Relaxed), sessions);
    }
}

#[tokio::test(start_paused = true)]
async fn a_panic_inside_a_store_is_an_error_like_another() {
    let fleet = Fleet::new();
    let faults = Arc::new(Faults::default());
    let store = Faulty { inner: fleet.store.clone(), faults: faults.clone() };
    let candidacy = fleet.builder_on(store).build().unwrap().spawn();
    let leadership = candidacy.leadership();
    faults.panic.store(true, Ordering::Relaxed);
    let failed = |status: &crate::Status| match status.last_error() {
        Some(LastError::Store(error)) => error.to_string().contains("the driver has a bug"),
        _ => false,
    };
    leadership.watch().wait_for(failed).await.unwrap();
    faults.panic.store(false, Ordering::Relaxed);
    leadership.leading().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn nobody_leads_on_an_error_and_it_says_whether_somebody_must_do_something() {
    let fleet = Fleet::new();
    let faults = Arc::new(Faults::default());
    faults.fail.store(true, Ordering::Relaxed);
    let store = Faulty { inner: fleet.store.clone(), faults: faults.clone() };
    let candidacy = fleet.builder_on(store).build().unwrap().spawn();
    let leadership = candidacy.leadership();
    let fatal = |status: &crate::Status| matches!(status.last_error(), Some(LastError::Store(error)) if error.is_fatal());
    leadership.watch().wait_for(fatal).await.unwrap();
    tokio::time::sleep(LEASE * 3).await;
    assert!(!leadership.is_leader());
    // Also a shutdown that the store does not answer is bounded.
    faults.hang.store(true, Ordering::Relaxed);
    candidacy.shutdown().await.unwrap();
}
