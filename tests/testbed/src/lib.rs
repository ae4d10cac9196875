//! Private servers for tests, and the faults that tests need.
//!
//! - [`Postgres`], [`PgBouncer`], [`Mariadb`] and [`Nats`] can be frozen, killed, shut down and restarted; a database can be
//!   set back to a [`Backup`], and [`Postgres::standby_of`] another one takes over by [`Postgres::promote`].
//! - [`Proxy`] is a path between a client and its server: it can be slow, silent in either [`Direction`] or cut, reset
//!   connections at inconvenient moments, forget them, or lead elsewhere.
//!
//! Everything here listens on loopback only, on ports that were free, with its files in a temporary directory; and it
//! goes away with whoever started it: when it is dropped, when a test panics, and also when the process of the test is
//! killed. Nothing needs an async runtime, so it goes on working while a test blocks one.
//!
//! Tests that start a server live in test programs whose names begin with `server_`; `cargo xtask test --no-servers`
//! leaves these out.
//!
//! ```no_run
//! use std::time::Duration;
//! use tenure_testbed::{Conditions, Direction, Postgres, Proxy};
//!
//! let server = Postgres::start()?;
//! println!("{}", server.url());
//! server.stop(); // frozen: connections stay open, nothing answers
//! server.cont();
//!
//! let path = Proxy::start(server.addr())?;
//! println!("{}", path.addr());
//! path.set(Direction::ToClient, Conditions::default().delay(Duration::from_millis(80)));
//! path.heal();
//! # Ok::<(), std::io::Error>(())
//! ```

#[cfg(unix)]
mod account;
#[cfg(unix)]
mod instance;
#[cfg(unix)]
mod launch;
#[cfg(unix)]
mod mariadb;
#[cfg(unix)]
mod nats;
#[cfg(unix)]
mod pgbouncer;
#[cfg(unix)]
mod postgres;
pub mod programs;
#[cfg(unix)]
mod proxy;
#[cfg(unix)]
mod sandbox;
#[cfg(unix)]
mod supervisor;
#[cfg(unix)]
mod wire;

#[cfg(unix)]
pub use self::{
    instance::Backup,
    mariadb::Mariadb,
    nats::Nats,
    pgbouncer::PgBouncer,
    postgres::Postgres,
    proxy::{Conditions, Direction, Proxy},
};
