//! Scripts determine runs, whoever writes them.

use tenure_world::{
    FaultKind, Properties, Property, Rules, Script, Seeded, anything, play, shrink,
};

#[test]
fn a_script_determines_its_run_to_the_last_event() {
    for seed in 0..6 {
        let script = || Script::write(&anything(seed as u8), &mut Seeded::new(seed), 256);
        assert_eq!(script(), script());
        let (one, other) =
            (play(&script(), Properties::ALL, true), play(&script(), Properties::ALL, true));
        assert!(one.history.len() > 100);
        assert_eq!(one.history, other.history);
        assert_eq!(one.log, other.log);
        assert_eq!(one.violation, None);
    }
}

#[test]
fn whatever_bytes_a_fuzzer_finds_make_a_script_that_can_be_played() {
    for length in [0, 1, 2, 30, 400] {
        for seed in 0..4 {
            let mut random = fastrand::Rng::with_seed(seed);
            let bytes: Vec<u8> = (0..length).map(|_| random.u8(..)).collect();
            for kind in 0..3 {
                let script = Script::from_bytes(&anything(kind), &bytes);
                let run = play(&script, Properties::ALL, false);
                assert_eq!(run.violation, None, "{bytes:?}");
            }
        }
    }
}

#[test]
fn shrinking_leaves_nothing_that_is_not_needed_for_the_same_failure() {
    // A store that counts fences from one gives some out again when it is restored: the design wants a wall clock there.
    let rules = Rules { faults: &[(FaultKind::Restore, 1)], incidents: 30, ..anything(2) };
    let violated = |script: &Script| play(script, Properties::ALL, false).violation;
    let found = (0..400).find_map(|seed| {
        let script = Script::write(&rules, &mut Seeded::new(seed), 64);
        violated(&script).map(|violation| (script, violation))
    });
    let (script, violation) = found.expect("a store that counts fences cannot be restored");
    assert_eq!(violation.property, Property::FencesRise);
    let shrunk = shrink(&script, Properties::ALL, &violation);
    assert!(shrunk.incidents.len() < script.incidents.len());
    assert_eq!(violated(&shrunk).map(|found| found.property), Some(Property::FencesRise));
    for index in 0..shrunk.incidents.len() {
        let mut shorter = shrunk.clone();
        shorter.incidents.remove(index);
        let found = violated(&shorter).map(|found| found.property);
        assert_ne!(found, Some(Property::FencesRise), "{:?}", shrunk.incidents[index]);
    }
}
