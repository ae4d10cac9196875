//! What the examples consist of. Each program in `examples/` is a thin `main` over one of these modules, so that the
//! `failover` program starts replicas that are the `axum` program, and tests run both as users do.
//!
//! The README of the project is compiled here too: its example runs with the tests of this package.

pub mod actix_replica;
pub mod args;
#[cfg(unix)]
pub mod failover;
#[cfg(unix)]
pub mod fencing;
pub mod grpc;
pub mod ledger;
pub mod metrics;
pub mod proxy;
pub mod replica;
pub mod signals;
pub mod websocket;

use std::{error::Error, process::ExitCode};

use tracing_subscriber::EnvFilter;

/// Sends logs to stderr: what `RUST_LOG` asks for, else everything from `level` on.
pub fn start_logging(level: &str) {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(level));
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).init();
}

/// Says on stderr why a program fails, with all causes, and gives the exit code for that.
pub fn complain(program: &str, error: &dyn Error) -> ExitCode {
    let mut why = error.to_string();
    for cause in std::iter::successors(error.source(), |&cause| cause.source()) {
        let cause = cause.to_string();
        // Some errors repeat their cause themselves.
        if !why.ends_with(&cause) {
            why = format!("{why}: {cause}");
        }
    }
    eprintln!("{program}: {why}");
    ExitCode::FAILURE
}

#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
pub mod readme {}
