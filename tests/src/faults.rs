//! A store that fails when it is told to.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use tenure::{
    DynStore, ElectionName, Lease, Store, StoreError,
    store::{
        AcquireRequest, Capabilities, DynSession, Hints, Outcome, PlaceRequest, ReleaseRequest,
        RenewRequest, Session,
    },
};

/// A store of which the next renewals fail, as many as one likes. Clones are the same store.
#[derive(Clone, Debug)]
pub struct Faulty {
    inner: DynStore,
    faults: Arc<Faults>,
}

#[derive(Debug, Default)]
struct Faults {
    to_come: AtomicUsize,
    renewed: AtomicUsize,
}

impl Faulty {
    /// Like `store`, until it is told otherwise.
    #[must_use]
    pub fn new(store: impl Store) -> Self {
        Self { inner: store.into_dyn(), faults: Arc::default() }
    }

    /// Has the next renewals fail without reaching the store.
    pub fn fail_renewals(&self, how_many: usize) {
        self.faults.to_come.store(how_many, Ordering::SeqCst);
    }

    /// How many renewals are still to fail.
    #[must_use]
    pub fn failures_to_come(&self) -> usize {
        self.faults.to_come.load(Ordering::SeqCst)
    }

    /// How many renewals were confirmed.
    #[must_use]
    pub fn renewed(&self) -> usize {
        self.faults.renewed.load(Ordering::SeqCst)
    }
}

impl Store for Faulty {
    type Session = FaultySession;

    fn session(&self, election: &ElectionName) -> FaultySession {
        FaultySession { inner: self.inner.session(election), faults: self.faults.clone() }
    }

    fn capabilities(&self) -> Capabilities {
        self.inner.capabilities()
    }
}

/// The session of a [`Faulty`] store.
#[derive(Debug)]
pub struct FaultySession {
    inner: DynSession,
    faults: Arc<Faults>,
}

impl Session for FaultySession {
    async fn inspect(&mut self) -> Result<Option<Lease>, StoreError> {
        self.inner.inspect().await
    }

    async fn place(&mut self, request: &PlaceRequest) -> Result<Lease, StoreError> {
        self.inner.place(request).await
    }

    async fn acquire(&mut self, request: &AcquireRequest) -> Result<Outcome, StoreError> {
        self.inner.acquire(request).await
    }

    async fn renew(&mut self, request: &RenewRequest) -> Result<Outcome, StoreError> {
        let one_less = |faults: usize| faults.checked_sub(1);
        let to_come = &self.faults.to_come;
        if to_come.fetch_update(Ordering::SeqCst, Ordering::SeqCst, one_less).is_ok() {
            return Err(StoreError::transient("this renewal was told to fail"));
        }
        let outcome = self.inner.renew(request).await?;
        if matches!(outcome, Outcome::Won(_)) {
            self.faults.renewed.fetch_add(1, Ordering::SeqCst);
        }
        Ok(outcome)
    }

    async fn release(&mut self, request: &ReleaseRequest) -> Result<Outcome, StoreError> {
        self.inner.release(request).await
    }

    fn limit_calls(&mut self, limit: Duration) {
        self.inner.limit_calls(limit);
    }

    fn hints(&mut self) -> Hints {
        self.inner.hints()
    }
}
