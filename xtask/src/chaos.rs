//! `cargo xtask chaos` and `cargo xtask soak`: real fleets on real servers that are broken underneath (`tests/chaos`).

use crate::{Command, Failure, cargo, servers, steps::Steps};

pub(crate) const CHAOS: Command = Command {
    name: "chaos",
    usage: "chaos [arguments]",
    about: "elections on servers that are broken underneath; --help tells the arguments, --list the scenarios",
    run: |arguments| run(arguments, play),
};

pub(crate) const SOAK: Command = Command {
    name: "soak",
    usage: "soak [--minutes N]",
    about: "random faults for long; what must not grow is watched",
    run: |arguments| run(arguments, soak),
};

fn run(
    arguments: &[String],
    start: fn(&mut Steps, &[String]) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let mut steps = Steps::default();
    let outcome = steps
        .step("servers", servers::ensure_installed)
        .and_then(|()| start(&mut steps, arguments));
    steps.print_summary();
    outcome
}

/// Without arguments: each scenario once, as before a change goes in. The report is written beside what cargo builds,
/// unless it is to be elsewhere.
pub(crate) fn play(steps: &mut Steps, arguments: &[String]) -> Result<(), Failure> {
    let mut program = program(steps)?;
    program.arg("play").args(arguments);
    if !arguments.iter().any(|argument| argument.starts_with("--report")) {
        program.arg("--report").arg(cargo::target_directory()?.join("chaos.html"));
    }
    steps.program("chaos", &mut program)
}

fn soak(steps: &mut Steps, arguments: &[String]) -> Result<(), Failure> {
    let mut program = program(steps)?;
    steps.program("soak", program.arg("soak").args(arguments))
}

/// Builds it, with the programs that it starts: all of the workspace, as for the tests, which have most of it built.
fn program(steps: &mut Steps) -> Result<std::process::Command, Failure> {
    let build = ["build", "--workspace", "--all-features", "--bins", "--examples"];
    steps.program("build for chaos", cargo::cargo().args(build))?;
    let program = cargo::target_directory()?.join("debug/tenure-chaos");
    let mut program = std::process::Command::new(program);
    program.current_dir(cargo::root());
    Ok(program)
}
