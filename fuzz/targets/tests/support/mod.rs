//! Repeating a corpus.

#![allow(dead_code, clippy::unwrap_used)] // no test program needs all of it, and it is for tests alone

use std::{
    fs,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
};

use proptest::{
    collection::vec,
    prelude::any,
    test_runner::{Config, TestRunner},
};
use tenure_fuzz_targets::{SERVER_TARGETS, TARGETS, Target};

/// More than this would not be a corpus that somebody keeps, but all that was ever tried.
const MOST_FILES: usize = 80;

pub(crate) fn target(name: &str) -> Target {
    let mut targets = TARGETS.iter().chain(SERVER_TARGETS);
    *targets.find(|target| target.name == name).expect("there is such a target")
}

/// Runs the target on every file of its corpus, and says which one breaks it.
pub(crate) fn replay(name: &str) {
    let target = target(name);
    replay_with(target, target.run);
}

pub(crate) fn replay_with(target: Target, run: impl Fn(&[u8])) {
    let directory = target.corpus();
    let entries = fs::read_dir(&directory).unwrap_or_else(|error| panic!("{directory:?}: {error}"));
    let files: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    assert!((1..=MOST_FILES).contains(&files.len()), "{} files in {directory:?}", files.len());
    for file in files {
        let bytes = fs::read(&file).unwrap();
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| run(&bytes))) {
            eprintln!("{} is broken by {}", target.name, file.display());
            resume_unwind(panic);
        }
    }
}

/// Runs on so many inputs that are drawn anew each time. One that breaks it is made as small as possible, and shown: it is
/// worth a file in the corpus.
pub(crate) fn try_anything(cases: u32, most: usize, run: impl Fn(&[u8])) {
    let config =
        Config { cases, failure_persistence: None, max_shrink_iters: 300, ..Config::default() };
    let tried = TestRunner::new(config).run(&vec(any::<u8>(), 0..=most), |bytes| {
        run(&bytes);
        Ok(())
    });
    tried.unwrap_or_else(|error| panic!("{error}"));
}
