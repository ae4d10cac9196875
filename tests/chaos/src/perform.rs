//! Plays scenarios and tells how it went.

use std::{
    panic::{self, AssertUnwindSafe},
    sync::{Mutex, PoisonError, mpsc},
    thread,
    time::Duration,
};

use tenure_drawing::{Picture, Report, Row};
use tenure_tests::Stamp;

use crate::{
    picture,
    plan::Item,
    stage::{Mode, Stage},
    verdict::Verdict,
};

/// How a scenario went.
#[derive(Debug)]
pub(crate) struct Performance {
    item: Item,
    took: Duration,
    verdict: Verdict,
    picture: Picture,
}

/// Plays all of these, so many at a time, and tells of each as soon as it is over.
pub(crate) fn all(items: Vec<Item>, jobs: usize, seed: u64) -> Vec<Performance> {
    let count = items.len();
    let waiting = Mutex::new(items.into_iter().enumerate());
    let (done, performances) = mpsc::channel();
    let mut all: Vec<(usize, Performance)> = thread::scope(|scope| {
        for _ in 0..jobs.max(1) {
            let (waiting, done) = (&waiting, done.clone());
            scope.spawn(move || {
                loop {
                    let next = waiting.lock().unwrap_or_else(PoisonError::into_inner).next();
                    let Some((place, item)) = next else { return };
                    // Somebody listens until all are done.
                    let _ = done.send((place, one(item, seed)));
                }
            });
        }
        drop(done);
        let performances = performances.into_iter().enumerate().map(|(number, performance)| {
            println!("{:>3} of {count}  {}", number + 1, performance.1.line());
            performance
        });
        performances.collect()
    });
    all.sort_by_key(|&(place, _)| place);
    all.into_iter().map(|(_, performance)| performance).collect()
}

/// Plays this one.
pub(crate) fn one(item: Item, seed: u64) -> Performance {
    let started = Stamp::now();
    let mut stage = Stage::new(item.kind, item.mode.clone(), seed);
    if let Err(panic) = caught(|| (item.scenario.play)(&mut stage)) {
        stage.problem(panic);
    }
    let play = stage.close();
    let verdict = Verdict::of(&play);
    let title = format!("{} on {}, {}", item.scenario.name, item.kind, item.mode);
    let picture = picture::draw(title, item.scenario.about, &play, &verdict);
    Performance { item, took: started.age(), verdict, picture }
}

/// Plays, and says what it panicked with, if it did.
pub(crate) fn caught<T>(play: impl FnOnce() -> T) -> Result<T, String> {
    panic::catch_unwind(AssertUnwindSafe(play)).map_err(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
        text.unwrap_or("it panicked").to_owned()
    })
}

impl Performance {
    pub(crate) fn passed(&self) -> bool {
        self.verdict.problems.is_empty()
    }

    fn cells(&self) -> Vec<String> {
        let seconds = |duration: Duration| format!("{:.2} s", duration.as_secs_f64());
        let verdict = if self.passed() { "ok" } else { "FAILED" };
        vec![
            self.item.scenario.name.to_owned(),
            self.item.kind.to_string(),
            self.item.mode.to_string(),
            self.verdict.terms.len().to_string(),
            seconds(self.verdict.longest_gap()),
            seconds(self.verdict.allowed),
            verdict.to_owned(),
        ]
    }

    fn line(&self) -> String {
        let mut line = format!("{:>6.1} s  {}", self.took.as_secs_f64(), self.cells().join("  "));
        for problem in &self.verdict.problems {
            line.push_str("\n      ");
            line.push_str(&first_lines(problem, 3));
        }
        line
    }

    fn row(&self) -> Row {
        let problems: Vec<String> =
            self.verdict.problems.iter().map(|problem| first_lines(problem, 200)).collect();
        Row {
            cells: self.cells(),
            passed: self.passed(),
            details: problems.join("\n"),
            picture: Some(self.picture.clone()),
        }
    }
}

/// A report of all of these.
pub(crate) fn report(performances: &[Performance], about: Vec<(String, String)>) -> Report {
    let columns = ["scenario", "path", "candidates", "terms", "longest gap", "allowed", "verdict"];
    Report {
        title: "Elections on servers that are broken underneath".to_owned(),
        about,
        columns: columns.map(str::to_owned).to_vec(),
        rows: performances.iter().map(Performance::row).collect(),
    }
}

fn first_lines(text: &str, count: usize) -> String {
    text.lines().take(count).collect::<Vec<_>>().join("\n      ")
}

impl std::fmt::Display for Mode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            Self::Processes(_) => "processes",
            Self::Threads => "threads",
            Self::Examples(_) => "examples",
        })
    }
}
