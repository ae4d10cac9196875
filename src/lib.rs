//! Leader election for services that share nothing but a database.
//!
//! Replicas of one service, perhaps in clusters with no network between them, elect one leader through a lease in the
//! database that they already have. At most one of them considers itself the leader at any instant: through partitions,
//! hung or restarted databases, poolers, suspended machines, starved runtimes and killed processes. Whatever is uncertain
//! reads as *not leader*.
//!
//! ```
//! use std::time::Duration;
//! use tenure::{Elector, MemoryStore};
//!
//! # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
//! // In production: `tenure_postgres::PostgresStore::new("postgres://user:pass@db/app")?`, or tenure_sqlite's, and then
//! // `store.ensure_schema().await?`, which makes the table: nobody leads before it is there.
//! let elector = Elector::builder("invoice-reconciler", MemoryStore::new())
//!     .payload("https://leader.eu-west.internal:8443") // any bytes; followers can read them
//!     .lease_duration(Duration::from_secs(15))
//!     .build()?;
//! let leadership = elector.leadership(); // cheap to clone: what everybody else holds
//! let candidacy = elector.spawn();
//!
//! let term = leadership.leading().await?;
//! let reconciled = term.leader_only(async { "reconciled" }).await?; // dropped when the term ends
//! assert_eq!(reconciled, "reconciled");
//!
//! candidacy.shutdown().await?; // lets admitted work finish, then gives the lease back
//! # Ok::<_, Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<_, Box<dyn std::error::Error>>(())
//! ```
//!
//! # What is guaranteed
//! - Work that is polled through a [`Term`] is polled only while no other candidate's term is live. Every check compares a
//!   clock that also runs while the machine is suspended with a deadline that was counted from before the last renewal was
//!   sent.
//! - [`Fence`]s rise strictly from term to term, whoever leads, also when the record was lost or restored.
//! - A term ends on time whatever the store, the network or the application's runtime is doing: a thread of its own sees
//!   to that.
//! - A voluntary hand-over lets admitted work finish, and gives the lease back only when it has.
//!
//! # What is not
//! - A single poll, a blocking call or a thread that began before the deadline can run past it. Take a
//!   [guard](Term::guard), and hand the fence to whatever the leader writes to: only the receiving side can refuse a late
//!   write.
//! - A database that loses confirmed writes in a fail-over can elect a second leader within one lease; fences rise even
//!   then. So can a store clock that jumps forward by more than the safety margin, unless all candidates use
//!   [`Expiry::Observed`].
//! - A snapshot of a virtual machine that is restored clones identity and fence, which no election can notice.
//!
//! # Features
//! | feature | what it adds |
//! |---|---|
//! | `metrics` | what elections count and measure, for the crate [metrics](https://docs.rs/metrics) |
//! | `test-util` | [`testing`](https://docs.rs/tenure/latest/tenure/testing): leadership given and taken by hand, stores that fail when told to, clocks that tests control |

#![cfg_attr(docsrs, feature(doc_cfg))]

mod clock;
mod elector;
mod instant;
mod leadership;
mod lease;
mod memory;
pub mod protocol;
#[cfg(test)]
#[cfg(not(tenure_loom))] // its channels are tokio's
mod shown;
pub mod store;
mod sync;
mod telemetry;
mod term;
#[cfg(any(test, feature = "test-util"))]
#[cfg_attr(docsrs, doc(cfg(feature = "test-util")))]
pub mod testing;

#[cfg(feature = "metrics")]
#[cfg_attr(docsrs, doc(cfg(feature = "metrics")))]
pub use telemetry::metrics;

pub use clock::Clock;
#[cfg(any(test, feature = "test-util"))]
pub use clock::ManualClock;
pub use elector::{Candidacy, ConfigError, Elector, ElectorBuilder, StopError};
pub use instant::Instant;
pub use leadership::{
    IfLeader, LastError, Leader, LeaderOnlyError, Leadership, PastTerm, Status, StatusWatch,
    Stopped, Terms, Transition, Transitions,
};
pub use lease::{
    ElectionName, Fence, Identity, InvalidValue, Lease, MAX_NAME_BYTES, MAX_PAYLOAD_BYTES, Payload,
    TermEnd, Version,
};
#[cfg(any(test, feature = "test-util"))]
pub use memory::MemoryBackup;
pub use memory::{MemorySession, MemoryStore};
pub use protocol::{Expiry, Phase, Timing, TimingError, WorstCase};
pub use store::{DynStore, Store, StoreError};
pub use term::{
    Cancelled, EndWake, Ended, InFlight, LeaderOnly, Overran, Overrun, Term, TermEnded, TermGuard,
};
