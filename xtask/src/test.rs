//! `cargo xtask test`: everything that must hold before a change goes in.
//!
//! All steps but one look at the whole workspace with all features, so that they agree on the features of every dependency
//! and share what they compile: once for clippy and docs, once for the tests. Then the machines that explore more than tests
//! do, each in its small scope, chaos among them, and last the seeded bugs that all of them must notice.

use crate::{
    Command, Failure, cargo, chaos, interleavings, model, mutants, servers, simulate, steps::Steps,
};

pub(crate) const COMMAND: Command = Command {
    name: "test",
    usage: "test [--no-servers]",
    about: "fmt, clippy, docs, all tests, examples as tests, all explorations; installs missing servers",
    run,
};

/// Integration tests whose names begin like this start a database server of their own.
const NEEDS_A_SERVER: &str = "server_";

fn run(arguments: &[String]) -> Result<(), Failure> {
    let with_servers = match arguments {
        [] => true,
        [only] if only == "--no-servers" => false,
        _ => return Err(Failure::new(format!("unknown arguments; usage: {}", COMMAND.usage))),
    };
    let (left_out, tests): (Vec<String>, Vec<String>) = cargo::integration_tests()?
        .into_iter()
        .partition(|test| !with_servers && test.starts_with(NEEDS_A_SERVER));

    let mut steps = Steps::default();
    let outcome = run_steps(&mut steps, with_servers, &tests);
    if !left_out.is_empty() {
        println!("NOT RUN, as asked by --no-servers, {} test programs:", left_out.len());
        println!("  {}", left_out.join("\n  "));
    }
    steps.print_summary();
    outcome
}

fn run_steps(steps: &mut Steps, with_servers: bool, tests: &[String]) -> Result<(), Failure> {
    if with_servers {
        steps.step("servers", servers::ensure_installed)?;
    }
    steps.program("fmt", cargo::cargo().args(["fmt", "--all", "--check"]))?;
    steps.program(
        "clippy",
        on_everything("clippy").args(["--all-targets", "--", "--deny", "warnings"]),
    )?;
    // As applications build them: with all features nobody would notice what is missing without them. The package left out
    // turns them on for everybody.
    steps.program(
        "clippy without features",
        cargo::cargo()
            .args(["clippy", "--workspace", "--exclude", "tenure-tests", "--lib"])
            .args(["--", "--deny", "warnings"]),
    )?;
    // The examples' pages are of little use, but cargo unites the features of development dependencies into the others'
    // only if it is asked for targets that have them; otherwise docs would compile most dependencies once more.
    steps.program(
        "docs",
        on_everything("doc")
            .args(["--no-deps", "--lib", "--bins", "--examples"])
            .env("RUSTDOCFLAGS", "--deny warnings"),
    )?;
    // Also builds the examples, which their tests start as programs.
    steps.program("build of tests and examples", on_everything("test").arg("--no-run"))?;
    let named = tests.iter().flat_map(|test| ["--test", test]);
    let ran = steps.tests(
        "tests",
        on_everything("test").args(["--no-fail-fast", "--lib", "--bins"]).args(named),
    );
    let doctests = steps.tests("doctests", on_everything("test").args(["--no-fail-fast", "--doc"]));
    // Each says something of its own, also after another has failed.
    let explored = [
        if with_servers { chaos::play(steps, &[]) } else { Ok(()) },
        interleavings::explore(steps),
        model::explore(steps, &[]),
        simulate::simulate(steps, &[]),
        mutants::try_all(steps, with_servers, &[]),
    ];
    explored.into_iter().fold(ran.and(doctests), Result::and)
}

fn on_everything(subcommand: &str) -> std::process::Command {
    let mut command = cargo::cargo();
    command.args([subcommand, "--workspace", "--all-features"]);
    command
}
