//! Makes a script that fails as short as possible.

use crate::{
    oracle::{Properties, Violation},
    script::Script,
    world::play,
};

/// How many scripts are tried at most.
const PATIENCE: usize = 20_000;

/// The shortest script found that violates the same property: with fewer incidents, fewer candidates, and more calls that
/// nothing befalls.
#[must_use]
pub fn shrink(script: &Script, watched: Properties, violation: &Violation) -> Script {
    let mut best = script.clone();
    let mut tries = 0;
    let mut fails = |candidate: &Script| {
        tries += 1;
        let found = (tries <= PATIENCE).then(|| play(candidate, watched, false).violation);
        found.flatten().is_some_and(|found| found.property == violation.property)
    };
    loop {
        let before = best.clone();
        remove_incidents(&mut best, &mut fails);
        calm_rolls(&mut best, &mut fails);
        remove_candidates(&mut best, &mut fails);
        simplify_clocks(&mut best, &mut fails);
        if best == before {
            return best;
        }
    }
}

/// Whole stretches first, then single ones.
fn remove_incidents(best: &mut Script, fails: &mut impl FnMut(&Script) -> bool) {
    let mut length = best.incidents.len().max(1);
    while length > 0 {
        let mut from = 0;
        while from < best.incidents.len() {
            let mut shorter = best.clone();
            shorter.incidents.drain(from..(from + length).min(best.incidents.len()));
            if fails(&shorter) {
                *best = shorter;
            } else {
                from += length;
            }
        }
        length /= 2;
    }
}

fn calm_rolls(best: &mut Script, fails: &mut impl FnMut(&Script) -> bool) {
    let mut length = best.rolls.len();
    while length > 0 {
        for from in (0..best.rolls.len()).step_by(length) {
            let to = (from + length).min(best.rolls.len());
            if best.rolls[from..to].iter().any(|roll| *roll != 0) {
                let mut calmer = best.clone();
                calmer.rolls[from..to].fill(0);
                if fails(&calmer) {
                    *best = calmer;
                }
            }
        }
        length /= 2;
    }
}

fn remove_candidates(best: &mut Script, fails: &mut impl FnMut(&Script) -> bool) {
    while best.candidates.len() > 1 {
        let mut fewer = best.clone();
        fewer.candidates.pop();
        if !fails(&fewer) {
            return;
        }
        *best = fewer;
    }
}

fn simplify_clocks(best: &mut Script, fails: &mut impl FnMut(&Script) -> bool) {
    for index in 0..=best.candidates.len() {
        let mut simpler = best.clone();
        match simpler.candidates.get_mut(index) {
            Some(candidate) => candidate.clock.ppm = 0,
            None => simpler.store_clock.ppm = 0,
        }
        if simpler != *best && fails(&simpler) {
            *best = simpler;
        }
    }
}
