//! The README of each adapter has every option that its builders have.

use std::{fs, path::PathBuf};

fn read(path: &str) -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../integrations").join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The names of the public functions that take `self` and give a builder back.
fn options(source: &str) -> Vec<&str> {
    let functions = source.split("    pub fn ").skip(1);
    let options = functions.filter_map(|function| {
        let (signature, _) = function.split_once('{')?;
        let takes_self = signature.contains("(self") || signature.contains("(mut self");
        let takes_self = takes_self || signature.contains("        self,\n");
        let gives_builder = ["-> Self", "-> LeaderOnlyLayer<", "-> RequireFence<"];
        let gives_builder = gives_builder.iter().any(|builder| signature.contains(builder));
        signature.split(['(', '<']).next().filter(|_| takes_self && gives_builder)
    });
    options.collect()
}

#[test]
fn every_option_has_its_line() {
    for (readme, source, at_least) in [
        ("tower/README.md", "tower/src/layer.rs", 9),
        ("tower/README.md", "tower/src/require_fence/layer.rs", 3),
        ("actix-web/README.md", "actix-web/src/middleware.rs", 7),
        ("actix/README.md", "actix/src/supervisor.rs", 2),
        ("http/README.md", "http/src/settings.rs", 2),
    ] {
        let (text, code) = (read(readme), read(source));
        let options = options(&code);
        assert!(options.len() >= at_least, "{source} has {options:?} only");
        for option in options {
            assert!(text.contains(&format!("`{option}(")), "{readme} lacks `{option}`");
        }
    }
}
