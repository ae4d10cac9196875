//! What a participant is started with.

use std::{error::Error, time::Duration};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use tenure::{DynStore, Elector, ElectorBuilder};
use tenure_config::StoreConfig;

/// What a participant is started with. Everything that is not set is derived from the lease, as in the library.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[allow(clippy::exhaustive_structs)] // tests change what they care for
pub struct Settings {
    /// Where leases are kept: a URL, or a table with the URL and the store's options, as in a configuration.
    pub store: Value,
    /// The election.
    pub election: String,
    /// How long a lease is valid.
    pub lease: Duration,
    /// How long a hand-over waits for work.
    pub drain: Option<Duration>,
}

impl Settings {
    /// The usual ones of tests: a lease of 2 s, so that a fail-over does not take long, and a call may take 400 ms on a
    /// busy machine.
    #[must_use]
    pub fn new(store: impl Into<Value>, election: impl Into<String>) -> Self {
        let lease = Duration::from_secs(2);
        Self { store: store.into(), election: election.into(), lease, drain: None }
    }

    /// With this lease.
    #[must_use]
    pub fn lease(&self, lease: Duration) -> Self {
        Self { lease, ..self.clone() }
    }

    /// With this limit on how long a hand-over waits.
    #[must_use]
    pub fn drain(&self, drain: Duration) -> Self {
        Self { drain: Some(drain), ..self.clone() }
    }

    /// A candidate with these settings.
    ///
    /// # Errors
    /// If there is no such store.
    pub fn elector(&self) -> Result<ElectorBuilder, Box<dyn Error + Send + Sync>> {
        let builder = Elector::builder(&self.election, connect(&self.store)?);
        let builder = builder.lease_duration(self.lease);
        Ok(match self.drain {
            Some(drain) => builder.drain_timeout(drain),
            None => builder,
        })
    }
}

/// The store that is configured so. No I/O.
///
/// # Errors
/// If there is no such store.
pub fn connect(store: &Value) -> Result<DynStore, Box<dyn Error + Send + Sync>> {
    Ok(serde_json::from_value::<StoreConfig>(store.clone())?.connect()?)
}
