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
//! - **One message and one round trip per operation**, in the simple query protocol, with nothing prepared, nothing set
//!   for the session, and no startup parameter that a pooler refuses: a URL that leads to PgBouncer in transaction mode
//!   works as one that leads to the server, with nothing to set.
//! - **The server's clock alone** says whether a lease has expired, read after the row was locked. The clocks of the
//!   candidates take no part.
//! - **No advisory locks, no long transactions**: a lease is a row, and outlives connections, restarts and fail-overs.
//! - **Followers only read**: looking at a lease and losing one write nothing, not even to the log.
//! - **Hints**: every release notifies, in its own transaction. With [`listen_url`](PostgresStore::listen_url) candidates
//!   listen, on a connection of their own, and a hand-over takes milliseconds.
//! - **Fenced writes**: [`hold_term`](PostgresStore::hold_term) makes a transaction of yours the leader's, or fails it.
//! - **Errors say what to do**, and whether they pass by themselves: [`PostgresError`] has the table.
//!
//! # Behind a pooler
//! A pooler's own waiting counts as the server's: while it has no connection free, a call waits, until the elector gives
//! it up. Transactions of the application occupy connections too, also those that [hold a
//! term](PostgresStore::hold_term): with as many of them at once as the pooler has connections for the user, renewals wait
//! for one to end, so give the store a user of its own, or a larger pool. When the pooler restarts, the next call connects
//! anew. When its server restarts, PgBouncer tries again after `server_login_retry` (15 s): set that to a second or two
//! if a leader is to survive it.
//!
//! # What it does not do
//! A fail-over to an asynchronous replica can lose the latest writes; so can a crash with `synchronous_commit = off`.
//! Fences rise all the same, because they follow the server's clock, but there may then be two leaders for as long as
//! the lost lease would have run. Replicate synchronously where that matters, or guard what is written by the fence.
//!
//! # What it needs
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
