//! The contract between an election and the database that carries it.

mod dynamic;
mod error;
mod hold;
mod request;
mod slot;
#[cfg(test)]
mod tests;
mod within;
mod without_hints;

use std::{
    fmt,
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use futures::{Stream, StreamExt, stream::BoxStream};

pub use self::{
    dynamic::{DynSession, DynStore},
    error::{StoreError, StoreErrorKind},
    hold::{Hold, HoldError},
    request::{
        AcquireRequest, Observed, Outcome, PlaceRequest, ReleaseRequest, RenewRequest, When,
    },
    slot::{Slot, Taken},
    within::within,
    without_hints::WithoutHints,
};
use crate::lease::{ElectionName, Lease};

/// What a store can do beyond the five operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Capabilities {
    /// It shows how long a lease is still valid ([`Lease::ttl`]), and refuses to renew an expired one.
    pub clock: bool,
    /// Its sessions give [`Hints`].
    pub hints: bool,
    /// Whether it can hold a term inside a transaction of the user's, by a method of its own.
    pub hold: Hold,
}

impl Capabilities {
    /// Nothing beyond the five operations.
    pub const NONE: Self = Self { clock: false, hints: false, hold: Hold::None };
}

/// How to reach a database that keeps leases.
///
/// A store is a description: making one, and making a [`Session`] from it, does no I/O. Every elector has a session of
/// its own, whose connection is opened on the runtime on which the elector lives.
///
/// Implementations pass the suite in `tenure-conformance`, which is the precise form of what is said here:
///
/// - **Acquire** is a compare-and-set on the (fence, version) observed and always starts a new term, with a fence above
///   the record's, above the floor, and not below the store's wall clock in milliseconds ([`Fence::next`](crate::Fence::next)).
/// - **Renew** and **release** are guarded by (holder, fence, not released).
/// - Who loses changes no byte of the record, and is told which record stood in its way.
/// - A **success is fresh**: it reports a write that was executed after the call was made. What an earlier call of
///   unknown outcome left behind is not a success; the session writes again on top of it, within the same call.
/// - A write makes the lease valid for exactly the duration asked, and [`Lease::ttl`] is never longer than that.
/// - Records are never deleted, and versions never repeat, also not over a lost and re-created record.
/// - A call that is dropped leaves no half-used connection behind.
///
/// # Examples
/// A store that only counts how often it is asked, around another one:
///
/// ```
/// use std::sync::{Arc, atomic::{AtomicU64, Ordering}};
/// use tenure::{
///     ElectionName, Lease, MemoryStore,
///     store::{
///         AcquireRequest, Capabilities, Outcome, PlaceRequest, ReleaseRequest, RenewRequest, Session, Store,
///         StoreError,
///     },
/// };
///
/// struct Counting<S> { inner: S, calls: Arc<AtomicU64> }
///
/// impl<S: Store> Store for Counting<S> {
///     type Session = Counting<S::Session>;
///
///     fn session(&self, election: &ElectionName) -> Self::Session {
///         Counting { inner: self.inner.session(election), calls: self.calls.clone() }
///     }
///
///     fn capabilities(&self) -> Capabilities { self.inner.capabilities() }
/// }
///
/// impl<S: Session> Session for Counting<S> {
///     async fn inspect(&mut self) -> Result<Option<Lease>, StoreError> {
///         self.calls.fetch_add(1, Ordering::Relaxed);
///         self.inner.inspect().await
///     }
///     async fn place(&mut self, request: &PlaceRequest) -> Result<Lease, StoreError> {
///         self.inner.place(request).await
///     }
///     async fn acquire(&mut self, request: &AcquireRequest) -> Result<Outcome, StoreError> {
///         self.inner.acquire(request).await
///     }
///     async fn renew(&mut self, request: &RenewRequest) -> Result<Outcome, StoreError> {
///         self.inner.renew(request).await
///     }
///     async fn release(&mut self, request: &ReleaseRequest) -> Result<Outcome, StoreError> {
///         self.inner.release(request).await
///     }
/// }
/// # let calls = Arc::new(AtomicU64::new(0));
/// # let store = Counting { inner: MemoryStore::new(), calls: calls.clone() };
/// # futures::executor::block_on(async {
/// let mut session = store.session(&ElectionName::new("billing")?);
/// assert_eq!(session.inspect().await?, None);
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// # })?;
/// assert_eq!(calls.load(Ordering::Relaxed), 1);
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
pub trait Store: Send + Sync + 'static {
    /// One elector's own connection.
    type Session: Session;

    /// Makes a session for one election. No I/O: it connects when it is first used.
    fn session(&self, election: &ElectionName) -> Self::Session;

    /// What this store can do beyond the five operations.
    fn capabilities(&self) -> Capabilities;

    /// Creates what the store needs, if it is not there yet. Safe on every replica at once, and to repeat.
    ///
    /// # Errors
    /// [`StoreError`], fatal if the database does not allow it.
    fn ensure_schema(&self) -> impl Future<Output = Result<(), StoreError>> + Send {
        async { Ok(()) }
    }

    /// Answers whether the database can be reached and the schema is there.
    ///
    /// # Errors
    /// [`StoreError`] that says what is wrong.
    fn ping(&self) -> impl Future<Output = Result<(), StoreError>> + Send {
        async { Err(StoreError::unsupported("ping")) }
    }

    /// Who leads what: every record there is, ordered by name.
    ///
    /// # Errors
    /// [`StoreError`]; fatal where the store can not list its records.
    fn leaders(
        &self,
    ) -> impl Future<Output = Result<Vec<(ElectionName, Lease)>, StoreError>> + Send {
        async { Err(StoreError::unsupported("leaders")) }
    }

    /// An operator's step-down: takes the holder out of the record. For the leader that is proof, at its next renewal,
    /// that its term is over; everybody else may claim the lease when it runs out. Answers the record as it is then, or
    /// `None` if there is none.
    ///
    /// # Errors
    /// [`StoreError`]; fatal where the store can not do it.
    fn depose(
        &self,
        election: &ElectionName,
    ) -> impl Future<Output = Result<Option<Lease>, StoreError>> + Send {
        let _ = election;
        async { Err(StoreError::unsupported("depose")) }
    }

    /// Forgets the type. A [`DynStore`] stays what it is, so nothing is boxed twice.
    #[must_use]
    fn into_dyn(self) -> DynStore
    where
        Self: Sized,
    {
        DynStore::erase(self)
    }
}

/// One elector's own way to the record of one election.
///
/// Calls take `&mut self`, so there is one at a time, and one connection suffices. Each may be dropped at any await
/// point; the session must then be usable for the next call, on a fresh connection if need be. Whoever calls bounds the
/// time a call may take, but can only do so if the call pends: one that blocks its thread holds up every elector of the
/// process. Their terms end on time all the same, since that is the watchdog's doing.
pub trait Session: Send + 'static {
    /// Reads the record. Writes nothing.
    ///
    /// # Errors
    /// [`StoreError`] if the store could not be asked.
    fn inspect(&mut self) -> impl Future<Output = Result<Option<Lease>, StoreError>> + Send;

    /// Puts an unheld, unreleased record there if there is none, and answers the record that is there then.
    ///
    /// # Errors
    /// [`StoreError`]; the outcome is unknown.
    fn place(
        &mut self,
        request: &PlaceRequest,
    ) -> impl Future<Output = Result<Lease, StoreError>> + Send;

    /// Starts a new term if the record is as it was observed.
    ///
    /// # Errors
    /// [`StoreError`]; the outcome is unknown.
    fn acquire(
        &mut self,
        request: &AcquireRequest,
    ) -> impl Future<Output = Result<Outcome, StoreError>> + Send;

    /// Extends the term. Losing is proof that the term is over; so is a table that is gone, with all records in it.
    ///
    /// # Errors
    /// [`StoreError`]; the outcome is unknown.
    fn renew(
        &mut self,
        request: &RenewRequest,
    ) -> impl Future<Output = Result<Outcome, StoreError>> + Send;

    /// Gives the lease back. Losing means that it was not this term's any more.
    ///
    /// # Errors
    /// [`StoreError`]; the outcome is unknown.
    fn release(
        &mut self,
        request: &ReleaseRequest,
    ) -> impl Future<Output = Result<Outcome, StoreError>> + Send;

    /// Tells how long each call may take: afterwards its caller gives it up (`operation_timeout`). Told once, before the
    /// first call.
    ///
    /// A session that can have the store give up as well does so somewhat earlier, so that an abandoned request does
    /// not linger there, and so that the caller learns what it waited for. A wrapper around a session passes it on.
    fn limit_calls(&mut self, limit: Duration) {
        let _ = limit;
    }

    /// Wake-ups from the store: "something changed". They make a hand-over faster and are never needed for safety or
    /// progress. Asked for once, and again after the stream has ended.
    fn hints(&mut self) -> Hints {
        Hints::none()
    }
}

/// A stream of wake-ups, each of which may be lost, late, doubled or false.
pub struct Hints(BoxStream<'static, ()>);

impl Hints {
    /// Never gives one, and never ends.
    #[must_use]
    pub fn none() -> Self {
        Self::new(futures::stream::pending())
    }

    /// Passes on what `stream` gives. When it ends, the elector asks the session for another one.
    #[must_use]
    pub fn new(stream: impl Stream<Item = ()> + Send + 'static) -> Self {
        Self(stream.boxed())
    }
}

impl Stream for Hints {
    type Item = ();

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<()>> {
        self.0.poll_next_unpin(cx)
    }
}

impl fmt::Debug for Hints {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Hints")
    }
}

impl<S: Store> Store for Arc<S> {
    type Session = S::Session;

    fn session(&self, election: &ElectionName) -> S::Session {
        (**self).session(election)
    }

    fn capabilities(&self) -> Capabilities {
        (**self).capabilities()
    }

    fn ensure_schema(&self) -> impl Future<Output = Result<(), StoreError>> + Send {
        (**self).ensure_schema()
    }

    fn ping(&self) -> impl Future<Output = Result<(), StoreError>> + Send {
        (**self).ping()
    }

    fn leaders(
        &self,
    ) -> impl Future<Output = Result<Vec<(ElectionName, Lease)>, StoreError>> + Send {
        (**self).leaders()
    }

    fn depose(
        &self,
        election: &ElectionName,
    ) -> impl Future<Output = Result<Option<Lease>, StoreError>> + Send {
        (**self).depose(election)
    }
}
