//! Everything that is kept of what the fuzzer has found, once more, and a few inputs drawn anew: all targets that need
//! nothing but this process.

use std::{collections::BTreeSet, fs, path::Path};

use tenure_fuzz_targets::{SERVER_TARGETS, TARGETS};

mod support;

/// Beside the corpus.
const CASES: u32 = 100;

/// A test for each, so that they run beside each other.
macro_rules! replayed {
    ($($target:ident)*) => {
        $(
            #[test]
            fn $target() {
                support::replay(stringify!($target));
                support::try_anything(CASES, 600, support::target(stringify!($target)).run);
            }
        )*

        #[test]
        fn no_target_is_left_out() {
            let all: Vec<&str> = TARGETS.iter().map(|target| target.name).collect();
            assert_eq!(all, [$(stringify!($target)),*]);
        }
    };
}

replayed!(arithmetic config contract fleet http pacing quoting_sqlite timing urls);

/// Each target has a program, and each corpus a target.
#[test]
fn programs_targets_and_corpora_go_together() {
    let fuzz = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let names = |directory: &str| -> BTreeSet<String> {
        let entries = fs::read_dir(fuzz.join(directory)).unwrap();
        let paths = entries.map(|entry| entry.unwrap().path());
        paths.map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned()).collect()
    };
    let mut targets: BTreeSet<String> =
        TARGETS.iter().chain(SERVER_TARGETS).map(|target| target.name.to_owned()).collect();
    // Its code is private to `tenure-nats`, which repeats its corpus itself.
    targets.insert("nats_value".to_owned());
    assert_eq!(names("fuzz_targets"), targets);
    assert_eq!(names("corpus"), targets);
}
