//! Seeded bugs, as data.

use std::collections::{BTreeMap, HashSet};

use serde::Deserialize;

use super::layer::Layer;
use crate::Failure;

/// What a replacement says in the place of the question whether this bug is awake.
const AWAKE: &str = "SEEDED";

/// The files of `xtask/mutants/`.
const FILES: &[(&str, &str)] = &[
    ("protocol.toml", include_str!("../../mutants/protocol.toml")),
    ("term.toml", include_str!("../../mutants/term.toml")),
    ("stores.toml", include_str!("../../mutants/stores.toml")),
    ("adapters.toml", include_str!("../../mutants/adapters.toml")),
];

/// One bug.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Seed {
    pub(super) name: String,
    /// Where it goes, from the root of the workspace.
    pub(super) file: String,
    /// What it breaks, in a line.
    pub(super) why: String,
    /// A piece of text that occurs exactly once in the file.
    find: String,
    /// What goes in its place. [`AWAKE`] stands for a `bool`: whether the bug is awake.
    replace: String,
    /// Each of these layers must notice: by one of the tests in whose names such a part occurs, or of all that it has if no
    /// part is given. For the model they are scopes, for the simulation it is a campaign.
    pub(super) caught_by: BTreeMap<Layer, Vec<String>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    seed: Vec<Seed>,
}

/// All of them, in the order in which they are written.
pub(super) fn all() -> Result<Vec<Seed>, Failure> {
    let mut seeds: Vec<Seed> = Vec::new();
    for (name, text) in FILES {
        let file: File = toml::from_str(text)
            .map_err(|error| Failure::new(format!("xtask/mutants/{name}: {error}")))?;
        seeds.extend(file.seed);
    }
    let mut names = HashSet::new();
    for seed in &seeds {
        if !names.insert(&seed.name) {
            return Err(Failure::new(format!("two seeded bugs are called {}", seed.name)));
        }
        if !seed.replace.contains(AWAKE) || seed.caught_by.is_empty() {
            let name = &seed.name;
            return Err(Failure::new(format!("{name} never wakes up, or nobody is to notice")));
        }
    }
    Ok(seeds)
}

impl Seed {
    /// The file's text with this bug in it, asleep.
    ///
    /// # Errors
    /// If the code has changed, and the bug with it.
    pub(super) fn plant(&self, text: &str) -> Result<String, Failure> {
        let Self { name, file, find, replace, .. } = self;
        match text.matches(find.as_str()).count() {
            1 => {
                // Within the crate that asks the variable there is no other name for it.
                let home = if file.starts_with("src/") { "crate" } else { "::tenure" };
                let awake = format!("{home}::seeded({name:?})");
                Ok(text.replacen(find.as_str(), &replace.replace(AWAKE, &awake), 1))
            }
            found => Err(Failure::new(format!(
                "{name}: its text occurs {found} times in {file}, and not once:\n{find}"
            ))),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeMap, fs};

    use super::*;
    use crate::cargo;

    #[test]
    fn every_seeded_bug_fits_the_code_beside_all_others() {
        let mut files = BTreeMap::new();
        for seed in all().unwrap() {
            let read = || fs::read_to_string(cargo::root().join(&seed.file)).unwrap();
            let text = files.entry(seed.file.clone()).or_insert_with(read);
            *text = seed.plant(text).unwrap();
        }
    }

    #[test]
    fn a_text_that_is_not_there_or_there_twice_is_a_failure() {
        let mut seed = all().unwrap().remove(0);
        (seed.find, seed.replace) = ("now".into(), "if SEEDED { later }".into());
        assert!(seed.plant("then").is_err());
        assert!(seed.plant("now or now").is_err());
        let name = &seed.name;
        assert_eq!(seed.plant("now").unwrap(), format!("if crate::seeded({name:?}) {{ later }}"));
    }
}
