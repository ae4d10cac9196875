//! The in-process store keeps the whole contract, with its wake-ups and without.

use std::sync::Mutex;

use tenure::{ElectionName, MemoryBackup, MemoryStore, Store, store::WithoutHints};
use tenure_conformance::{Subject, Unsupported};

struct InMemory<S> {
    /// As electors get it.
    offered: fn(MemoryStore) -> S,
    store: MemoryStore,
    backup: Mutex<Option<MemoryBackup>>,
}

impl<S> InMemory<S> {
    fn new(offered: fn(MemoryStore) -> S) -> Self {
        Self { offered, store: MemoryStore::new(), backup: Mutex::default() }
    }
}

impl<S: Store> Subject for InMemory<S> {
    type Store = S;

    async fn store(&self) -> S {
        (self.offered)(self.store.clone())
    }

    async fn lose_record(&self, election: &ElectionName) -> Result<(), Unsupported> {
        self.store.forget(election);
        Ok(())
    }

    async fn back_up(&self) -> Result<(), Unsupported> {
        *self.backup.lock().expect("nobody panics with it") = Some(self.store.backup());
        Ok(())
    }

    async fn restore(&self) -> Result<(), Unsupported> {
        self.store.restore(
            self.backup.lock().expect("nobody panics with it").as_ref().expect("backed up before"),
        );
        Ok(())
    }

    fn wall_clock(&self) -> Result<(), Unsupported> {
        Err(Unsupported("its wall clock stands at zero"))
    }
}

mod memory {
    use super::*;

    tenure_conformance::suite!(async || InMemory::new(|store| store), unsupported: [
        "fences::a_fence_rises_over_a_lost_record_for_who_has_seen_nothing",
        "fences::a_fence_rises_over_a_restored_record_for_who_has_seen_nothing",
        "schema::a_record_can_be_compared_byte_by_byte",
        "schema::all_replicas_may_create_the_schema_at_once",
        "schema::without_a_schema_a_term_is_lost_and_every_other_call_fails",
        "versions::*",
        "hold::*",
    ]);
}

mod memory_without_hints {
    use super::*;

    tenure_conformance::suite!(async || InMemory::new(WithoutHints), unsupported: [
        "fences::a_fence_rises_over_a_lost_record_for_who_has_seen_nothing",
        "fences::a_fence_rises_over_a_restored_record_for_who_has_seen_nothing",
        "schema::a_record_can_be_compared_byte_by_byte",
        "schema::all_replicas_may_create_the_schema_at_once",
        "schema::without_a_schema_a_term_is_lost_and_every_other_call_fails",
        "versions::*",
        "hints::*",
        "hold::*",
    ]);
}
