//! What lies beneath the broken stores beside their records: columns that were added, who holds, who listens.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use futures::{
    FutureExt, Stream,
    channel::mpsc::{UnboundedSender, unbounded},
};
use tenure::{ElectionName, StoreError};
use tokio::time::sleep;

/// The result of a call of the in-process store, which is done at its first poll.
pub(crate) fn now<T>(call: impl Future<Output = T>) -> T {
    call.now_or_never().expect("the in-process store never pends")
}

/// By how many transactions the terms are held.
#[derive(Clone, Default)]
pub(crate) struct Holds(Arc<Mutex<Held>>);

#[derive(Default)]
struct Held {
    by_election: HashMap<ElectionName, usize>,
    /// How often somebody has broken all there were.
    broken: usize,
}

impl Holds {
    /// Adds one if there may be one.
    pub(crate) fn add<T>(
        &self,
        election: &ElectionName,
        unless: impl FnOnce(usize) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let mut held = locked(&self.0);
        let count = held.by_election.entry(election.clone()).or_default();
        let outcome = unless(*count)?;
        *count += 1;
        Ok(outcome)
    }

    pub(crate) fn remove(&self, election: &ElectionName) {
        if let Some(count) = locked(&self.0).by_election.get_mut(election) {
            *count -= 1;
        }
    }

    pub(crate) fn break_all(&self) {
        locked(&self.0).broken += 1;
    }

    pub(crate) fn broken(&self) -> usize {
        locked(&self.0).broken
    }

    /// Does it when nobody holds the term.
    pub(crate) async fn wait_to<T>(
        &self,
        election: &ElectionName,
        limit: Duration,
        mut act: impl FnMut() -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        const STEP: Duration = Duration::from_millis(5);
        let mut waited = Duration::ZERO;
        while waited < limit {
            if let Some(outcome) = self.unless_held(election, &mut act) {
                return outcome;
            }
            sleep(STEP).await;
            waited += STEP;
        }
        Err(StoreError::transient("a transaction holds the term"))
    }

    fn unless_held<T>(&self, election: &ElectionName, act: impl FnOnce() -> T) -> Option<T> {
        let held = locked(&self.0);
        let is_held = held.by_election.get(election).is_some_and(|count| *count > 0);
        (!is_held).then(act)
    }
}

/// Columns that were added.
#[derive(Clone, Default)]
pub(crate) struct Added(Arc<Mutex<(usize, HashMap<ElectionName, i64>)>>);

impl Added {
    pub(crate) fn columns(&self) -> usize {
        locked(&self.0).0
    }

    pub(crate) fn add_column(&self) {
        locked(&self.0).0 += 1;
    }

    pub(crate) fn write(&self, election: &ElectionName, value: i64) {
        locked(&self.0).1.insert(election.clone(), value);
    }

    pub(crate) fn read(&self, election: &ElectionName) -> i64 {
        locked(&self.0).1.get(election).copied().unwrap_or(1)
    }

    pub(crate) fn clear(&self, election: &ElectionName) {
        locked(&self.0).1.remove(election);
    }
}

/// Wake-ups that nobody needs.
#[derive(Clone, Default)]
pub(crate) struct Noise {
    listeners: Arc<Mutex<Vec<UnboundedSender<()>>>>,
    is_listened_to: Arc<AtomicBool>,
}

impl Noise {
    pub(crate) fn make(&self) {
        locked(&self.listeners).retain(|listener| listener.unbounded_send(()).is_ok());
    }

    pub(crate) fn listen(&self) -> impl Stream<Item = ()> + Send + use<> {
        let (listener, noise) = unbounded();
        locked(&self.listeners).push(listener);
        noise
    }

    pub(crate) fn is_first_listener(&self) -> bool {
        !self.is_listened_to.swap(true, Ordering::Relaxed)
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
