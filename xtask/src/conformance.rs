//! `cargo xtask conformance`: the acceptance suite on every store and every path to it.

use crate::{
    Command, Failure,
    cargo::{self, TestProgram},
    servers,
    steps::Steps,
    verdicts::Table,
};

pub(crate) const COMMAND: Command = Command {
    name: "conformance",
    usage: "conformance [--no-servers]",
    about: "the acceptance suite on all stores, as a table of obligations; installs missing servers",
    run,
};

/// The tests in which packages try the suite on their stores: without a server, and with one.
const WITHOUT_SERVERS: &[&str] = &["conformance"];
const WITH_SERVERS: &[&str] = &["conformance", "server_conformance"];

/// More than there are processors: most of what an obligation does is to wait for a server, or for a lease to expire.
const TEST_THREADS: &str = "--test-threads=8";

fn run(arguments: &[String]) -> Result<(), Failure> {
    let tests = match arguments {
        [] => WITH_SERVERS,
        [only] if only == "--no-servers" => WITHOUT_SERVERS,
        _ => return Err(Failure::new(format!("unknown arguments; usage: {}", COMMAND.usage))),
    };
    let mut steps = Steps::default();
    if tests == WITH_SERVERS {
        steps.step("servers", servers::ensure_installed)?;
    }
    let mut programs = Vec::new();
    steps.step("build", || {
        programs = cargo::test_programs(tests)?;
        Ok(())
    })?;

    let mut table = Table::new(tenure_conformance::obligations());
    let mut outcomes = Vec::new();
    for program in &programs {
        outcomes.push(steps.step(&program.package, || try_suite(program, &mut table)));
    }
    println!("{table}");
    steps.print_summary();
    outcomes.into_iter().collect::<Result<(), _>>()?;
    judge(&table)
}

fn try_suite(program: &TestProgram, table: &mut Table) -> Result<(), Failure> {
    let failed = |why: String| Failure::new(format!("the tests of {}: {why}", program.package));
    let output = std::process::Command::new(&program.executable)
        .args(["--show-output", TEST_THREADS])
        .current_dir(&program.directory)
        .stderr(std::process::Stdio::inherit())
        .output()
        .map_err(|error| failed(format!("cannot be started: {error}")))?;
    let printed = String::from_utf8_lossy(&output.stdout);
    table.add(&program.package, &printed);
    if output.status.success() {
        return Ok(());
    }
    let how = printed.split_once("\nfailures:\n").map_or(&*printed, |(_, how)| how);
    println!("{how}");
    Err(failed(output.status.to_string()))
}

fn judge(table: &Table) -> Result<(), Failure> {
    let failures = table.failures();
    if failures.is_empty() && table.paths() > 0 {
        return Ok(());
    }
    let failures: Vec<_> =
        failures.into_iter().map(|(path, name)| format!("\n  {path}: {name}")).collect();
    Err(Failure::new(format!(
        "{} obligations on {} paths are broken or were not tried{}",
        failures.len(),
        table.paths(),
        failures.concat()
    )))
}
