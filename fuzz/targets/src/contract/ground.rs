//! What a case is played on.

use std::{future::Future, time::Duration};

use tenure::{ElectionName, ManualClock, MemoryStore, Store, store::Session};

/// A store, and a hand on what lies beneath it.
pub trait Ground {
    /// The store under test.
    type Store: Store;

    /// Whether this ground moves the store's clock, and its fences count from one: then all is known to the nanosecond. If not,
    /// leases are either so long that they do not run out, or waited for.
    const EXACT: bool = false;

    /// Another store on the same records.
    fn store(&self) -> Self::Store;

    /// Deletes the record of `election`, as a careless operator would.
    fn forget(&self, election: &ElectionName) -> impl Future<Output = ()>;

    /// Waits until the lease that was just written for `short` has run out, if the store has a clock to say so.
    fn wait_out(
        &self,
        session: &mut <Self::Store as Store>::Session,
        short: Duration,
    ) -> impl Future<Output = ()> {
        async move {
            for _ in 0..3_000 {
                let lease = session.inspect().await.expect("the store answers");
                let ttl = lease.expect("there is a record").ttl;
                if ttl.is_none_or(|ttl| ttl.is_zero()) {
                    return;
                }
                tokio::time::sleep(short / 4).await;
            }
            panic!("the lease does not run out");
        }
    }

    /// Lets time pass, where that is possible.
    fn pass(&self, time: Duration) {
        let _ = time;
    }
}

pub(super) struct InMemory {
    pub(super) store: MemoryStore,
    pub(super) hand: ManualClock,
}

impl Ground for InMemory {
    type Store = MemoryStore;

    const EXACT: bool = true;

    fn store(&self) -> MemoryStore {
        self.store.clone()
    }

    async fn forget(&self, election: &ElectionName) {
        self.store.forget(election);
    }

    async fn wait_out(&self, _: &mut <MemoryStore as Store>::Session, short: Duration) {
        self.pass(short);
    }

    fn pass(&self, time: Duration) {
        self.hand.advance(time);
    }
}
