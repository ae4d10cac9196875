//! What the documents say is there.

#![allow(clippy::unwrap_used)] // helpers of tests are tests

use std::{
    fs,
    path::{Path, PathBuf},
};

/// The workspace.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// All Markdown files of the workspace's own.
fn documents(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        if path.is_dir() && name != "target" && !name.starts_with('.') {
            documents(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "md") {
            found.push(path);
        }
    }
}

/// A link, `[text](target)`.
#[derive(Debug)]
struct Link<'a> {
    text: &'a str,
    target: &'a str,
}

fn links(document: &str) -> impl Iterator<Item = Link<'_>> {
    document.match_indices("](").filter_map(|(middle, _)| {
        let text = document[..middle].rsplit_once('[')?.1;
        let target = document[middle + 2..].split_once(')')?.0;
        Some(Link { text, target })
    })
}

#[test]
fn links_are_told_from_other_text() {
    let document = "a [b](c.md) and [`d_e`](../f.rs), also [g]\n(h)";
    let found: Vec<(&str, &str)> = links(document).map(|l| (l.text, l.target)).collect();
    assert_eq!(found, [("b", "c.md"), ("`d_e`", "../f.rs")]);
}

/// A claim names its test, and the test is where the claim says.
#[test]
fn what_documents_link_to_is_there() {
    let (mut all, mut missing, mut tests) = (Vec::new(), Vec::new(), 0);
    documents(&root(), &mut all);
    assert!(all.iter().any(|path| path.ends_with("docs/safety.md")), "{all:?}");
    for path in all {
        let document = fs::read_to_string(&path).unwrap();
        for link in links(&document) {
            let target = link.target.split('#').next().unwrap();
            // What is elsewhere, and what rustdoc looks after where a page is part of its own.
            if target.is_empty() || target.contains("://") || target.contains("::") {
                continue;
            }
            let Ok(file) = fs::canonicalize(path.parent().unwrap().join(target)) else {
                missing.push(format!("{}: {}", path.display(), link.target));
                continue;
            };
            let name = link.text.trim_matches('`');
            let is_test = target.ends_with(".rs") && name != link.text && !name.contains('/');
            if is_test {
                tests += 1;
                if !fs::read_to_string(&file).unwrap().contains(name) {
                    missing.push(format!("{}: {name} in {target}", path.display()));
                }
            }
        }
    }
    assert!(missing.is_empty(), "{missing:#?}");
    assert!(tests > 20, "only {tests} claims name a test");
}
