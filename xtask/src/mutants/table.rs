//! The table of seeded bugs.

use std::fmt::Write;

use super::{
    document::{FILE, section},
    seed::Seed,
};
use crate::Failure;

/// Fails unless the table lists exactly these bugs.
pub(super) fn check(seeds: &[Seed]) -> Result<(), Failure> {
    let table = table(seeds);
    if section("seeded bugs")? == table {
        return Ok(());
    }
    Err(Failure::new(format!(
        "the table in {FILE} is not that of xtask/mutants; between its two marks has to stand:\n{table}"
    )))
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
