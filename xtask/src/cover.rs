//! `cargo xtask cover`: which lines of the library and of its stores no test runs.
//!
//! Each crate answers for itself: its lines count as run if its own tests run them, so that nothing is covered only because
//! an example happened to pass by.

use std::{
    fmt, fs,
    ops::RangeInclusive,
    path::{Path, PathBuf},
};

use serde::Deserialize;

use crate::{Command, Failure, cargo, servers, steps::Steps, tools::Tool};

pub(crate) const COMMAND: Command = Command {
    name: "cover",
    usage: "cover [CRATE..] [--no-servers]",
    about: "which lines of the library and of each store no test runs; installs cargo-tarpaulin",
    run,
};

/// Of another version the figures may differ: which lines hold code is a matter of opinion.
const TARPAULIN: Tool = Tool { name: "cargo-tarpaulin", version: "0.37.5" };

/// A test that answers nothing for as long as this, in seconds, hangs.
const PATIENCE: &str = "1200";

/// What is measured.
const CRATES: &[Crate] = &[
    Crate {
        name: "tenure",
        directory: "",
        starts_servers: false,
        test_support: &[
            // Stands in for atomics and locks while loom explores; nothing else compiles it.
            "src/sync/explored.rs",
            // A module of tests like the others. This one the program does not know for one, since it has a module of its own.
            "src/elector/dropped.rs",
        ],
        may_miss: 0,
    },
    Crate {
        name: "tenure-sqlite",
        directory: "integrations/sqlite",
        starts_servers: false,
        test_support: &[],
        may_miss: 0,
    },
    Crate {
        name: "tenure-postgres",
        directory: "integrations/postgres",
        starts_servers: true,
        test_support: &[],
        may_miss: 0,
    },
    Crate {
        name: "tenure-mysql",
        directory: "integrations/mysql",
        starts_servers: true,
        test_support: &[],
        may_miss: 0,
    },
    Crate {
        name: "tenure-nats",
        directory: "integrations/nats",
        starts_servers: true,
        test_support: &[],
        may_miss: 0,
    },
];

#[derive(Debug)]
struct Crate {
    name: &'static str,
    /// Below the root of the workspace.
    directory: &'static str,
    /// Whether some of its tests start a server. Without them too much is missing to say anything.
    starts_servers: bool,
    /// Files that only tests use, apart from modules that only tests compile.
    test_support: &'static [&'static str],
    /// How many lines may be missing. The aim is 0; a number above it keeps what was reached, and is only ever lowered.
    may_miss: usize,
}

fn run(arguments: &[String]) -> Result<(), Failure> {
    let (chosen, left_out) = choose(arguments)?;
    let target = cargo::target_directory()?;
    let mut steps = Steps::default();
    if chosen.iter().any(|chosen| chosen.starts_servers) {
        steps.step("servers", servers::ensure_installed)?;
    }
    steps.step(TARPAULIN.name, || TARPAULIN.ensure_installed(&target))?;

    let mut found = Vec::new();
    let outcomes = chosen.into_iter().map(|chosen| {
        let reports = target.join("cover").join(chosen.name);
        steps.program(chosen.name, &mut tarpaulin(chosen, &target, &reports))?;
        let lines = Lines::read(&reports.join("tarpaulin-report.json"))?;
        let verdict = chosen.judge(&lines);
        found.push(format!("{:<16} {lines}", chosen.name));
        verdict
    });
    let outcomes: Vec<_> = outcomes.collect();
    steps.print_summary();
    println!("{}", found.join("\n"));
    for left_out in left_out {
        println!("{:<16} NOT MEASURED, as asked by --no-servers", left_out.name);
    }
    outcomes.into_iter().collect()
}

/// Which crates are to be measured, and which would be if they needed no server.
fn choose(arguments: &[String]) -> Result<(Vec<&'static Crate>, Vec<&'static Crate>), Failure> {
    let mut names = Vec::new();
    let mut with_servers = true;
    for argument in arguments {
        match argument.as_str() {
            "--no-servers" => with_servers = false,
            name if CRATES.iter().any(|known| known.name == name) => names.push(name),
            _ => {
                let known: Vec<&str> = CRATES.iter().map(|known| known.name).collect();
                let (usage, known) = (COMMAND.usage, known.join(", "));
                return Err(Failure::new(format!("usage: {usage}; the crates are {known}")));
            }
        }
    }
    let named = |known: &&Crate| names.is_empty() || names.contains(&known.name);
    let (chosen, left_out): (Vec<_>, Vec<_>) =
        CRATES.iter().filter(named).partition(|known| with_servers || !known.starts_servers);
    if chosen.is_empty() {
        return Err(Failure::new("nothing is left to be measured without servers"));
    }
    Ok((chosen, left_out))
}

/// The tests of the crate, in a directory of their own: counters are compiled into everything.
fn tarpaulin(measured: &Crate, target: &Path, reports: &Path) -> std::process::Command {
    let sources = Path::new(measured.directory).join("src").join("*");
    let mut command = TARPAULIN.command(target);
    command
        .args(["tarpaulin", "--ignore-config", "--engine", "llvm", "--skip-clean"])
        .args(["--no-fail-fast", "--timeout", PATIENCE, "--out", "Json", "--output-dir"])
        .arg(reports)
        .arg("--target-dir")
        .arg(target.join("cover"))
        .args(["--package", measured.name, "--all-features", "--tests"])
        .arg("--include-files")
        .arg(sources);
    for file in measured.test_support {
        command.arg("--exclude-files").arg(Path::new(measured.directory).join(file));
    }
    command
}

impl Crate {
    fn judge(&self, lines: &Lines) -> Result<(), Failure> {
        let Self { name, may_miss, .. } = self;
        let missed = lines.missed();
        if lines.all == 0 {
            return Err(Failure::new(format!("{name}: the report names no line of it")));
        }
        if missed > *may_miss {
            let why = format!("{name}: {missed} lines are not run by its tests, {may_miss} may be");
            return Err(Failure::new(why));
        }
        if missed < *may_miss {
            println!("{name} may miss {may_miss} lines, and misses {missed}: lower the number");
        }
        Ok(())
    }
}

/// The lines of a crate.
#[derive(Debug, Default, PartialEq, Eq)]
struct Lines {
    all: usize,
    /// By file, those that were not run.
    missing: Vec<(PathBuf, Vec<u64>)>,
}

impl Lines {
    fn read(report: &Path) -> Result<Self, Failure> {
        let wrong =
            |error: &dyn fmt::Display| Failure::new(format!("{}: {error}", report.display()));
        let text = fs::read_to_string(report).map_err(|error| wrong(&error))?;
        let report = serde_json::from_str(&text).map_err(|error| wrong(&error))?;
        Ok(Self::of(report, &cargo::root()))
    }

    fn of(report: Report, root: &Path) -> Self {
        let mut lines = Self::default();
        for File { path, traces } in report.files {
            lines.all += traces.len();
            let missing: Vec<u64> = traces
                .iter()
                .filter(|trace| trace.stats.line == 0)
                .map(|trace| trace.line)
                .collect();
            if !missing.is_empty() {
                let path: PathBuf = path.iter().collect();
                let path = path.strip_prefix(root).unwrap_or(&path);
                lines.missing.push((path.to_path_buf(), missing));
            }
        }
        lines.missing.sort();
        lines
    }

    fn missed(&self) -> usize {
        self.missing.iter().map(|(_, lines)| lines.len()).sum()
    }
}

impl fmt::Display for Lines {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (run, all) = (self.all - self.missed(), self.all);
        // Of lines alone a crate with one that is missing would show 100 %, when rounded.
        let tenths = (run * 1000).checked_div(all).unwrap_or_default();
        write!(f, "{run} of {all} lines are run: {}.{} %", tenths / 10, tenths % 10)?;
        for (file, lines) in &self.missing {
            let ranges: Vec<String> = ranges(lines)
                .map(|range| match range.start() == range.end() {
                    true => range.start().to_string(),
                    false => format!("{}-{}", range.start(), range.end()),
                })
                .collect();
            write!(f, "\n  {}: {}", file.display(), ranges.join(", "))?;
        }
        Ok(())
    }
}

/// Lines that follow each other, together.
fn ranges(lines: &[u64]) -> impl Iterator<Item = RangeInclusive<u64>> {
    lines
        .chunk_by(|one, next| one + 1 == *next)
        .filter_map(|run| Some(*run.first()?..=*run.last()?))
}

/// What cargo-tarpaulin writes, as far as it matters here.
#[derive(Debug, Deserialize)]
struct Report {
    files: Vec<File>,
}

#[derive(Debug, Deserialize)]
struct File {
    /// The components of an absolute path.
    path: Vec<String>,
    /// One for each line that holds code.
    traces: Vec<Trace>,
}

#[derive(Debug, Deserialize)]
struct Trace {
    line: u64,
    stats: Stats,
}

#[derive(Debug, Deserialize)]
struct Stats {
    /// How often it was run.
    #[serde(rename = "Line")]
    line: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split_whitespace().map(str::to_owned).collect()
    }

    fn lines(counts: &[(u64, u64)]) -> Lines {
        let traces: Vec<_> = counts
            .iter()
            .map(|(line, count)| serde_json::json!({"line": line, "length": 1, "stats": {"Line": count}}))
            .collect();
        let path = ["/", "here", "src", "lib.rs"];
        let report =
            serde_json::json!({"files": [{"path": path, "content": "", "traces": traces}]});
        Lines::of(serde_json::from_value(report).unwrap(), Path::new("/here"))
    }

    #[test]
    fn lines_that_were_not_run_are_listed_by_file() {
        let found = lines(&[(1, 5), (4, 0), (5, 0), (6, 0), (9, 1), (12, 0)]);
        assert_eq!(found.missed(), 4);
        let expected = "2 of 6 lines are run: 33.3 %\n  src/lib.rs: 4-6, 12";
        assert_eq!(found.to_string(), expected);
        assert_eq!(lines(&[(1, 1)]).to_string(), "1 of 1 lines are run: 100.0 %");
    }

    #[test]
    fn a_crate_fails_that_misses_more_than_it_may() {
        let all_run = Crate { may_miss: 0, ..CRATES[0] };
        assert!(all_run.judge(&lines(&[(1, 1), (2, 7)])).is_ok());
        assert!(all_run.judge(&lines(&[(1, 1), (2, 0)])).is_err());
        assert!(all_run.judge(&Lines::default()).is_err(), "nothing was measured");
        let one_left = Crate { may_miss: 1, ..CRATES[0] };
        assert!(one_left.judge(&lines(&[(1, 1), (2, 0)])).is_ok());
        assert!(one_left.judge(&lines(&[(1, 0), (2, 0)])).is_err());
    }

    #[test]
    fn crates_are_chosen_by_name_or_by_what_they_need() {
        let names = |text| {
            let (chosen, _) = choose(&words(text)).unwrap();
            chosen.iter().map(|chosen| chosen.name).collect::<Vec<_>>()
        };
        assert_eq!(names("").len(), CRATES.len());
        assert_eq!(names("tenure-nats tenure"), ["tenure", "tenure-nats"]);
        assert_eq!(names("--no-servers"), ["tenure", "tenure-sqlite"]);
        for wrong in ["tenure-tests", "--servers", "tenure-nats --no-servers"] {
            assert!(choose(&words(wrong)).is_err(), "{wrong}");
        }
    }

    #[test]
    fn what_is_left_out_is_there() {
        for measured in CRATES {
            let directory = cargo::root().join(measured.directory);
            assert!(directory.join("src").is_dir(), "{directory:?}");
            for file in measured.test_support {
                assert!(directory.join(file).is_file(), "{file}");
            }
        }
    }
}
