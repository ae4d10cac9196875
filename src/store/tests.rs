//! What wrappers pass on, and what a store need not have.

use std::error::Error;

use super::*;
use crate::{
    lease::Identity,
    memory::{MemorySession, MemoryStore},
    testing::{FlakyStore, Operation},
};

const LEASE: Duration = Duration::from_secs(10);

fn election() -> ElectionName {
    ElectionName::new("billing").unwrap()
}

fn won(outcome: Outcome) -> Lease {
    match outcome {
        Outcome::Won(lease) => lease,
        Outcome::Lost(by) => panic!("lost to {by:?}"),
    }
}

/// Leads an election from its first record to the last through `store`, and looks at what came of it in the records of
/// `beneath`.
async fn lead(store: impl Store, beneath: &MemoryStore) {
    store.ensure_schema().await.unwrap();
    store.ping().await.unwrap();
    assert!(store.capabilities().clock);
    let mut session = store.session(&election());
    session.limit_calls(LEASE);
    assert_eq!(session.inspect().await.unwrap(), None);

    let placed = session.place(&PlaceRequest::new(LEASE)).await.unwrap();
    let holder = Identity::new("web-1").unwrap();
    let mut claim =
        AcquireRequest::new(holder.clone(), Some(Observed::from(&placed)), Duration::from_secs(5));
    claim.when = When::Unchanged;
    let term = won(session.acquire(&claim).await.unwrap());
    assert!(term.is_held_by(&holder));
    let again = session.place(&PlaceRequest::new(LEASE)).await.unwrap();
    assert_eq!(again.version, term.version, "a record that is there stays as it is");
    let late = session.acquire(&claim).await.unwrap();
    assert!(matches!(late, Outcome::Lost(Some(lease)) if lease.version == term.version));

    let renewal = RenewRequest::new(holder.clone(), term.fence, LEASE);
    assert_eq!(won(session.renew(&renewal).await.unwrap()).duration, LEASE);
    let stranger = RenewRequest::new(Identity::new("web-2").unwrap(), term.fence, LEASE);
    let refused = session.renew(&stranger).await.unwrap();
    assert!(matches!(refused, Outcome::Lost(Some(lease)) if lease.is_held_by(&holder)));

    let stranger = ReleaseRequest::new(Identity::new("web-2").unwrap(), term.fence);
    let refused = session.release(&stranger).await.unwrap();
    assert!(matches!(refused, Outcome::Lost(Some(lease)) if !lease.released));
    let release = ReleaseRequest::new(holder, term.fence);
    assert!(won(session.release(&release).await.unwrap()).released);
    let deposed = store.depose(&election()).await.unwrap().unwrap();
    assert_eq!((deposed.holder, deposed.fence), (None, term.fence));
    let listed = |leaders: Vec<(ElectionName, Lease)>| {
        leaders.into_iter().map(|(name, lease)| (name, lease.version)).collect::<Vec<_>>()
    };
    let seen = listed(store.leaders().await.unwrap());
    assert_eq!(seen, [(election(), deposed.version)]);
    assert_eq!(seen, listed(beneath.leaders().await.unwrap()));
}

#[tokio::test]
async fn every_wrapper_passes_every_operation_on() {
    for wrapped in [
        |store: MemoryStore| DynStore::new(store),
        |store| DynStore::new(DynStore::new(store)),
        |store| DynStore::new(Arc::new(store)),
        |store| DynStore::new(WithoutHints(store)),
        |store| DynStore::new(FlakyStore::new(store)),
    ] {
        let beneath = MemoryStore::new();
        lead(wrapped(beneath.clone()), &beneath).await;
    }
    let beneath = MemoryStore::new();
    lead(beneath.clone(), &beneath).await;
}

#[tokio::test]
async fn a_store_without_a_type_is_administered_without_the_trait() {
    let beneath = MemoryStore::new();
    let store = DynStore::new(beneath.clone());
    store.ensure_schema().await.unwrap();
    store.ping().await.unwrap();
    assert_eq!(store.depose(&election()).await.unwrap(), None);
    store.session(&election()).place(&PlaceRequest::new(LEASE)).await.unwrap();
    assert_eq!(store.depose(&election()).await.unwrap().unwrap().holder, None);
    assert_eq!(store.leaders().await.unwrap().len(), 1);
    beneath.ping().await.unwrap();
}

#[tokio::test]
async fn a_flaky_store_fails_to_place_a_record_when_it_is_told_to() {
    let store = FlakyStore::new(MemoryStore::new());
    store.fail_next(Operation::Place, 1);
    let mut session = Store::session(&store, &election());
    let place = PlaceRequest::new(LEASE);
    assert!(session.place(&place).await.unwrap_err().is_retryable());
    assert_eq!(session.inspect().await.unwrap(), None);
    session.place(&place).await.unwrap();
}

/// Of the operations beyond the five.
struct Bare;

impl Store for Bare {
    type Session = MemorySession;

    fn session(&self, election: &ElectionName) -> MemorySession {
        Store::session(&MemoryStore::new(), election)
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::NONE
    }
}

#[tokio::test]
async fn what_a_store_need_not_have_is_refused_by_name() {
    assert_eq!(Bare.session(&election()).inspect().await.unwrap(), None);
    assert_eq!(Bare.capabilities(), Capabilities::NONE);
    Bare.ensure_schema().await.unwrap();
    let refused = [
        ("ping", Bare.ping().await.unwrap_err()),
        ("leaders", Bare.leaders().await.unwrap_err()),
        ("depose", Bare.depose(&election()).await.unwrap_err()),
    ];
    for (operation, error) in refused {
        assert_eq!(error.kind(), StoreErrorKind::Fatal);
        let says = format!("this store does not support `{operation}`");
        assert_eq!(error.to_string(), says);
    }
}

#[test]
fn an_error_keeps_what_caused_it() {
    let caused = StoreError::transient("the server is away").with_source("no route to host");
    assert_eq!(caused.kind(), StoreErrorKind::Transient);
    assert_eq!(caused.source().unwrap().to_string(), "no route to host");
    assert!(StoreError::fatal("the table is missing").source().is_none());
}

#[test]
fn what_has_no_type_any_more_shows_what_it_can_do() {
    let store = DynStore::new(WithoutHints(MemoryStore::new()));
    assert!(format!("{store:?}").contains("hints: false"), "{store:?}");
    let mut session = store.session(&election());
    assert_eq!(format!("{session:?} {:?}", session.hints()), "DynSession Hints");
}
