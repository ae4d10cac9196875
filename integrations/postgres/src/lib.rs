//! Leases in a PostgreSQL table, for [tenure].
//!
//! ```no_run
//! use tenure_postgres::PostgresStore;
//!
//! # async fn main_() -> Result<(), Box<dyn std::error::Error>> {
//! let store = PostgresStore::new("postgres://app:secret@db.internal/app")?; // no I/O: wrong URLs fail here
//! store.ensure_schema().await?; // safe on every replica at once
//! # Ok(())
//! # }
//! ```
//!
//! - **One message and one round trip per operation**, in the simple query protocol, with nothing prepared and nothing
//!   set for the session: it works through PgBouncer in transaction mode as it does without.
//! - **The server's clock alone** says whether a lease has expired, read after the row was locked. The clocks of the
//!   candidates take no part.
//! - **No advisory locks, no long transactions**: a lease is a row, and outlives connections, restarts and fail-overs.
//! - **Followers only read**: looking at a lease and losing one write nothing, not even to the log.
//!
//! A fail-over to an asynchronous replica can lose the latest writes; so can a crash with `synchronous_commit = off`.
//! Fences rise all the same, because they follow the server's clock, but there may then be two leaders for as long as
//! the lost lease would have run. Replicate synchronously where that matters, or guard what is written by the fence.
//!
//! PostgreSQL 13 or newer. The role needs `SELECT`, `INSERT` and `UPDATE` on the table, and `CREATE` on its schema only
//! if [`ensure_schema`](PostgresStore::ensure_schema) is to create it; [`schema_sql`](PostgresStore::schema_sql) gives
//! the same to migration tools.

mod error;
mod hints;
mod hold;
mod jitter;
mod link;
mod literal;
mod record;
mod session;
mod setup;
mod store;
mod table;

pub use sqlx;

pub use self::{
    error::PostgresError, session::PostgresSession, setup::SetupError, store::PostgresStore,
};
