//! What is played where.

use crate::{
    kind::Kind,
    scenarios::{self, Scenario},
    stage::Mode,
};

/// A scenario on a store.
#[derive(Clone, Debug)]
pub(crate) struct Item {
    pub(crate) scenario: &'static Scenario,
    pub(crate) kind: Kind,
    pub(crate) mode: Mode,
}

/// Each scenario once, where fewer have been before, in these modes by turns, and in the first one where it does not fit
/// another.
pub(crate) fn once(modes: &[Mode]) -> Vec<Item> {
    let mut played = Kind::ALL.map(|kind| (kind, 0));
    let mut items = Vec::new();
    for scenario in scenarios::all() {
        let fitting = played.iter_mut().filter(|(kind, _)| scenario.fits(*kind));
        let Some((kind, count)) = fitting.min_by_key(|(_, count)| *count) else { continue };
        *count += 1;
        let next = &modes[items.len() % modes.len()];
        let mode = if scenario.fits_mode(next) { next } else { &modes[0] };
        items.push(Item { scenario, kind: *kind, mode: mode.clone() });
    }
    items
}

/// These scenarios on each of these stores that they fit, in each of these modes.
pub(crate) fn matrix(scenarios: &[&'static Scenario], kinds: &[Kind], modes: &[Mode]) -> Vec<Item> {
    let mut items = Vec::new();
    for &scenario in scenarios {
        for &kind in kinds.iter().filter(|&&kind| scenario.fits(kind)) {
            let modes = modes.iter().filter(|mode| scenario.fits_mode(mode));
            items.extend(modes.map(|mode| Item { scenario, kind, mode: mode.clone() }));
        }
    }
    items
}

#[cfg(test)]
mod tests {
    use super::*;

    fn modes() -> [Mode; 3] {
        [Mode::Processes("participant".into()), Mode::Examples("axum".into()), Mode::Threads]
    }

    #[test]
    fn each_scenario_is_played_once_and_every_store_and_mode_has_its_share() {
        let items = once(&modes());
        assert_eq!(items.len(), scenarios::all().count());
        for kind in Kind::ALL {
            assert!(items.iter().filter(|item| item.kind == kind).count() >= 3, "{kind}");
        }
        for mode in ["processes", "examples", "threads"] {
            let count = items.iter().filter(|item| item.mode.to_string() == mode).count();
            assert!(count >= 5, "{count} on {mode}");
        }
        for item in items {
            assert!(item.scenario.fits(item.kind) && item.scenario.fits_mode(&item.mode));
        }
    }

    #[test]
    fn the_matrix_leaves_nothing_out_that_fits() {
        let all: Vec<_> = scenarios::all().collect();
        let items = matrix(&all, &Kind::ALL, &modes());
        let count = |name| items.iter().filter(|item| item.scenario.name == name).count();
        assert_eq!(count("steady"), Kind::ALL.len() * 3);
        assert_eq!(count("crash"), Kind::ALL.len() * 2);
        assert_eq!(count("hand-over"), Kind::ALL.len() * 2);
        assert_eq!(count("http-axum-frozen"), 2);
    }

    #[test]
    fn most_scenarios_fit_candidates_of_the_example() {
        let [_, examples, _] = modes();
        let fitting = scenarios::all().filter(|scenario| scenario.fits_mode(&examples));
        assert!(fitting.count() >= 30);
    }
}
