//! `cargo xtask bench`: what is promised about speed, as ratios within one run.

use crate::{Command, Failure, cargo, servers, steps::Steps};

pub(crate) const COMMAND: Command = Command {
    name: "bench",
    usage: "bench",
    about: "cost of checks and of the layers, a term's edges, fail-over and hand-over times; fails where a limit is missed",
    run,
};

/// Each exits with a failure if it misses a limit.
const BENCHES: [&str; 7] =
    ["checks", "requests", "frameworks", "actors", "waiters", "fail_over", "hand_over"];

fn run(arguments: &[String]) -> Result<(), Failure> {
    if !arguments.is_empty() {
        return Err(Failure::new(format!("unknown arguments; usage: {}", COMMAND.usage)));
    }
    let mut steps = Steps::default();
    steps.step("servers", servers::ensure_installed)?;
    steps.program("build", bench().arg("--no-run"))?;
    let outcomes = BENCHES.map(|name| steps.program(name, bench().args(["--bench", name])));
    steps.print_summary();
    outcomes.into_iter().collect()
}

fn bench() -> std::process::Command {
    let mut command = cargo::cargo();
    command.args(["bench", "--package", "tenure-benches"]);
    command
}
