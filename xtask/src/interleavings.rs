//! `cargo xtask interleavings`: the threads that meet in a term, in every order, explored by loom.

use std::{env, path::PathBuf};

use crate::{Command, Failure, cargo, steps::Steps};

pub(crate) const COMMAND: Command = Command {
    name: "interleavings",
    usage: "interleavings",
    about: "every order in which threads can meet in a term, its watchdog and what is published of it",
    run,
};

/// Compiles what loom knows in place of atomics, locks and notifications. A name of our own: `--cfg loom` would change
/// tokio as well.
const FLAGS: &str = "--cfg tenure_loom";

/// What the modules are called in which tests are explored.
const MODULES: &str = "interleavings::";

fn run(arguments: &[String]) -> Result<(), Failure> {
    if !arguments.is_empty() {
        return Err(Failure::new(format!("unknown arguments; usage: {}", COMMAND.usage)));
    }
    let mut steps = Steps::default();
    let outcome = explore(&mut steps);
    steps.print_summary();
    outcome
}

/// Builds and runs all models.
pub(crate) fn explore(steps: &mut Steps) -> Result<(), Failure> {
    let before = steps.passed();
    steps.program("build for interleavings", explored().arg("--no-run"))?;
    let models = ["--", MODULES, "--nocapture", "--test-threads=2"];
    steps.tests("interleavings", explored().args(models))?;
    if steps.passed() == before {
        return Err(Failure::new(format!("there is no test in a module {MODULES:?}")));
    }
    Ok(())
}

/// The tests of the library, in a directory of their own: the flags would have everything else compiled anew.
fn explored() -> std::process::Command {
    let target = env::var_os("CARGO_TARGET_DIR").map_or_else(|| "target".into(), PathBuf::from);
    let mut command = cargo::cargo();
    command
        .args(["test", "--package", "tenure", "--lib"])
        // Loom and the stacks it switches between take most of the time.
        .args(["--config", "profile.dev.package.loom.opt-level=2"])
        .args(["--config", "profile.dev.package.generator.opt-level=2"])
        .env("RUSTFLAGS", FLAGS)
        .env("CARGO_TARGET_DIR", target.join("loom"));
    command
}
