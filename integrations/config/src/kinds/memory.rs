//! `memory:`, this process alone.

use tenure::{MemoryStore, Store};

use super::Kind;
use crate::error::ValueError;

pub(super) const KIND: Kind = Kind {
    name: "memory",
    form: "memory:",
    schemes: &["memory"],
    options: &[],
    connect: |url, _| {
        if url != "memory:" {
            let why = "must be `memory:`, and nothing after it: a database in memory has no name";
            return Err(ValueError::new("store.url", None, why).into());
        }
        Ok(MemoryStore::new().into_dyn())
    },
};
