//! A store as it is when none of its wake-ups arrive.

use std::{future::Future, time::Duration};

use super::{
    AcquireRequest, Capabilities, Outcome, PlaceRequest, ReleaseRequest, RenewRequest, Session,
    Store, StoreError,
};
use crate::lease::{ElectionName, Lease};

/// A store whose [`Hints`](super::Hints) are turned off: nobody listens, and a hand-over takes a polling period.
///
/// For whoever does not want the connection that listening costs, and for tests: hints may be lost, so whatever holds
/// with them must hold without.
///
/// ```
/// use tenure::{MemoryStore, Store, store::WithoutHints};
///
/// assert!(MemoryStore::new().capabilities().hints);
/// assert!(!WithoutHints(MemoryStore::new()).capabilities().hints);
/// ```
#[derive(Clone, Debug)]
#[allow(clippy::exhaustive_structs)] // a store, and nothing else
pub struct WithoutHints<S>(pub S);

impl<S: Store> Store for WithoutHints<S> {
    type Session = WithoutHints<S::Session>;

    fn session(&self, election: &ElectionName) -> Self::Session {
        WithoutHints(self.0.session(election))
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { hints: false, ..self.0.capabilities() }
    }

    fn ensure_schema(&self) -> impl Future<Output = Result<(), StoreError>> + Send {
        self.0.ensure_schema()
    }

    fn ping(&self) -> impl Future<Output = Result<(), StoreError>> + Send {
        self.0.ping()
    }

    fn leaders(
        &self,
    ) -> impl Future<Output = Result<Vec<(ElectionName, Lease)>, StoreError>> + Send {
        self.0.leaders()
    }

    fn depose(
        &self,
        election: &ElectionName,
    ) -> impl Future<Output = Result<Option<Lease>, StoreError>> + Send {
        self.0.depose(election)
    }
}

impl<S: Session> Session for WithoutHints<S> {
    fn inspect(&mut self) -> impl Future<Output = Result<Option<Lease>, StoreError>> + Send {
        self.0.inspect()
    }

    fn place(
        &mut self,
        request: &PlaceRequest,
    ) -> impl Future<Output = Result<Lease, StoreError>> + Send {
        self.0.place(request)
    }

    fn acquire(
        &mut self,
        request: &AcquireRequest,
    ) -> impl Future<Output = Result<Outcome, StoreError>> + Send {
        self.0.acquire(request)
    }

    fn renew(
        &mut self,
        request: &RenewRequest,
    ) -> impl Future<Output = Result<Outcome, StoreError>> + Send {
        self.0.renew(request)
    }

    fn release(
        &mut self,
        request: &ReleaseRequest,
    ) -> impl Future<Output = Result<Outcome, StoreError>> + Send {
        self.0.release(request)
    }

    fn limit_calls(&mut self, limit: Duration) {
        self.0.limit_calls(limit);
    }
}
