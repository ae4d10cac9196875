//! The table in `tests/README.md`.

use std::{fmt::Write, fs};

use super::seed::Seed;
use crate::{Failure, cargo};

const FILE: &str = "tests/README.md";
const BEGINS: &str = "<!-- seeded bugs -->\n";
const ENDS: &str = "<!-- end of seeded bugs -->\n";

/// Fails unless the table lists exactly these bugs.
pub(super) fn check(seeds: &[Seed]) -> Result<(), Failure> {
    let text = fs::read_to_string(cargo::root().join(FILE))
        .map_err(|error| Failure::new(format!("{FILE} cannot be read: {error}")))?;
    let table = table(seeds);
    let found = text.split_once(BEGINS).and_then(|(_, rest)| rest.split_once(ENDS));
    match found {
        Some((found, _)) if found == table => Ok(()),
        _ => Err(Failure::new(format!(
            "the table in {FILE} is not that of xtask/mutants; between its two marks has to stand:\n{table}"
        ))),
    }
}

fn table(seeds: &[Seed]) -> String {
    let mut table =
        String::from("| seeded bug | where | what it breaks | caught by |\n|---|---|---|---|\n");
    for Seed { name, file, why, caught_by, .. } in seeds {
        let layers: Vec<String> = caught_by.keys().map(ToString::to_string).collect();
        let layers = layers.join(", ");
        writeln!(table, "| `{name}` | `{file}` | {why} | {layers} |").expect("text takes all");
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mutants::seed;

    #[test]
    fn the_table_lists_the_bugs_that_are_seeded() {
        check(&seed::all().unwrap()).unwrap();
    }
}
