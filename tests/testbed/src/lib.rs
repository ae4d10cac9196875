//! Private servers for tests, and the faults that tests need: a server that is frozen, killed or restarted, a network
//! path that swallows everything or breaks.
//!
//! Everything here listens on loopback only, on ports that were free, with its files in a temporary directory; and it
//! goes away with whoever started it: when it is dropped, when a test panics, and also when the process of the test is
//! killed. Nothing needs an async runtime, so it goes on working while a test blocks one.
//!
//! Tests that start a server live in test programs whose names begin with `server_`; `cargo xtask test --no-servers`
//! leaves these out.
//!
//! ```no_run
//! let server = tenure_testbed::Postgres::start()?;
//! println!("{}", server.url());
//! server.stop(); // frozen: connections stay open, nothing answers
//! server.cont();
//! # Ok::<(), std::io::Error>(())
//! ```
#[cfg(unix)]
mod account;
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
pub use self::{
    mariadb::Mariadb,
    nats::Nats,
    pgbouncer::PgBouncer,
    postgres::Postgres,
    proxy::{Conditions, Direction, Proxy},
};
