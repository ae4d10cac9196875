//! What a participant is started with.

use std::{error::Error, time::Duration};

use serde::{Deserialize, Serialize};
use tenure::{DynStore, Elector, ElectorBuilder, Store};
use tenure_postgres::PostgresStore;
use tenure_sqlite::SqliteStore;

/// What a participant is started with. Everything that is not set is derived from the lease, as in the library.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[allow(clippy::exhaustive_structs)] // tests change what they care for
pub struct Settings {
    /// Where leases are kept: `sqlite:PATH` or `postgres://...`.
    pub store: String,
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
    pub fn new(store: impl Into<String>, election: impl Into<String>) -> Self {
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

/// The URL names no store that tests know.
#[derive(Debug)]
#[allow(clippy::exhaustive_structs)]
pub struct UnknownStore(pub String);

impl std::fmt::Display for UnknownStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "no store is known for {:?}", self.0)
    }
}

impl Error for UnknownStore {}

/// The store at a URL. No I/O.
///
/// # Errors
/// If the URL is of no known store, or not a valid one.
pub fn connect(url: &str) -> Result<DynStore, Box<dyn Error + Send + Sync>> {
    match url.split_once(':') {
        Some(("sqlite", _)) => Ok(SqliteStore::new(url)?.into_dyn()),
        Some(("postgres", _)) => Ok(PostgresStore::new(url)?.into_dyn()),
        _ => Err(UnknownStore(url.to_owned()).into()),
    }
}
