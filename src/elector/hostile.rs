//! Stores that do what no store may.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use super::{tests::Fleet, *};
use crate::{
    TermEnd,
    lease::Lease,
    store::{
        AcquireRequest, Capabilities, Hints, Outcome, PlaceRequest, ReleaseRequest, RenewRequest,
        Session, StoreError,
    },
};
use futures::{executor::block_on, stream};

/// The in-process store, with a trick.
#[derive(Clone)]
struct Hostile {
    inner: crate::MemoryStore,
    trick: Trick,
    /// Whether it plays the trick.
    plays: Arc<AtomicBool>,
}

#[derive(Clone, Copy)]
enum Trick {
    /// The stream of hints panics.
    HintsPanic,
    /// The stream of hints always has one more.
    HintsFlood,
    /// Renewals hang, and panic when they are given up.
    DropsPanic,
    /// An acquire answers that it was won, and shows somebody else as the holder.
    WonByAnother,
}

struct HostileSession {
    inner: crate::MemorySession,
    store: Hostile,
}

impl Hostile {
    fn new(inner: crate::MemoryStore, trick: Trick) -> Self {
        Self { inner, trick, plays: Arc::new(AtomicBool::new(true)) }
    }

    fn plays(&self) -> bool {
        self.plays.load(Ordering::SeqCst)
    }
}

impl Store for Hostile {
    type Session = HostileSession;

    fn session(&self, election: &ElectionName) -> HostileSession {
        HostileSession { inner: Store::session(&self.inner, election), store: self.clone() }
    }

    fn capabilities(&self) -> Capabilities {
        Store::capabilities(&self.inner)
    }
}

struct PanicsInDrop;

impl Drop for PanicsInDrop {
    fn drop(&mut self) {
        panic!("in a drop, on purpose");
    }
}

impl Session for HostileSession {
    async fn inspect(&mut self) -> Result<Option<Lease>, StoreError> {
        self.inner.inspect().await
    }

    async fn place(&mut self, request: &PlaceRequest) -> Result<Lease, StoreError> {
        self.inner.place(request).await
    }

    async fn acquire(&mut self, request: &AcquireRequest) -> Result<Outcome, StoreError> {
        let outcome = self.inner.acquire(request).await?;
        match (self.store.trick, outcome) {
            (Trick::WonByAnother, Outcome::Won(mut lease)) if self.store.plays() => {
                lease.holder = Some(Identity::new("another").unwrap());
                Ok(Outcome::Won(lease))
            }
            (_, outcome) => Ok(outcome),
        }
    }

    async fn renew(&mut self, request: &RenewRequest) -> Result<Outcome, StoreError> {
        if let (Trick::DropsPanic, true) = (self.store.trick, self.store.plays()) {
            let _panics = PanicsInDrop;
            std::future::pending::<()>().await;
        }
        self.inner.renew(request).await
    }

    async fn release(&mut self, request: &ReleaseRequest) -> Result<Outcome, StoreError> {
        self.inner.release(request).await
    }

    fn hints(&mut self) -> Hints {
        match self.store.trick {
            Trick::HintsPanic if self.store.plays() => {
                Hints::new(stream::poll_fn(|_| panic!("in a stream of hints, on purpose")))
            }
            Trick::HintsFlood if self.store.plays() => Hints::new(stream::repeat(())),
            _ => Hints::none(),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_panic_in_a_stream_of_hints_is_an_error_like_another() {
    let fleet = Fleet::new();
    let store = Hostile::new(fleet.store.clone(), Trick::HintsPanic);
    let candidacy = fleet.builder_on(store).build().unwrap().spawn();
    let term = candidacy.leadership().leading().await.unwrap();
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert!(term.is_live());
    candidacy.shutdown().await.unwrap();
}

#[test]
fn a_flood_of_hints_starves_no_other_elector() {
    let store = Hostile::new(crate::MemoryStore::new(), Trick::HintsFlood);
    let flooded = Elector::builder("flooded", store.clone()).build().unwrap().spawn();
    let other = Elector::builder("other", store.inner.clone()).build().unwrap().spawn();
    block_on(other.leadership().leading()).unwrap();
    block_on(other.shutdown()).unwrap();
    block_on(flooded.shutdown()).unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_call_that_panics_when_it_is_given_up_is_an_error_like_another() {
    let fleet = Fleet::new();
    let store = Hostile::new(fleet.store.clone(), Trick::DropsPanic);
    let candidacy = fleet.builder_on(store.clone()).build().unwrap().spawn();
    let leadership = candidacy.leadership();
    let term = leadership.leading().await.unwrap();
    assert_eq!(term.ended().await, TermEnd::Expired);
    store.plays.store(false, Ordering::SeqCst);
    assert!(leadership.leading().await.unwrap().fence() > term.fence());
    candidacy.shutdown().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_shows_another_holder_was_not_won() {
    let fleet = Fleet::new();
    let store = Hostile::new(fleet.store.clone(), Trick::WonByAnother);
    let candidacy = fleet.builder_on(store.clone()).build().unwrap().spawn();
    let leadership = candidacy.leadership();
    let mut terms = leadership.terms();
    tokio::select! {
        term = terms.next() => panic!("{term:?} began"),
        () = tokio::time::sleep(Duration::from_secs(60)) => {}
    }
    store.plays.store(false, Ordering::SeqCst);
    leadership.leading().await.unwrap();
}
