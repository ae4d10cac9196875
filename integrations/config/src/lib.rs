//! Elections and stores from configuration files and the environment, for [tenure].
//!
//! [`ElectionConfig`] deserializes with serde from whatever format the application has chosen, alone or as a part of its
//! own configuration, and builds the elector. [`connect`] is for those who only need a store from a URL.
//!
//! ```
//! use tenure_config::ElectionConfig;
//!
//! let config: ElectionConfig = toml::from_str(r#"
//!     election = "invoice-reconciler"
//!     store = "memory:"
//!     payload = "https://replica-7.internal:8443"
//!     lease_duration = "15s"
//! "#)?;
//! let store = config.store()?; // no I/O
//! # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
//! store.ensure_schema().await?;
//! # Ok::<_, tenure::StoreError>(())
//! # })?;
//! let elector = config.elector(store)?;
//! # drop(elector);
//! # Ok::<_, Box<dyn std::error::Error>>(())
//! ```
//!
//! # Keys
//!
//! | key | value | if it is left out |
//! |---|---|---|
//! | `election` | what is contended for | an error |
//! | `store` | a URL, or a table of `url` and the options below | an error |
//! | `payload` | what this candidate publishes while it leads | nothing |
//! | `label` | a prefix for this candidate's identity | none |
//! | `fixed_identity_risking_two_leaders` | the identity itself; read [its warning](tenure::ElectorBuilder::fixed_identity_risking_two_leaders) first | drawn anew for each elector |
//! | `lease_duration`, `renew_interval`, `retry_period`, `operation_timeout`, `safety_margin`, `drain_timeout`, `resign_pause` | a duration with its unit: `15s`, `1m 30s`, `500ms` | as in [`ElectorBuilder`](tenure::ElectorBuilder) |
//! | `expiry` | `either`, `observed` or `both` | `either`; `observed` on a store without a clock |
//! | `observer` | `true`: takes part without contending | `false` |
//! | `ready_when_told` | `true`: leads only once it has said that it is ready | `false` |
//!
//! # Stores
//!
//! The scheme of the URL says which store it is. Each but `memory:` is a feature of this crate, off by default.
//!
#![doc = include_str!("../stores.md")]
//!
//! A key that is unknown, an option of another kind of store, a value that cannot be read, a store whose feature is off,
//! timings that contradict each other: each is an error that names the key and the value. What is wrong with the store shows
//! when it is made, by [`ElectionConfig::store`], and all else at the latest when the elector is built. Values that may hold a
//! password are never shown; but mind what a format itself shows: the errors of the crate `toml` quote the line that cannot be
//! read (a misspelled `store`, for example), and in their `Debug` the whole text.
//!
//! # Environment
//!
//! Every value may be given as text, as an environment variable is. With the crate [config], for example,
//! `Environment::with_prefix("ELECTION").separator("__")` reads `ELECTION__STORE__URL` and `ELECTION__LEASE_DURATION`.
//!
//! [config]: https://docs.rs/config

mod election;
mod error;
mod kinds;
mod options;
mod scalar;
mod store;

use tenure::DynStore;

pub use self::{
    election::ElectionConfig,
    error::{ElectionConfigError, ValueError},
    store::StoreConfig,
};

/// The store at a URL, with all its options left at their defaults. No I/O: whether the database is there shows when it is
/// used.
///
/// ```
/// let store = tenure_config::connect("memory:")?;
/// assert!(tenure_config::connect("gopher://db").is_err());
/// # Ok::<_, tenure_config::ElectionConfigError>(())
/// ```
///
/// # Errors
/// [`ElectionConfigError`] if the URL is of no store that this crate knows, of one whose feature is off, or not valid.
pub fn connect(url: &str) -> Result<DynStore, ElectionConfigError> {
    StoreConfig::new(url)?.connect()
}
