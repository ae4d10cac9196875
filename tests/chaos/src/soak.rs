//! Random faults for long: what must hold at every moment, and what must not grow.

use std::{collections::BTreeMap, path::PathBuf, process::ExitCode, time::Duration};

use clap::Args;
use tenure_tests::{Stamp, oracle};

use crate::{
    about,
    footprint::Footprint,
    ground::SqlSession,
    kind::{Kind, Need},
    perform, record,
    scenarios::random,
    stage::{Mode, Stage},
};

#[derive(Debug, Args)]
pub(crate) struct SoakArguments {
    /// For how long.
    #[arg(long, default_value_t = 10)]
    minutes: u64,
    /// On which store.
    #[arg(long, default_value = "pgbouncer")]
    store: Kind,
    /// What is left to chance is determined by this.
    #[arg(long)]
    seed: Option<u64>,
    /// Keeps the result in this document.
    #[arg(long)]
    record: Option<PathBuf>,
}

/// How often what must not grow is looked at.
const ROUND: Duration = Duration::from_secs(20);

/// Runs until the time is over or something is wrong.
pub(crate) fn run(arguments: &SoakArguments, processes: Mode) -> ExitCode {
    let seed = arguments.seed.unwrap_or_else(|| fastrand::u64(..1_000_000));
    let duration = Duration::from_secs(arguments.minutes * 60);
    println!("{duration:?} on {}, seed {seed}", arguments.store);
    let mut soak = Soak::start(arguments.store, processes, seed);
    let started = Stamp::now();
    let mut problems = Vec::new();
    while problems.is_empty() && started.age() < duration {
        problems = perform::caught(|| soak.round()).unwrap_or_else(|panic| vec![panic]);
        println!("{:>6.0} s  {}", started.age().as_secs_f64(), soak.summary());
    }
    problems.extend(soak.growth());
    for problem in &problems {
        println!("{problem}");
    }
    let verdict = if problems.is_empty() { "ok" } else { "FAILED" };
    println!("{verdict}, seed {seed}");
    if let Some(document) = &arguments.record {
        let text = soak.account(arguments, seed, verdict);
        if let Err(error) = record::keep(document, "soak", &text) {
            eprintln!("{}: {error}", document.display());
            return ExitCode::FAILURE;
        }
    }
    if problems.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

struct Soak {
    stage: Stage,
    /// Keeps the other election from doing anything.
    lock: Option<SqlSession>,
    /// What was claimed for each fence, all together.
    terms: BTreeMap<i64, oracle::Claim>,
    footprints: Vec<Footprint>,
}

impl Soak {
    fn start(kind: Kind, processes: Mode, seed: u64) -> Self {
        let mut stage = Stage::new(kind, processes, seed);
        stage.start(4);
        // The one whose footprint is looked at.
        stage.keep(0);
        if kind.has(Need::Users) {
            stage.start_bystanders();
        }
        Self { stage, lock: None, terms: BTreeMap::new(), footprints: Vec::new() }
    }

    /// Faults for a while, and then a look at everything. Returns what is wrong.
    fn round(&mut self) -> Vec<String> {
        if self.stage.ground.kind.has(Need::Users) {
            // The one before has ended with its server, if that was killed.
            self.lock = None;
            self.lock = Some(self.stage.ground.lock_row(crate::stage::BYSTANDERS));
        }
        random::for_a_while(&mut self.stage, ROUND);
        let mut claims: Vec<oracle::Claim> = self.terms.values().copied().collect();
        claims.extend(self.stage.fleet.timeline().take().iter().filter_map(|entry| entry.claim()));
        let mut problems = self.stage.take_problems();
        problems.extend(oracle::judge(claims.iter().copied()).iter().map(ToString::to_string));
        self.terms = oracle::terms(claims);
        self.stage.forget_the_gone();
        self.footprints.push(Footprint::of(&self.stage));
        problems
    }

    fn summary(&self) -> String {
        let terms = self.terms.len();
        let footprint = self.footprints.last().map(ToString::to_string).unwrap_or_default();
        format!("{terms} terms; {footprint}")
    }

    /// How it went, in Markdown.
    fn account(&self, arguments: &SoakArguments, seed: u64, verdict: &str) -> String {
        let mut text = String::new();
        for (name, value) in about::this(seed) {
            text += &format!("- {name}: {value}\n");
        }
        text += &format!(
            "\n{} minutes on {}: {verdict}, {} terms.\n\n| after | footprint |\n|---|---|\n",
            arguments.minutes,
            arguments.store,
            self.terms.len()
        );
        // Ten lines of it.
        let step = self.footprints.len().div_ceil(10).max(1);
        for (round, footprint) in self.footprints.iter().enumerate().step_by(step) {
            let minutes = (round + 1) as f64 * ROUND.as_secs_f64() / 60.0;
            text += &format!("| {minutes:.1} min | {footprint} |\n");
        }
        text
    }

    /// What has grown: after a third of the time everything has had its size.
    fn growth(&self) -> Vec<String> {
        let (warm_up, rest) = self.footprints.split_at(self.footprints.len() / 3);
        match (Footprint::largest(warm_up), Footprint::largest(rest)) {
            (Some(before), Some(after)) => after.grown_from(&before),
            _ => Vec::new(),
        }
    }
}
