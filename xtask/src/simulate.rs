//! `cargo xtask simulate`: fleets of candidates on virtual time (`tests/simulation`).

use crate::{Command, Failure, cargo, steps::Steps};

pub(crate) const COMMAND: Command = Command {
    name: "simulate",
    usage: "simulate [arguments]",
    about: "fleets of candidates on virtual time, under every fault; --help tells the arguments",
    run,
};

fn run(arguments: &[String]) -> Result<(), Failure> {
    simulate(&mut Steps::default(), arguments)
}

/// Runs the program, built to be fast. Without arguments it plays what is played before a change goes in: 10,000 schedules
/// of each campaign, always the same ones.
pub(crate) fn simulate(steps: &mut Steps, arguments: &[String]) -> Result<(), Failure> {
    let mut program = cargo::cargo();
    program.args(["run", "--quiet", "--release", "--package", "tenure-simulation", "--"]);
    steps.program("simulation", program.args(arguments))
}
