//! `cargo xtask mutants`: seeds bugs, and sees whether the tests notice.
//!
//! Shipped sources contain no bug and no switch. The bugs stand in `xtask/mutants/*.toml`, as replacements of text, and go into
//! a copy of the workspace, where an environment variable says which of them is awake. So all are built at once, in the same
//! target directory and with the same features as everything else, and each costs no more than running some test programs.

mod document;
mod generated;
mod layer;
mod seed;
mod table;
mod watch;
mod workspace;

use std::{
    collections::BTreeMap,
    sync::atomic::{AtomicUsize, Ordering},
    thread,
    time::Duration,
};

use self::{
    layer::{Layer, Programs, Trial},
    seed::Seed,
    watch::{Seen, Verdict, watch},
};
use crate::{Command, Failure, servers, steps::Steps};

pub(crate) const COMMAND: Command = Command {
    name: "mutants",
    usage: "mutants [--all] [--no-servers] [NAME..]",
    about: "seeds bugs, one after the other, and sees that the tests notice; --all: cargo-mutants as well",
    run,
};

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
    let generated = if all { generated::try_all(&mut steps) } else { Ok(()) };
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
    let distinct: Vec<&Trial> = distinct.into_values().collect();
    let broken = side_by_side(&distinct, |trial| {
        let Seen { verdict, took, said } = watch(trial, None)?;
        let arguments = trial.arguments.join(" ");
        println!("{:>6.1} s  {trial} {arguments}", took.as_secs_f64());
        if verdict == Verdict::Passed {
            return Ok(None);
        }
        println!("{}", said.join("\n"));
        Ok(Some(format!("\n  {trial} {arguments}: {verdict}")))
    })?;
    if broken.is_empty() {
        return Ok(());
    }
    Err(Failure::new(format!("without a seeded bug:{}", broken.concat())))
}

fn fail_seeded(planned: &[Planned<'_>]) -> Result<(), Failure> {
    let survivors = side_by_side(planned, |(seed, layer, trials)| {
        let mut took = Duration::ZERO;
        let mut verdict = Verdict::Passed;
        for trial in trials {
            let seen = watch(trial, Some(&seed.name))?;
            took += seen.took;
            verdict = seen.verdict;
            if verdict != Verdict::Passed {
                break;
            }
        }
        // What comes to no end tells nobody what is wrong.
        let is_caught = matches!(verdict, Verdict::Failed(_) | Verdict::Died(_));
        let mark = if is_caught { "caught" } else { "NOT CAUGHT" };
        println!(
            "{mark:<10} {:>6.1} s  {:<34} {layer:<11} {verdict}",
            took.as_secs_f64(),
            seed.name
        );
        Ok((!is_caught).then(|| format!("\n  {} ({layer}): {verdict}", seed.name)))
    })?;
    println!("{} caught, {} not", planned.len() - survivors.len(), survivors.len());
    if survivors.is_empty() && !planned.is_empty() {
        return Ok(());
    }
    Err(Failure::new(format!("seeded bugs that were not caught:{}", survivors.concat())))
}

/// How many programs run at a time: most of them wait more than they compute.
const AT_A_TIME: usize = 2;

/// Does the work on each item, and returns what it found.
fn side_by_side<T: Sync>(
    items: &[T],
    work: impl Fn(&T) -> Result<Option<String>, Failure> + Sync,
) -> Result<Vec<String>, Failure> {
    let next = AtomicUsize::new(0);
    let worker = || {
        let mut found = Vec::new();
        while let Some(item) = items.get(next.fetch_add(1, Ordering::Relaxed)) {
            found.extend(work(item)?);
        }
        Ok(found)
    };
    thread::scope(|scope| {
        let workers: Vec<_> = (0..AT_A_TIME).map(|_| scope.spawn(worker)).collect();
        let mut all = Vec::new();
        for worker in workers {
            all.extend(worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?);
        }
        Ok(all)
    })
}
