//! Pairs of timings taken in turns in one run: what is compared with a limit is their ratio, so that neither the machine
//! nor what else it is doing decides.

// Timing the clock is what a bench is for.
#![allow(clippy::disallowed_methods)]

mod noted;
mod times;

use std::{
    fmt,
    hint::black_box,
    process::ExitCode,
    time::{Duration, Instant},
};

pub use self::{
    noted::{NotedSession, NotedStore},
    times::Times,
};

/// Why a bench could not be run.
pub type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Each side is timed this often; the fastest round counts, since noise only ever adds.
const ROUNDS: usize = 200;
/// About how long one round of one side takes.
const ROUND: Duration = Duration::from_micros(500);

/// Compares sides with limits, prints a line for each, and remembers whether all of them kept theirs.
#[derive(Debug, Default)]
pub struct Ratios {
    lines: Vec<Line>,
}

#[derive(Debug)]
struct Line {
    what: &'static str,
    against: &'static str,
    nanos: f64,
    reference: f64,
    limit: f64,
}

impl Ratios {
    /// Times `what` against `limit` times `reference`.
    pub fn compare<A, B>(
        &mut self,
        (what, mut subject): (&'static str, impl FnMut() -> A),
        limit: f64,
        (against, mut reference): (&'static str, impl FnMut() -> B),
    ) {
        let (subject_runs, reference_runs) = (calibrate(&mut subject), calibrate(&mut reference));
        let (mut nanos, mut reference_nanos) = (f64::INFINITY, f64::INFINITY);
        for _ in 0..ROUNDS {
            nanos = nanos.min(time(subject_runs, &mut subject));
            reference_nanos = reference_nanos.min(time(reference_runs, &mut reference));
        }
        self.add(Line { what, against, nanos, reference: reference_nanos, limit });
    }

    /// Times what `what` adds to `bare`, against `limit` times `reference`.
    pub fn compare_added<A, B, C>(
        &mut self,
        (what, mut subject): (&'static str, impl FnMut() -> A),
        mut bare: impl FnMut() -> B,
        limit: f64,
        (against, mut reference): (&'static str, impl FnMut() -> C),
    ) {
        let runs = [calibrate(&mut subject), calibrate(&mut bare), calibrate(&mut reference)];
        let mut best = [f64::INFINITY; 3];
        for _ in 0..ROUNDS {
            let round = [
                time(runs[0], &mut subject),
                time(runs[1], &mut bare),
                time(runs[2], &mut reference),
            ];
            best.iter_mut().zip(round).for_each(|(best, nanos)| *best = best.min(nanos));
        }
        self.add(Line { what, against, nanos: best[0] - best[1], reference: best[2], limit });
    }

    fn add(&mut self, line: Line) {
        println!("{line}");
        self.lines.push(line);
    }

    /// Says which limits were missed; a failure if any was.
    #[must_use]
    pub fn verdict(self) -> ExitCode {
        let missed: Vec<_> = self.lines.iter().filter(|line| !line.is_kept()).collect();
        for line in &missed {
            eprintln!("missed: {line}");
        }
        if missed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
    }
}

impl Line {
    fn ratio(&self) -> f64 {
        self.nanos / self.reference
    }

    fn is_kept(&self) -> bool {
        self.ratio() <= self.limit
    }
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { what, against, nanos, reference, limit } = self;
        write!(
            f,
            "{what:<44} {nanos:>7.1} ns   {:>5.2} x {against} ({reference:.1} ns), at most {limit} x",
            self.ratio()
        )
    }
}

fn calibrate<T>(work: &mut impl FnMut() -> T) -> u32 {
    let nanos = (0..20).map(|_| time(50, work)).fold(f64::INFINITY, f64::min);
    (ROUND.as_nanos() as f64 / nanos).clamp(20.0, 1e6) as u32
}

/// Nanoseconds for each of `runs`.
fn time<T>(runs: u32, work: &mut impl FnMut() -> T) -> f64 {
    let start = Instant::now();
    for _ in 0..runs {
        black_box(work());
    }
    start.elapsed().as_nanos() as f64 / f64::from(runs)
}
