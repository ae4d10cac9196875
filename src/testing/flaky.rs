//! A store that fails when it is told to.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::sync::watch;

use crate::{
    lease::{ElectionName, Lease},
    store::{
        AcquireRequest, Capabilities, DynSession, DynStore, Hints, Outcome, PlaceRequest,
        ReleaseRequest, RenewRequest, Session, Store, StoreError,
    },
};

/// What is asked of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(clippy::exhaustive_enums)] // those of `Session`
pub enum Operation {
    /// [`Session::inspect`].
    Inspect,
    /// [`Session::place`].
    Place,
    /// [`Session::acquire`].
    Acquire,
    /// [`Session::renew`].
    Renew,
    /// [`Session::release`].
    Release,
}

const OPERATIONS: usize = Operation::Release as usize + 1;

/// A store around another one, whose calls fail, hang or take their time when it is told so. Clones are the same store.
///
/// Delays are real time, or tokio's paused time where that is in use.
#[derive(Clone, Debug)]
pub struct FlakyStore {
    inner: DynStore,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    trouble: watch::Sender<Trouble>,
    counts: Mutex<Counts>,
}

/// What happens to every call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Trouble {
    #[default]
    None,
    Fails,
    Hangs,
    Takes(Duration),
}

#[derive(Debug, Default)]
struct Counts {
    /// How many calls of each kind are still to fail.
    to_fail: [usize; OPERATIONS],
    succeeded: [usize; OPERATIONS],
}

impl FlakyStore {
    /// Like `store`, until it is told otherwise.
    #[must_use]
    pub fn new(store: impl Store) -> Self {
        let shared = Shared { trouble: watch::Sender::default(), counts: Mutex::default() };
        Self { inner: store.into_dyn(), shared: Arc::new(shared) }
    }

    /// From now on every call fails without reaching the store, as a transient error.
    pub fn fail(&self) {
        self.shared.trouble.send_replace(Trouble::Fails);
    }

    /// From now on no call is answered, and none reaches the store.
    pub fn hang(&self) {
        self.shared.trouble.send_replace(Trouble::Hangs);
    }

    /// From now on every call waits for so long before it is made.
    pub fn delay(&self, delay: Duration) {
        self.shared.trouble.send_replace(Trouble::Takes(delay));
    }

    /// The next calls of this kind fail without reaching the store, as many as that.
    pub fn fail_next(&self, operation: Operation, how_many: usize) {
        self.shared.counts().to_fail[operation as usize] = how_many;
    }

    /// From now on everything works again; calls that hang are made.
    pub fn recover(&self) {
        self.shared.counts().to_fail = Default::default();
        self.shared.trouble.send_replace(Trouble::None);
    }

    /// How many calls of this kind are still to fail.
    #[must_use]
    pub fn failures_left(&self, operation: Operation) -> usize {
        self.shared.counts().to_fail[operation as usize]
    }

    /// How many calls of this kind have succeeded. Of those that can be lost, the ones that were won.
    #[must_use]
    pub fn succeeded(&self, operation: Operation) -> usize {
        self.shared.counts().succeeded[operation as usize]
    }
}

impl Shared {
    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What befalls a call before it is made.
    async fn befall(&self, operation: Operation) -> Result<(), StoreError> {
        let told = || StoreError::transient(format!("this {operation:?} was told to fail"));
        let is_to_fail = {
            let left = &mut self.counts().to_fail[operation as usize];
            let is_to_fail = *left > 0;
            *left = left.saturating_sub(1);
            is_to_fail
        };
        if is_to_fail {
            return Err(told());
        }
        let mut trouble = self.trouble.subscribe();
        loop {
            let now = *trouble.borrow_and_update();
            match now {
                Trouble::None => return Ok(()),
                Trouble::Fails => return Err(told()),
                Trouble::Takes(delay) => {
                    tokio::time::sleep(delay).await;
                    return Ok(());
                }
                // The sender lives as long as this.
                Trouble::Hangs => _ = trouble.changed().await,
            }
        }
    }

    fn count<T>(
        &self,
        operation: Operation,
        answer: Result<T, StoreError>,
        is_success: impl FnOnce(&T) -> bool,
    ) -> Result<T, StoreError> {
        if answer.as_ref().is_ok_and(is_success) {
            self.counts().succeeded[operation as usize] += 1;
        }
        answer
    }
}

fn is_won(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Won(_))
}

impl Store for FlakyStore {
    type Session = FlakySession;

    fn session(&self, election: &ElectionName) -> FlakySession {
        FlakySession { inner: self.inner.session(election), shared: Arc::clone(&self.shared) }
    }

    fn capabilities(&self) -> Capabilities {
        self.inner.capabilities()
    }

    async fn ensure_schema(&self) -> Result<(), StoreError> {
        self.inner.ensure_schema().await
    }

    async fn ping(&self) -> Result<(), StoreError> {
        self.inner.ping().await
    }

    async fn leaders(&self) -> Result<Vec<(ElectionName, Lease)>, StoreError> {
        self.inner.leaders().await
    }

    async fn depose(&self, election: &ElectionName) -> Result<Option<Lease>, StoreError> {
        self.inner.depose(election).await
    }
}

/// The session of a [`FlakyStore`].
#[derive(Debug)]
pub struct FlakySession {
    inner: DynSession,
    shared: Arc<Shared>,
}

impl Session for FlakySession {
    async fn inspect(&mut self) -> Result<Option<Lease>, StoreError> {
        self.shared.befall(Operation::Inspect).await?;
        let answer = self.inner.inspect().await;
        self.shared.count(Operation::Inspect, answer, |_| true)
    }

    async fn place(&mut self, request: &PlaceRequest) -> Result<Lease, StoreError> {
        self.shared.befall(Operation::Place).await?;
        let answer = self.inner.place(request).await;
        self.shared.count(Operation::Place, answer, |_| true)
    }

    async fn acquire(&mut self, request: &AcquireRequest) -> Result<Outcome, StoreError> {
        self.shared.befall(Operation::Acquire).await?;
        let answer = self.inner.acquire(request).await;
        self.shared.count(Operation::Acquire, answer, is_won)
    }

    async fn renew(&mut self, request: &RenewRequest) -> Result<Outcome, StoreError> {
        self.shared.befall(Operation::Renew).await?;
        let answer = self.inner.renew(request).await;
        self.shared.count(Operation::Renew, answer, is_won)
    }

    async fn release(&mut self, request: &ReleaseRequest) -> Result<Outcome, StoreError> {
        self.shared.befall(Operation::Release).await?;
        let answer = self.inner.release(request).await;
        self.shared.count(Operation::Release, answer, is_won)
    }

    fn limit_calls(&mut self, limit: Duration) {
        self.inner.limit_calls(limit);
    }

    fn hints(&mut self) -> Hints {
        self.inner.hints()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Clock, Elector, LastError, MemoryStore, TermEnd,
        testing::{FlakyStore, Operation},
    };

    #[tokio::test(start_paused = true)]
    async fn two_renewals_that_fail_cost_no_term_and_a_store_that_fails_does() {
        let clock = Clock::tokio();
        let store = FlakyStore::new(MemoryStore::with_clock(clock.clone()));
        let elector = Elector::builder("billing", store.clone()).clock(clock).build().unwrap();
        let candidacy = elector.spawn();
        let leadership = candidacy.leadership();
        let term = leadership.leading().await.unwrap();
        store.fail_next(Operation::Renew, 2);
        while store.failures_left(Operation::Renew) > 0 || store.succeeded(Operation::Renew) < 2 {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        assert!(term.is_live());
        store.fail();
        assert_eq!(term.ended().await, TermEnd::Expired);
        assert!(matches!(
            leadership.status().last_error(),
            Some(LastError::Store(_) | LastError::LeaseExpiredLocally)
        ));
        store.delay(Duration::from_millis(5));
        assert!(leadership.leading().await.unwrap().fence() > term.fence());
        candidacy.shutdown().await.unwrap();
    }
}
