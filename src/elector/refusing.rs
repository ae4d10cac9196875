//! Stores that give less than was asked for, and settings that ask for more than a store has.

use std::{
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use super::{tests::Fleet, *};
use crate::{
    Expiry, LastError, MemoryStore, TermEnd,
    lease::Lease,
    store::{
        AcquireRequest, Capabilities, Outcome, PlaceRequest, ReleaseRequest, RenewRequest, Session,
        StoreError,
    },
    testing::{FlakyStore, Operation},
};

/// What each renewal extends a lease by, whatever was asked for.
const GRANTED: Duration = Duration::from_millis(1_500);

/// The in-process store without its clock, which panics when it is asked for the first sessions, and whose renewals are
/// worth less than was asked for.
#[derive(Clone)]
struct Stingy {
    inner: MemoryStore,
    panics_left: Arc<AtomicUsize>,
}

struct StingySession(crate::MemorySession);

impl Stingy {
    fn new(inner: &MemoryStore, panics: usize) -> Self {
        Self { inner: inner.clone(), panics_left: Arc::new(AtomicUsize::new(panics)) }
    }
}

impl Store for Stingy {
    type Session = StingySession;

    fn session(&self, election: &ElectionName) -> StingySession {
        let less = |left: usize| left.checked_sub(1);
        if self.panics_left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, less).is_ok() {
            panic!("no session, on purpose");
        }
        StingySession(Store::session(&self.inner, election))
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::NONE
    }
}

impl Session for StingySession {
    async fn inspect(&mut self) -> Result<Option<Lease>, StoreError> {
        self.0.inspect().await
    }

    async fn place(&mut self, request: &PlaceRequest) -> Result<Lease, StoreError> {
        self.0.place(request).await
    }

    async fn acquire(&mut self, request: &AcquireRequest) -> Result<Outcome, StoreError> {
        self.0.acquire(request).await
    }

    async fn renew(&mut self, request: &RenewRequest) -> Result<Outcome, StoreError> {
        self.0.renew(&RenewRequest { duration: GRANTED, ..request.clone() }).await
    }

    async fn release(&mut self, request: &ReleaseRequest) -> Result<Outcome, StoreError> {
        self.0.release(request).await
    }
}

#[tokio::test(start_paused = true)]
async fn a_renewal_that_is_worth_less_than_was_asked_for_ends_the_term_earlier() {
    let fleet = Fleet::new();
    let store = FlakyStore::new(Stingy::new(&fleet.store, 0));
    let candidacy = fleet.builder_on(store.clone()).build().unwrap().spawn();
    let term = candidacy.leadership().leading().await.unwrap();
    let first_deadline = fleet.clock.now() + term.remaining();
    while store.succeeded(Operation::Renew) < 1 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    store.hang();
    assert_eq!(term.ended().await, TermEnd::Expired);
    assert!(fleet.clock.now() < first_deadline);
}

#[tokio::test(start_paused = true)]
async fn a_store_that_panics_when_it_is_asked_for_a_session_is_asked_again() {
    let fleet = Fleet::new();
    let candidacy = fleet.builder_on(Stingy::new(&fleet.store, 1)).build().unwrap().spawn();
    let leadership = candidacy.leadership();
    let panicked = |status: &crate::Status| match status.last_error() {
        Some(LastError::Store(error)) => error.to_string().contains("no session, on purpose"),
        _ => false,
    };
    leadership.watch().wait_for(panicked).await.unwrap();
    leadership.leading().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_leader_whose_record_is_deleted_places_one_and_leads_again_under_a_higher_fence() {
    let fleet = Fleet::new();
    let store = FlakyStore::new(fleet.store.clone());
    let candidacy = fleet.builder_on(store.clone()).build().unwrap().spawn();
    let leadership = candidacy.leadership();
    let term = leadership.leading().await.unwrap();
    store.fail_next(Operation::Place, 1);
    fleet.store.forget(term.election());
    assert_eq!(term.ended().await, TermEnd::Lost);
    let refused = |status: &crate::Status| matches!(status.last_error(), Some(LastError::Store(_)));
    leadership.watch().wait_for(refused).await.unwrap();
    assert!(leadership.leading().await.unwrap().fence() > term.fence());
    assert_eq!(store.succeeded(Operation::Place), 1);
}

#[tokio::test(start_paused = true)]
async fn what_is_asked_for_during_a_call_does_not_give_it_up() {
    let fleet = Fleet::new();
    let store = FlakyStore::new(fleet.store.clone());
    store.delay(Duration::from_millis(100));
    let candidacy = fleet.builder_on(store.clone()).build().unwrap().spawn();
    let leadership = candidacy.leadership();
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert_eq!(store.succeeded(Operation::Inspect), 0);
    leadership.set_eligible(true);
    tokio::time::sleep(Duration::from_millis(60)).await;
    assert_eq!(store.succeeded(Operation::Inspect), 1);
    leadership.leading().await.unwrap();
}

#[test]
fn a_store_without_a_clock_is_judged_by_watching_unless_its_clock_was_asked_for() {
    let store = Stingy::new(&MemoryStore::new(), 0);
    let builder = || Elector::builder("billing", store.clone());
    let elector = builder().build().unwrap();
    assert_eq!(elector.timing().expiry(), Expiry::Observed);
    assert!(builder().expiry(Expiry::Observed).build().is_ok());
    let refused = builder().expiry(Expiry::Either).build().unwrap_err();
    assert!(matches!(refused, ConfigError::NoStoreClock { expiry: Expiry::Either }), "{refused}");
}

#[test]
fn every_timing_can_be_set_beside_the_duration_of_the_lease() {
    let seconds = Duration::from_secs;
    let builder = Elector::builder("billing", MemoryStore::new()).lease_duration(seconds(30));
    let builder = builder.renew_interval(seconds(4)).operation_timeout(seconds(2));
    let builder = builder.safety_margin(seconds(1)).on_overrun(Overrun::Abort);
    assert!(format!("{builder:?}").contains("overrun: Abort"), "{builder:?}");
    let elector = builder.build().unwrap();
    let timing = elector.timing();
    assert_eq!(
        (timing.lease_duration(), timing.renew_interval(), timing.operation_timeout()),
        (seconds(30), seconds(4), seconds(2))
    );
    assert_eq!(timing.safety_margin(), seconds(1));
}
