//! Stores and sessions whose types were forgotten.

use std::{fmt, sync::Arc, time::Duration};

use futures::future::BoxFuture;

use super::{
    AcquireRequest, Capabilities, Hints, Outcome, PlaceRequest, ReleaseRequest, RenewRequest,
    Session, Store, StoreError,
};
use crate::lease::{ElectionName, Lease};

/// A store whose type was forgotten. It is itself a [`Store`], and cheap to clone.
#[derive(Clone)]
pub struct DynStore(Arc<dyn ErasedStore>);

/// The session of a [`DynStore`].
pub struct DynSession(Box<dyn ErasedSession>);

impl DynStore {
    /// Forgets the type of `store`. What is a `DynStore` already stays as it is.
    #[must_use]
    pub fn new(store: impl Store) -> Self {
        store.into_dyn()
    }

    pub(super) fn erase(store: impl Store) -> Self {
        Self(Arc::new(store))
    }

    /// See [`Store::ensure_schema`].
    ///
    /// # Errors
    /// [`StoreError`], fatal if the database does not allow it.
    pub async fn ensure_schema(&self) -> Result<(), StoreError> {
        self.0.ensure_schema().await
    }

    /// See [`Store::ping`].
    ///
    /// # Errors
    /// [`StoreError`] that says what is wrong.
    pub async fn ping(&self) -> Result<(), StoreError> {
        self.0.ping().await
    }

    /// See [`Store::leaders`].
    ///
    /// # Errors
    /// [`StoreError`]; fatal where the store can not list its records.
    pub async fn leaders(&self) -> Result<Vec<(ElectionName, Lease)>, StoreError> {
        self.0.leaders().await
    }

    /// See [`Store::depose`].
    ///
    /// # Errors
    /// [`StoreError`]; fatal where the store can not do it.
    pub async fn depose(&self, election: &ElectionName) -> Result<Option<Lease>, StoreError> {
        self.0.depose(election).await
    }
}

impl Store for DynStore {
    type Session = DynSession;

    fn session(&self, election: &ElectionName) -> DynSession {
        DynSession(self.0.session(election))
    }

    fn capabilities(&self) -> Capabilities {
        self.0.capabilities()
    }

    async fn ensure_schema(&self) -> Result<(), StoreError> {
        self.0.ensure_schema().await
    }

    async fn ping(&self) -> Result<(), StoreError> {
        self.0.ping().await
    }

    async fn leaders(&self) -> Result<Vec<(ElectionName, Lease)>, StoreError> {
        self.0.leaders().await
    }

    async fn depose(&self, election: &ElectionName) -> Result<Option<Lease>, StoreError> {
        self.0.depose(election).await
    }

    fn into_dyn(self) -> DynStore {
        self
    }
}

impl fmt::Debug for DynStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DynStore").field("capabilities", &self.0.capabilities()).finish()
    }
}

impl Session for DynSession {
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
        self.0.renew(request).await
    }

    async fn release(&mut self, request: &ReleaseRequest) -> Result<Outcome, StoreError> {
        self.0.release(request).await
    }

    fn limit_calls(&mut self, limit: Duration) {
        self.0.limit_calls(limit);
    }

    fn hints(&mut self) -> Hints {
        self.0.hints()
    }
}

impl fmt::Debug for DynSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DynSession")
    }
}

/// [`Store`] in the form that a vtable can hold: one box for each call.
trait ErasedStore: Send + Sync {
    fn session(&self, election: &ElectionName) -> Box<dyn ErasedSession>;
    fn capabilities(&self) -> Capabilities;
    fn ensure_schema(&self) -> BoxFuture<'_, Result<(), StoreError>>;
    fn ping(&self) -> BoxFuture<'_, Result<(), StoreError>>;
    fn leaders(&self) -> BoxFuture<'_, Result<Vec<(ElectionName, Lease)>, StoreError>>;
    fn depose<'a>(
        &'a self,
        election: &'a ElectionName,
    ) -> BoxFuture<'a, Result<Option<Lease>, StoreError>>;
}

impl<S: Store> ErasedStore for S {
    fn session(&self, election: &ElectionName) -> Box<dyn ErasedSession> {
        Box::new(Store::session(self, election))
    }

    fn capabilities(&self) -> Capabilities {
        Store::capabilities(self)
    }

    fn ensure_schema(&self) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(Store::ensure_schema(self))
    }

    fn ping(&self) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(Store::ping(self))
    }

    fn leaders(&self) -> BoxFuture<'_, Result<Vec<(ElectionName, Lease)>, StoreError>> {
        Box::pin(Store::leaders(self))
    }

    fn depose<'a>(
        &'a self,
        election: &'a ElectionName,
    ) -> BoxFuture<'a, Result<Option<Lease>, StoreError>> {
        Box::pin(Store::depose(self, election))
    }
}

/// [`Session`] in the form that a vtable can hold.
trait ErasedSession: Send {
    fn inspect(&mut self) -> BoxFuture<'_, Result<Option<Lease>, StoreError>>;
    fn place<'a>(
        &'a mut self,
        request: &'a PlaceRequest,
    ) -> BoxFuture<'a, Result<Lease, StoreError>>;
    fn acquire<'a>(
        &'a mut self,
        request: &'a AcquireRequest,
    ) -> BoxFuture<'a, Result<Outcome, StoreError>>;
    fn renew<'a>(
        &'a mut self,
        request: &'a RenewRequest,
    ) -> BoxFuture<'a, Result<Outcome, StoreError>>;
    fn release<'a>(
        &'a mut self,
        request: &'a ReleaseRequest,
    ) -> BoxFuture<'a, Result<Outcome, StoreError>>;
    fn limit_calls(&mut self, limit: Duration);
    fn hints(&mut self) -> Hints;
}

impl<S: Session> ErasedSession for S {
    fn inspect(&mut self) -> BoxFuture<'_, Result<Option<Lease>, StoreError>> {
        Box::pin(Session::inspect(self))
    }

    fn place<'a>(
        &'a mut self,
        request: &'a PlaceRequest,
    ) -> BoxFuture<'a, Result<Lease, StoreError>> {
        Box::pin(Session::place(self, request))
    }

    fn acquire<'a>(
        &'a mut self,
        request: &'a AcquireRequest,
    ) -> BoxFuture<'a, Result<Outcome, StoreError>> {
        Box::pin(Session::acquire(self, request))
    }

    fn renew<'a>(
        &'a mut self,
        request: &'a RenewRequest,
    ) -> BoxFuture<'a, Result<Outcome, StoreError>> {
        Box::pin(Session::renew(self, request))
    }

    fn release<'a>(
        &'a mut self,
        request: &'a ReleaseRequest,
    ) -> BoxFuture<'a, Result<Outcome, StoreError>> {
        Box::pin(Session::release(self, request))
    }

    fn limit_calls(&mut self, limit: Duration) {
        Session::limit_calls(self, limit);
    }

    fn hints(&mut self) -> Hints {
        Session::hints(self)
    }
}
