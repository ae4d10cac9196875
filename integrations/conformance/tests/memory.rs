//! The in-process store keeps the whole contract.

use std::sync::Mutex;

use tenure::{ElectionName, MemoryBackup, MemoryStore};
use tenure_conformance::{Subject, Unsupported, suite};

#[derive(Default)]
struct InMemory {
    store: MemoryStore,
    backup: Mutex<Option<MemoryBackup>>,
}

impl Subject for InMemory {
    type Store = MemoryStore;

    async fn store(&self) -> MemoryStore {
        self.store.clone()
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

suite!(async || InMemory::default(), unsupported: [
    "fences::a_fence_rises_over_a_lost_record_for_who_has_seen_nothing",
    "fences::a_fence_rises_over_a_restored_record_for_who_has_seen_nothing",
    "schema::a_record_can_be_compared_byte_by_byte",
    "schema::all_replicas_may_create_the_schema_at_once",
    "schema::without_a_schema_a_term_is_lost_and_every_other_call_fails",
]);
