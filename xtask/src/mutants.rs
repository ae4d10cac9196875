//! `cargo xtask mutants`: seeds bugs, and sees whether the tests notice.
//!
//! Shipped sources contain no bug and no switch. The bugs stand in `xtask/mutants/*.toml`, as replacements of text, and go into
//! a copy of the workspace, where an environment variable says which of them is awake. So all are built at once, in the same
//! target directory and with the same features as everything else, and each costs no more than running some test programs.

mod layer;
mod seed;
mod table;
mod watch;
mod workspace;

use std::{collections::BTreeMap, time::Duration};

use self::{
    layer::{Layer, Programs, Trial},
    seed::Seed,
    watch::{Verdict, watch},
};
use crate::{Command, Failure, cargo, servers, steps::Steps};

pub(crate) const COMMAND: Command = Command {
    name: "mutants",
    usage: "mutants [--all] [--no-servers] [NAME..]",
    about: "seeds bugs, one after the other, and sees that the tests notice; --all: cargo-mutants as well",
    run,
};

/// Which `cargo mutants` is installed for `--all`.
const CARGO_MUTANTS: &str = "cargo-mutants@27.1.0";

fn run(arguments: &[String]) -> Result<(), Failure> {
    let all = arguments.iter().any(|argument| argument == "--all");
    let with_servers = !arguments.iter().any(|argument| argument == "--no-servers");
    let names: Vec<_> = arguments.iter().filter(|name| !name.starts_with("--")).collect();
    if let Some(unknown) = arguments
        .iter()
        .find(|name| name.starts_with("--") && !["--all", "--no-servers"].contains(&name.as_str()))
    {
        return Err(Failure::new(format!("unknown argument {unknown}; usage: {}", COMMAND.usage)));
    }
    let mut steps = Steps::default();
    let outcome = try_all(&mut steps, with_servers, &names);
    let generated = if all { generate(&mut steps) } else { Ok(()) };
    steps.print_summary();
    outcome.and(generated)
}

/// Seeds all bugs, or those that are named, and fails unless every one is noticed by each layer that it names.
pub(crate) fn try_all(
    steps: &mut Steps,
    with_servers: bool,
    names: &[&String],
) -> Result<(), Failure> {
    let seeds = seed::all()?;
    if let Some(unknown) = names.iter().find(|name| seeds.iter().all(|seed| seed.name != ***name)) {
        return Err(Failure::new(format!("there is no seeded bug {unknown}")));
    }
    table::check(&seeds)?;
    if with_servers {
        steps.step("servers", servers::ensure_installed)?;
    }
    let mut programs = Programs::default();
    steps.step("build of the seeded workspace", || {
        let root = workspace::prepare(&seeds)?;
        programs = Programs::build(&root, with_servers)?;
        Ok(())
    })?;
    let wanted: Vec<&Seed> = seeds
        .iter()
        .filter(|seed| names.is_empty() || names.iter().any(|name| seed.name == **name))
        .collect();
    let mut trials = Vec::new();
    let mut left_out = 0;
    for seed in wanted {
        for (layer, tests) in &seed.caught_by {
            match layer.trials(seed, tests, &programs)? {
                none if none.is_empty() => left_out += 1,
                some => trials.push((seed, layer, some)),
            }
        }
    }
    steps.step("without a seeded bug", || pass_unseeded(&trials))?;
    let outcome = steps.step("with one at a time", || fail_seeded(&trials));
    if left_out > 0 {
        println!("NOT TRIED, as asked by --no-servers: {left_out}");
    }
    outcome
}

type Planned<'a> = (&'a Seed, &'a Layer, Vec<Trial>);

/// Every test that is to notice something must pass when there is nothing to notice.
fn pass_unseeded(planned: &[Planned<'_>]) -> Result<(), Failure> {
    let mut distinct = BTreeMap::new();
    for trial in planned.iter().flat_map(|(_, _, trials)| trials) {
        distinct.entry((trial.executable.clone(), trial.arguments.clone())).or_insert(trial);
    }
    for trial in distinct.into_values() {
        match watch(trial, None)?.verdict {
            Verdict::Passed => {}
            other => return Err(Failure::new(format!("{trial}, without a seeded bug: {other}"))),
        }
    }
    Ok(())
}

fn fail_seeded(planned: &[Planned<'_>]) -> Result<(), Failure> {
    let mut survivors = Vec::new();
    for (seed, layer, trials) in planned {
        let mut took = Duration::ZERO;
        let mut noticed = None;
        for trial in trials {
            let seen = watch(trial, Some(&seed.name))?;
            took += seen.took;
            match seen.verdict {
                Verdict::Passed => {}
                Verdict::Hung if !seed.hangs => noticed = Some(Err("it hangs".to_owned())),
                caught => noticed = Some(Ok(format!("{trial}: {caught}"))),
            }
            if noticed.is_some() {
                break;
            }
        }
        let (mark, how) = match &noticed {
            Some(Ok(how)) => ("caught", how.as_str()),
            Some(Err(why)) => ("FAILED", why.as_str()),
            None => ("SURVIVED", ""),
        };
        println!("{mark:<8} {:>6.1} s  {:<34} {layer:<11} {how}", took.as_secs_f64(), seed.name);
        if !matches!(noticed, Some(Ok(_))) {
            survivors.push(format!("\n  {} ({layer})", seed.name));
        }
    }
    println!("{} caught, {} not", planned.len() - survivors.len(), survivors.len());
    if survivors.is_empty() && !planned.is_empty() {
        return Ok(());
    }
    Err(Failure::new(format!("seeded bugs that were not noticed:{}", survivors.concat())))
}

/// Bugs that a program makes up, in the two folders that everything else rests on. Takes an hour or more, and has survivors,
/// which `tests/README.md` explains.
fn generate(steps: &mut Steps) -> Result<(), Failure> {
    let installed = cargo::cargo().args(["mutants", "--version"]).output();
    if !installed.is_ok_and(|output| output.status.success()) {
        steps.program(
            "install cargo-mutants",
            cargo::cargo().args(["install", "--locked", CARGO_MUTANTS]),
        )?;
    }
    steps.program(
        "cargo mutants",
        cargo::cargo()
            .args(["mutants", "--package", "tenure", "--all-features", "--test-tool", "cargo"])
            .args(["--file", "src/protocol/**", "--file", "src/term/**", "--", "--lib"]),
    )
}
