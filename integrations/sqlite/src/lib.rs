//! Leases in a SQLite file, for [tenure]: replicas on one host, and nothing to install.
//!
//! ```
//! use tenure_sqlite::SqliteStore;
//!
//! # let directory = tempfile::tempdir()?;
//! # let path = directory.path().join("app.db");
//! # let path = path.to_str().ok_or("not UTF-8")?;
//! # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
//! let store = SqliteStore::new(path)?; // or "sqlite:/var/lib/app/app.db". No I/O: wrong URLs fail here
//! store.ensure_schema().await?; // safe on every replica at once
//! assert!(store.leaders().await?.is_empty());
//! # Ok::<_, Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<_, Box<dyn std::error::Error>>(())
//! ```
//!
//! - **One clock for all candidates**: they run on one host, so each reads the host's own, which goes on while the machine is
//!   suspended and which nobody can set. The wall clock takes no part in it.
//! - **Restarts of the host** are noticed by its boot id. What was written before one is never taken for expired; it is
//!   judged by watching it, for one whole lease.
//! - **One statement per operation**, without explicit transactions (but on a pool of yours), in WAL mode: readers are never
//!   blocked, writers wait for each other no longer than the call may take.
//! - **Followers only read**; losing a lease writes nothing.
//! - **Fenced writes** by [`SqliteStore::hold_term`], in transactions on the same file.
//! - **No wake-ups**: nothing in SQLite tells one process what another has written. A hand-over takes a `retry_period`, which
//!   may be short here, since a look is a read of some pages that are in memory.
//!
//! The file must lie on a local file system: SQLite's locks do not work over a network. Processes in containers may
//! share it as long as they share the host. Where they do not share its clock (time namespaces, other virtual machines)
//! nobody's lease is taken for expired by the clock either, and everything is judged by watching.
//!
//! Linux, Android and macOS tell the boots of a host apart. On other systems, and where `/proc` is not mounted, every process counts as a boot of its own:
//! as safe, but a lease is taken over one whole lease after its leader has died instead of at its end.
//!
//! Replacing or deleting the file while candidates run counts as losing all records: leaders notice at their next renewal.

mod clock;
mod error;
mod hold;
mod link;
mod record;
mod session;
mod setup;
mod store;
mod table;

pub use sqlx;

pub use self::{error::SqliteError, session::SqliteSession, setup::SetupError, store::SqliteStore};
