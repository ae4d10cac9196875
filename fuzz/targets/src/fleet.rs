//! Whole fleets of candidates on virtual time: which faults befall them, and when, is read from the bytes.

use tenure_world::{Properties, Script, anything, play, shrink};

pub(crate) fn check(bytes: &[u8]) {
    let Some((kind, bytes)) = bytes.split_first() else { return };
    let script = Script::from_bytes(&anything(*kind), bytes);
    if let Some(violation) = play(&script, Properties::ALL, false).violation {
        let small = shrink(&script, Properties::ALL, &violation);
        panic!("{violation}\nwhich is also what becomes of {small:#?}");
    }
}
