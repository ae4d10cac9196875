//! The search, and what it found.

// What is timed here is how long people wait, not an election.
#![allow(clippy::disallowed_methods)]

use std::{
    fmt,
    time::{Duration, Instant},
};

use stateright::{Checker, HasDiscoveries, Model, Path, Property};

use crate::{
    model::{Action, Election},
    scope::Scope,
    world::World,
};

/// What came out of an exploration.
#[derive(Debug)]
#[non_exhaustive]
pub struct Report {
    /// What was explored.
    pub scope: Scope,
    /// How many states there are within the scope.
    pub states: usize,
    /// How many ways lead from one of them to the next.
    pub transitions: usize,
    /// How many of those lie between the beginning and the remotest state.
    pub depth: usize,
    /// How long it took.
    pub took: Duration,
    /// How often everything happened that must happen in this scope.
    pub marks: Vec<(&'static str, u64)>,
    /// Properties that do not hold, each with the way to where it does not.
    pub broken: Vec<(&'static str, String)>,
    /// What never happened although it should have: the exploration shows less than it claims to.
    pub missing: Vec<&'static str>,
}

impl Report {
    /// Whether all properties hold, and all happened that should.
    #[must_use]
    pub fn is_good(&self) -> bool {
        self.broken.is_empty() && self.missing.is_empty()
    }
}

/// Explores everything that may happen within the scope, or until the first property is broken.
#[must_use]
pub fn explore(scope: Scope, threads: usize) -> Report {
    let election = Election::new(scope);
    let started = Instant::now();
    let checker = election
        .clone()
        .checker()
        .threads(threads)
        .finish_when(HasDiscoveries::AnyFailures)
        .spawn_bfs()
        .join();
    let (mut broken, mut missing) = (Vec::new(), Vec::new());
    let marks = election.marks().collect();
    for Property { expectation, name, .. } in election.properties() {
        match (expectation.discovery_is_failure(), checker.discovery(name)) {
            (true, Some(path)) => broken.push((name, story(path))),
            (false, None) => missing.push(name),
            _ => {}
        }
    }
    Report {
        scope,
        states: checker.unique_state_count(),
        transitions: checker.state_count(),
        depth: checker.max_depth(),
        took: started.elapsed(),
        marks,
        broken,
        missing,
    }
}

/// What happened on the way, a line each with the phases before it, since candidates change places; and how everything stands
/// at its end.
fn story(path: Path<World, Action>) -> String {
    let last = format!("{:#?}", path.last_state());
    let line = |(world, action): (World, Option<Action>)| {
        let phases: Vec<_> = world.candidates().map(|(_, candidate)| candidate.phase()).collect();
        action.map(|action| format!("    {phases:?} {action:?}\n"))
    };
    path.into_vec().into_iter().filter_map(line).chain([last]).collect()
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { scope, states, transitions, depth, took, .. } = self;
        writeln!(
            f,
            "{:<12} {states:>11} states {transitions:>12} transitions, depth {depth:>3}, {:>6.1} s",
            scope.name,
            took.as_secs_f64()
        )?;
        for (name, count) in &self.marks {
            writeln!(f, "    {count:>11}  {name}")?;
        }
        for name in &self.missing {
            writeln!(f, "    NEVER HAPPENED: {name}")?;
        }
        for (name, story) in &self.broken {
            writeln!(f, "    BROKEN: {name}\n{story}")?;
        }
        Ok(())
    }
}
