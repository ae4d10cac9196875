//! When a store was called.

// Timing the clock is what a bench is for.
#![allow(clippy::disallowed_methods)]

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Instant,
};

use tenure::{
    ElectionName, Lease, MemorySession, MemoryStore, Store, StoreError,
    store::{
        AcquireRequest, Capabilities, Outcome, PlaceRequest, ReleaseRequest, RenewRequest, Session,
    },
};

/// A `MemoryStore` that notes when terms begin and are renewed. Clones are the same store.
#[derive(Clone, Debug, Default)]
pub struct NotedStore {
    store: MemoryStore,
    notes: Notes,
}

#[derive(Clone, Debug, Default)]
struct Notes(Arc<Mutex<Noted>>);

#[derive(Debug, Default)]
struct Noted {
    won: Option<Instant>,
    renewals: Vec<Instant>,
}

impl NotedStore {
    /// When the last term was won: just before the elector is told.
    #[must_use]
    pub fn won(&self) -> Option<Instant> {
        self.notes.lock().won
    }

    /// When a renewal was asked for, since that was last taken.
    #[must_use]
    pub fn take_renewals(&self) -> Vec<Instant> {
        std::mem::take(&mut self.notes.lock().renewals)
    }
}

impl Notes {
    fn lock(&self) -> MutexGuard<'_, Noted> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Store for NotedStore {
    type Session = NotedSession;

    fn session(&self, election: &ElectionName) -> NotedSession {
        NotedSession { inner: self.store.session(election), notes: self.notes.clone() }
    }

    fn capabilities(&self) -> Capabilities {
        self.store.capabilities()
    }
}

/// The session of a [`NotedStore`].
#[derive(Debug)]
pub struct NotedSession {
    inner: MemorySession,
    notes: Notes,
}

impl Session for NotedSession {
    async fn inspect(&mut self) -> Result<Option<Lease>, StoreError> {
        self.inner.inspect().await
    }

    async fn place(&mut self, request: &PlaceRequest) -> Result<Lease, StoreError> {
        self.inner.place(request).await
    }

    async fn acquire(&mut self, request: &AcquireRequest) -> Result<Outcome, StoreError> {
        let outcome = self.inner.acquire(request).await;
        if matches!(outcome, Ok(Outcome::Won(_))) {
            self.notes.lock().won = Some(Instant::now());
        }
        outcome
    }

    async fn renew(&mut self, request: &RenewRequest) -> Result<Outcome, StoreError> {
        self.notes.lock().renewals.push(Instant::now());
        self.inner.renew(request).await
    }

    async fn release(&mut self, request: &ReleaseRequest) -> Result<Outcome, StoreError> {
        self.inner.release(request).await
    }
}
