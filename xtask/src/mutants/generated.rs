//! Changes that cargo-mutants makes up, in the two folders that everything else rests on. Those that none of their own tests
//! notices must be explained in `tests/README.md`.

use std::{collections::BTreeSet, fmt, fs, path::Path, process::Command};

use super::document::{FILE, section};
use crate::{Failure, cargo, steps::Steps, tools::Tool};

/// Another version makes up others.
const CARGO_MUTANTS: Tool = Tool { name: "cargo-mutants", version: "27.1.0" };

/// The folders below `src`. Of the tests only their own ones are run: what is shown of them is shown there.
const FOLDERS: [&str; 2] = ["protocol", "term"];

/// In seconds, how long these tests may take. Three are enough for all of them, but not on a machine that has much to do.
const PATIENCE: &str = "20";

/// What cargo-mutants says with its exit status when it has tried all: every change is noticed, some are not, or with some the
/// tests came to no end. Those are noticed, too: where somebody waits for the end of a term, the end of that is what is tried.
const HAS_TRIED_ALL: [i32; 3] = [0, 2, 3];

/// Makes each change in a copy of the workspace, runs the tests of its folder, and fails unless those that survive are the
/// ones that the document explains.
pub(super) fn try_all(steps: &mut Steps) -> Result<(), Failure> {
    let target = cargo::target_directory()?;
    steps.step(CARGO_MUTANTS.name, || CARGO_MUTANTS.ensure_installed(&target))?;
    let mut found = BTreeSet::new();
    for folder in FOLDERS {
        let reports = target.join("mutants").join(folder);
        steps.step(&format!("changes in {folder}"), || {
            fs::create_dir_all(&reports).map_err(|error| cannot("be made", &reports, &error))?;
            let status = changes(folder, &target, &reports).status().map_err(|error| {
                Failure::new(format!("{} cannot be started: {error}", CARGO_MUTANTS.name))
            })?;
            if !status.code().is_some_and(|code| HAS_TRIED_ALL.contains(&code)) {
                return Err(Failure::new(format!("{} failed: {status}", CARGO_MUTANTS.name)));
            }
            let missed = reports.join("mutants.out").join("missed.txt");
            let missed =
                fs::read_to_string(&missed).map_err(|error| cannot("be read", &missed, &error))?;
            found.extend(missed.lines().map(change));
            Ok(())
        })?;
    }
    steps.step("what survives", || judge(&found, &explained(&survivors()?)))
}

fn changes(folder: &str, target: &Path, reports: &Path) -> Command {
    let mut program = CARGO_MUTANTS.command(target);
    program
        .args(["mutants", "--package", "tenure", "--all-features", "--cargo-arg=--lib"])
        .args(["--file", &format!("src/{folder}/**")])
        // Only loom compiles them, or other systems do.
        .args(["--exclude", "**/interleavings.rs", "--exclude-re", "(condvar|modelled)::"])
        .args(["--timeout", PATIENCE, "--no-times", "--output"])
        .arg(reports)
        .args(["--", &format!("{folder}::")])
        // They fail all the time, and nobody wants to know for which values.
        .env("PROPTEST_MAX_SHRINK_ITERS", "0")
        .env("PROPTEST_DISABLE_FAILURE_PERSISTENCE", "true")
        // Half of the time would go into it.
        .env("CARGO_PROFILE_DEV_DEBUG", "none");
    program
}

/// `FILE:LINE:COLUMN: WHAT`, without the place in the file, which every other change moves, as it stands in the document.
fn change(line: &str) -> String {
    let mut parts = line.splitn(4, ':');
    let file = parts.next().unwrap_or_default();
    let what = parts.nth(2).unwrap_or(line).trim().replace('|', "\\|");
    format!("`{file}`: `{what}`")
}

/// What the document says of those that survive.
fn survivors() -> Result<String, Failure> {
    section("changes that no test notices")
}

/// The first column of the table.
fn explained(table: &str) -> BTreeSet<String> {
    let rows = table.lines().filter_map(|line| line.strip_prefix("| `"));
    rows.filter_map(|row| row.split_once(" | ")).map(|(change, _)| format!("`{change}")).collect()
}

fn judge(found: &BTreeSet<String>, explained: &BTreeSet<String>) -> Result<(), Failure> {
    let list = |title: &str, changes: Vec<&String>| {
        let lines: String = changes.iter().map(|change| format!("\n  {change}")).collect();
        if lines.is_empty() { lines } else { format!("{title}:{lines}\n") }
    };
    let new = list("no test notices", found.difference(explained).collect());
    let gone = list(
        "some test notices, and the document says none does",
        explained.difference(found).collect(),
    );
    if new.is_empty() && gone.is_empty() {
        return Ok(());
    }
    Err(Failure::new(format!("what {FILE} explains is not what was found\n{new}{gone}")))
}

fn cannot(what: &str, path: &Path, error: &impl fmt::Display) -> Failure {
    Failure::new(format!("{} cannot {what}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(changes: &[&str]) -> BTreeSet<String> {
        changes.iter().copied().map(str::to_owned).collect()
    }

    #[test]
    fn a_change_is_known_by_its_file_and_by_what_it_does() {
        let line = "src/term/cell.rs:12:34: replace && with || in Cell::expire";
        assert_eq!(change(line), r"`src/term/cell.rs`: `replace && with \|\| in Cell::expire`");
        let line = "src/term/mod.rs:1:2: replace <impl fmt::Debug for Term>::fmt -> fmt::Result with Ok(())";
        assert!(
            change(line)
                .ends_with("`replace <impl fmt::Debug for Term>::fmt -> fmt::Result with Ok(())`")
        );
    }

    #[test]
    fn the_document_explains_what_survived_and_nothing_else() {
        let table = "| change | why |\n|---|---|\n| `a.rs`: `x \\|\\| y` | equivalent |\n";
        let explained = explained(table);
        assert_eq!(explained, set(&[r"`a.rs`: `x \|\| y`"]));
        judge(&explained, &explained).unwrap();
        let new = judge(&set(&[r"`a.rs`: `x \|\| y`", "`b.rs`: `z`"]), &explained).unwrap_err();
        assert!(new.0.contains("no test notices:\n  `b.rs`: `z`"), "{new:?}");
        let gone = judge(&set(&[]), &explained).unwrap_err();
        assert!(gone.0.contains("some test notices"), "{gone:?}");
    }

    #[test]
    fn what_the_document_explains_is_in_files_that_are_there() {
        let explained = explained(&survivors().unwrap());
        assert!(!explained.is_empty());
        for change in explained {
            let file = change.trim_start_matches('`').split('`').next().unwrap_or_default();
            assert!(cargo::root().join(file).is_file(), "{change}");
        }
    }
}
