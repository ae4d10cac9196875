//! A hand on what lies beneath the broken stores.

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicI64, Ordering},
};

use tenure::{
    ElectionName, Lease, MemoryBackup, MemoryStore, StoreError, Term,
    store::{HoldError, Session, Store},
};
use tenure_conformance::{BoxError, Isolation, Subject, Transaction, Unsupported};

use crate::{beneath::now, faults::Fault, store::BrokenStore};

use Fault::*;

/// A subject whose store has this fault.
pub(crate) struct Broken {
    store: BrokenStore,
    backup: Mutex<Option<MemoryBackup>>,
    count: Arc<AtomicI64>,
}

impl Broken {
    pub(crate) fn by(fault: Fault) -> Self {
        Self { store: BrokenStore::by(fault), backup: Mutex::default(), count: Arc::default() }
    }
}

impl Subject for Broken {
    type Store = BrokenStore;

    async fn store(&self) -> BrokenStore {
        self.store.clone()
    }

    async fn lose_record(&self, election: &ElectionName) -> Result<(), Unsupported> {
        self.store.inner.forget(election);
        Ok(())
    }

    async fn back_up(&self) -> Result<(), Unsupported> {
        *self.backup.lock().expect("nobody panics with it") = Some(self.store.inner.backup());
        Ok(())
    }

    async fn restore(&self) -> Result<(), Unsupported> {
        let backup = self.backup.lock().expect("nobody panics with it");
        self.store.inner.restore(backup.as_ref().expect("backed up before"));
        Ok(())
    }

    async fn begin(&self, isolation: Isolation) -> Result<impl Transaction, Unsupported> {
        if self.store.fault == HoldIsNotOffered {
            return Err(Unsupported("on purpose"));
        }
        Ok(InMemory {
            store: self.store.clone(),
            has_snapshot: isolation != Isolation::ReadCommitted,
            snapshot: None,
            held: Vec::new(),
            broken_before: self.store.holds.broken(),
            added: 0,
            count: self.count.clone(),
        })
    }

    async fn upgrade(&self) -> Result<(), Unsupported> {
        self.store.added.add_column();
        Ok(())
    }

    async fn write_added(&self, election: &ElectionName, value: i64) -> Result<(), Unsupported> {
        self.store.added.write(election, value);
        Ok(())
    }

    async fn read_added(&self, election: &ElectionName) -> Result<i64, Unsupported> {
        Ok(self.store.added.read(election))
    }

    async fn first_schema(&self) -> Result<(), Unsupported> {
        self.store.inner.restore(&MemoryStore::new().backup());
        Ok(())
    }

    fn wall_clock(&self) -> Result<(), Unsupported> {
        Err(Unsupported("its wall clock stands at zero"))
    }
}

/// A transaction that knows of one number beside the leases. Whatever it has to find out, it looks at under the lock of
/// the holds, so that nobody comes in between.
struct InMemory {
    store: BrokenStore,
    has_snapshot: bool,
    snapshot: Option<MemoryStore>,
    held: Vec<ElectionName>,
    broken_before: usize,
    added: i64,
    count: Arc<AtomicI64>,
}

impl InMemory {
    fn fault(&self) -> Fault {
        self.store.fault
    }

    /// What it sees.
    fn look(&mut self, election: &ElectionName) -> Option<Lease> {
        let seen = self.snapshot();
        let mut session = match (self.fault(), seen) {
            (HoldAsksTheSnapshot, Some(snapshot)) => snapshot.session(election),
            _ => self.store.inner.session(election),
        };
        now(session.inspect()).expect("the in-process store never fails")
    }

    fn snapshot(&mut self) -> Option<MemoryStore> {
        let take = || {
            let snapshot = MemoryStore::new();
            snapshot.restore(&self.store.inner.backup());
            snapshot
        };
        self.has_snapshot.then(|| self.snapshot.get_or_insert_with(take).clone())
    }
}

impl Transaction for InMemory {
    async fn hold(&mut self, term: &Term) -> Result<(), HoldError> {
        let fault = self.fault();
        if let Some(end) = term.end().filter(|_| fault != HoldGoesOnAfterTheEnd) {
            return Err(HoldError::Ended(end));
        }
        let is_draining = !term.is_live();
        let store = self.store.clone();
        let current = store.holds.add(term.election(), |others| {
            if fault == HoldsExcludeEachOther && others > 0 {
                return Err(StoreError::transient("another transaction holds the term"));
            }
            let found = self.look(term.election());
            let is_current = found.as_ref().is_some_and(|lease| {
                let is_valid = !lease.released && lease.ttl > Some(std::time::Duration::ZERO);
                is_valid && lease.is_held_by(term.identity()) && lease.fence == term.fence()
            });
            Ok((is_current || fault == HoldAsksNobody).then_some(()).ok_or(found))
        })?;
        self.held.push(term.election().clone());
        match current {
            Ok(()) if fault == HoldRefusesToDrain && is_draining => {
                Err(HoldError::NotCurrent { fence: term.fence(), current: None })
            }
            Ok(()) => Ok(()),
            Err(found) => {
                Err(HoldError::NotCurrent { fence: term.fence(), current: found.map(Box::new) })
            }
        }
    }

    async fn count(&mut self) -> Result<i64, BoxError> {
        self.snapshot();
        Ok(self.count.load(Ordering::SeqCst))
    }

    async fn add(&mut self) -> Result<(), BoxError> {
        self.added += 1;
        Ok(())
    }

    async fn commit(mut self) -> Result<(), BoxError> {
        if self.store.holds.broken() != self.broken_before {
            return Err("somebody has broken the hold".into());
        }
        self.count.fetch_add(std::mem::take(&mut self.added), Ordering::SeqCst);
        Ok(())
    }
}

impl Drop for InMemory {
    fn drop(&mut self) {
        let is_rolled_back = self.added > 0;
        if is_rolled_back && self.fault() == DroppedTransactionsCommit {
            self.count.fetch_add(self.added, Ordering::SeqCst);
        }
        if is_rolled_back && self.fault() == HoldOutlivesItsTransaction {
            return;
        }
        self.held.iter().for_each(|election| self.store.holds.remove(election));
    }
}
