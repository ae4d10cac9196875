//! `cargo xtask simulate`: fleets of candidates on virtual time (`tests/simulation`).

use crate::{Command, Failure, cargo, steps::Steps};

pub(crate) const COMMAND: Command = Command {
    name: "simulate",
    usage: "simulate [arguments]",
    about: "fleets of candidates on virtual time, under every fault; --help tells the arguments",
    run,
};

/// The program, built to be fast. Without arguments it plays what is played before a change goes in: 10,000 schedules of
/// each campaign, always the same ones.
pub(crate) fn program() -> std::process::Command {
    let mut command = cargo::cargo();
    command.args(["run", "--quiet", "--release", "--package", "tenure-simulation", "--"]);
    command
}

fn run(arguments: &[String]) -> Result<(), Failure> {
    Steps::default().program("simulation", program().args(arguments))
}
