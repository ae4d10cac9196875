//! `cargo xtask chaos` and `cargo xtask soak`: real fleets on real servers that are broken underneath (`tests/chaos`).

use crate::{Command, Failure, cargo, servers, steps::Steps};

pub(crate) const CHAOS: Command = Command {
    name: "chaos",
    usage: "chaos [arguments]",
    about: "elections on servers that are broken underneath; --help tells the arguments, --list the scenarios",
    run: |arguments| run("play", arguments),
};

pub(crate) const SOAK: Command = Command {
    name: "soak",
    usage: "soak [--minutes N]",
    about: "random faults for long; what must not grow is watched",
    run: |arguments| run("soak", arguments),
};

fn run(subcommand: &str, arguments: &[String]) -> Result<(), Failure> {
    let mut steps = Steps::default();
    let outcome = steps
        .step("servers", servers::ensure_installed)
        .and_then(|()| start(&mut steps, subcommand, arguments));
    steps.print_summary();
    outcome
}

/// Without arguments: each scenario once, as before a change goes in. The report is written beside what cargo builds.
pub(crate) fn play(steps: &mut Steps, arguments: &[String]) -> Result<(), Failure> {
    start(steps, "play", arguments)
}

fn start(steps: &mut Steps, subcommand: &str, arguments: &[String]) -> Result<(), Failure> {
    // All of the workspace, as for the tests, which have most of it built.
    let build = ["build", "--workspace", "--all-features", "--bins", "--examples"];
    steps.program("build for chaos", cargo::cargo().args(build))?;
    let target = cargo::target_directory()?;
    let mut program = std::process::Command::new(target.join("debug/tenure-chaos"));
    program.current_dir(cargo::root()).arg(subcommand).args(arguments);
    if subcommand == "play" && !arguments.iter().any(|argument| argument.starts_with("--report")) {
        program.arg("--report").arg(target.join("chaos.html"));
    }
    steps.program(if subcommand == "play" { "chaos" } else { subcommand }, &mut program)
}
