//! What is checked with any bytes at all: by a fuzzer, that looks for bytes which break it, and by ordinary tests, which
//! repeat what the fuzzer has found worth keeping.
//!
//! Each target is a function that reads its bytes as a case, and panics where a promise is broken. Those of [`TARGETS`]
//! need nothing but this process; those of [`SERVER_TARGETS`] start a private database when they are first called, and
//! keep it until the process ends. `cargo xtask fuzz` has cargo-fuzz search (`fuzz/`), and `fuzz/corpus/` has the inputs
//! that are kept.

// Whatever is unwrapped here is checked by it.
#![allow(clippy::unwrap_used)]

mod arithmetic;
mod candidate;
mod config;
pub mod contract;
mod fleet;
mod http;
mod input;
mod life;
mod pacing;
mod quoting;
mod secrets;
mod timing;
mod urls;

use std::{fmt, path::PathBuf};

/// A function that panics if its bytes break a promise.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct Target {
    /// The name of its corpus, and of the program that fuzzes it.
    pub name: &'static str,
    /// Checks one case.
    pub run: fn(&[u8]),
}

impl Target {
    const fn new(name: &'static str, run: fn(&[u8])) -> Self {
        Self { name, run }
    }

    /// Where the inputs are kept that are repeated by tests.
    #[must_use]
    pub fn corpus(&self) -> PathBuf {
        [env!("CARGO_MANIFEST_DIR"), "..", "corpus", self.name].iter().collect()
    }
}

impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Target").field(&self.name).finish()
    }
}

/// Those that need nothing but this process.
pub const TARGETS: &[Target] = &[
    Target::new("arithmetic", arithmetic::check),
    Target::new("config", config::check),
    Target::new("contract", contract::in_memory),
    Target::new("fleet", fleet::check),
    Target::new("http", http::check),
    Target::new("pacing", pacing::check),
    Target::new("quoting_sqlite", quoting::sqlite::check),
    Target::new("timing", timing::check),
    Target::new("urls", urls::check),
];

/// Those that start a server of their own.
pub const SERVER_TARGETS: &[Target] = &[
    Target::new("quoting_mysql", quoting::mysql::check),
    Target::new("quoting_postgres", quoting::postgres::check),
];

/// Runs the target of this name: what a program of cargo-fuzz does with each input.
///
/// # Panics
/// If the bytes break a promise, or there is no such target.
pub fn run(name: &str, bytes: &[u8]) {
    let mut targets = TARGETS.iter().chain(SERVER_TARGETS);
    let target = targets.find(|target| target.name == name).expect("there is such a target");
    (target.run)(bytes);
}
