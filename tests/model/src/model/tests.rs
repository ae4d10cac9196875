//! What holds in worlds that a random walk comes upon.

use super::*;

/// Everything but what cuts a walk short.
pub(crate) fn troubled() -> Scope {
    let everything = *Scope::named("everything").unwrap();
    Scope { crashes: 0, requests: 0, recovers: false, ..everything }
}

/// Walks at random, by a generator of which nothing but the seed is asked.
pub(crate) fn walk(scope: Scope, mut seed: u64, mut see: impl FnMut(&World)) {
    let election = Election::new(scope);
    for _ in 0..100 {
        let mut world = World::new(&scope);
        for _ in 0..200 {
            see(&world);
            let next = election.next_states(&world);
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let Some(chosen) = next.get((seed >> 33) as usize % next.len().max(1)) else {
                break;
            };
            world = chosen.clone();
        }
    }
}

/// The protocol shows nobody which version it watches, but for the eyes of people.
#[test]
fn no_version_that_a_candidate_keeps_is_given_out_again() {
    let mut kept = 0;
    walk(troubled(), 1, |world| {
        for (_, candidate) in world.candidates() {
            let shown = format!("{:?}", candidate.protocol);
            for version in shown.split("Version(").skip(1) {
                let number: u64 = version.split(')').next().unwrap().parse().unwrap();
                let known = candidate.versions().any(|it| it.as_u64() == Some(number));
                assert!(known, "{number} in {shown}");
                kept += 1;
            }
        }
    });
    assert!(kept > 1_000, "{kept}");
}

#[test]
fn clocks_are_set_back_as_far_as_can_be() {
    let scope = troubled();
    walk(scope, 2, |world| {
        for (_, candidate) in world.candidates() {
            let age = candidate.now.saturating_since(tenure::Instant::ORIGIN);
            assert!(age <= scope.memory(), "{candidate:?}");
        }
    });
}
