//! Leases in a table of MySQL or MariaDB, for [tenure].
//!
//! ```no_run
//! use tenure_mysql::MysqlStore;
//!
//! # async fn main_() -> Result<(), Box<dyn std::error::Error>> {
//! let store = MysqlStore::new("mysql://app:secret@db.internal/app")?; // no I/O: wrong URLs fail here
//! store.ensure_schema().await?; // safe on every replica at once
//! # Ok(())
//! # }
//! ```
//!
//! - **One message and one round trip per operation**: a transaction of a few statements, sent together.
//! - **The server's clock alone** says whether a lease has expired, read after the row was locked. The clocks of the
//!   candidates take no part, nor does any time zone.
//! - **No setting of the server's or the session's matters**: the isolation level is that of each transaction, and the
//!   statements mean the same under every `sql_mode`, character set and `completion_type`.
//! - **Followers only read**: looking at a lease and losing one write nothing, not even to the logs.
//! - **Fenced writes**: [`hold_term`](MysqlStore::hold_term) holds a term inside a transaction of yours, while the leader's
//!   renewals pass. For this there is a second table beside the first, with one row for each election.
//! - **Errors say what to do**, and whether they pass by themselves: [`MysqlError`] has the table.
//! - **No hints**: neither server can tell a client that something has changed without a connection that does nothing but
//!   wait for it. A hand-over takes as long as the others take to look: `retry_period`, or what is left of the lease.
//!
//! # What it needs
//!
//! MariaDB 10.6, MySQL 8.0, or newer, with InnoDB. All statements are those that both documentations allow; there is one
//! text for both, in which MariaDB is asked for a time limit on each statement by a comment that only it reads. **It was
//! tested on MariaDB 10.11, with and without that comment. It was never run on MySQL itself.**
//!
//! The user needs `SELECT`, `INSERT` and `UPDATE` on both tables, and `CREATE` only if
//! [`ensure_schema`](MysqlStore::ensure_schema) is to create them; [`schema_sql`](MysqlStore::schema_sql) gives the same to
//! migration tools. A binary log, if there is one, must be written in the format `ROW` or `MIXED`.
//!
//! # What can lose a lease
//!
//! Fences rise in all these cases, because they follow the server's clock, but there may be two leaders for as long as the
//! lost lease would have run. Guard what is written by the fence where that matters.
//!
//! - **A crash** with `innodb_flush_log_at_trx_commit` other than 1 can lose the latest writes.
//! - **A fail-over to an asynchronous replica** can, too. Use semi-synchronous or group replication, and a fail-over that
//!   waits for it. A replica that is read-only refuses all writes; what is read there may be old, so send the elections
//!   through the name or address that follows the primary. Every attempt after an error connects anew.
//! - **Galera and group replication** find collisions between nodes at the commit (error 1213, tried again), so there is
//!   one leader also when candidates write to different nodes; what they read may be old for a moment, which costs a claim
//!   that is lost. But a lock is known to one node only: **a hold keeps away nobody who takes over through another node,
//!   and neither side notices**. With fenced writes, send everything through one node. Set `wsrep_sync_wait = 1` where
//!   reads may go elsewhere. None of this was tested, nor were ProxySQL and MaxScale.

mod error;
mod hold;
mod link;
mod literal;
mod record;
mod session;
mod setup;
mod store;
mod table;

pub use sqlx;

pub use self::{error::MysqlError, session::MysqlSession, setup::SetupError, store::MysqlStore};
