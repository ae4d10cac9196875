//! `cargo xtask model`: every interleaving of a small election, on the state machine that ships.

use crate::{Command, Failure, cargo, steps::Steps};

pub(crate) const COMMAND: Command = Command {
    name: "model",
    usage: "model [--large] [NAME..]",
    about: "explores every interleaving of small elections; --large: also those without a known end",
    run,
};

fn run(arguments: &[String]) -> Result<(), Failure> {
    let mut steps = Steps::default();
    let outcome = explore(&mut steps, arguments);
    steps.print_summary();
    outcome
}

/// Builds the model checker with optimisation, which it is some fifteen times faster with, and runs it.
pub(crate) fn explore(steps: &mut Steps, arguments: &[String]) -> Result<(), Failure> {
    let model = ["--release", "--package", "tenure-model"];
    steps.program("build of the model checker", cargo::cargo().arg("build").args(model))?;
    steps.program(
        "model",
        cargo::cargo().args(["run", "--quiet"]).args(model).arg("--").args(arguments),
    )
}
