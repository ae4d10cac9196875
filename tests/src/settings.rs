//! What a participant is started with.

use std::{error::Error, ffi::OsString, time::Duration};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use tenure::{
    DynStore, Elector, ElectorBuilder, Store,
    protocol::{Expiry, Timing},
};
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
    /// Whether a lease has run out is judged by watching alone, whatever the store's clock says.
    pub observed: bool,
    /// The store uses a pool of this many connections, of which the application knows: PostgreSQL only, and the store is
    /// a URL.
    pub pool: Option<u32>,
    /// The program and the arguments before those of the participant, which run it: one that shows it another time, for
    /// example. Of processes only.
    pub within: Vec<OsString>,
}

impl Settings {
    /// The usual ones of tests: a lease of 2 s, so that a fail-over does not take long, and a call may take 400 ms on a
    /// busy machine.
    #[must_use]
    pub fn new(store: impl Into<Value>, election: impl Into<String>) -> Self {
        let lease = Duration::from_secs(2);
        Self {
            store: store.into(),
            election: election.into(),
            lease,
            drain: None,
            observed: false,
            pool: None,
            within: Vec::new(),
        }
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

    /// Judging by watching alone.
    #[must_use]
    pub fn observed(&self) -> Self {
        Self { observed: true, ..self.clone() }
    }

    /// With a pool of this many connections that the application shares with its store.
    #[must_use]
    pub fn pool(&self, connections: u32) -> Self {
        Self { pool: Some(connections), ..self.clone() }
    }

    /// A candidate with these settings, but for the store, which is this one.
    pub fn elector(&self, store: impl Store) -> ElectorBuilder {
        let mut builder = Elector::builder(&self.election, store).lease_duration(self.lease);
        if let Some(drain) = self.drain {
            builder = builder.drain_timeout(drain);
        }
        if self.observed {
            builder = builder.expiry(Expiry::Observed);
        }
        builder
    }

    /// The timings that follow from these settings.
    ///
    /// # Panics
    /// If they are not possible.
    #[must_use]
    pub fn timing(&self) -> Timing {
        let store = connect(&self.store).expect("there is such a store");
        *self.elector(store).build().expect("the settings are possible").timing()
    }
}

/// The store that is configured so. No I/O.
///
/// # Errors
/// If there is no such store.
pub fn connect(store: &Value) -> Result<DynStore, Box<dyn Error + Send + Sync>> {
    Ok(serde_json::from_value::<StoreConfig>(store.clone())?.connect()?)
}
