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

/// Each scenario once, where fewer have been before, every third one on threads if it can be.
pub(crate) fn once(processes: &Mode) -> Vec<Item> {
    let mut played = Kind::ALL.map(|kind| (kind, 0));
    let mut items = Vec::new();
    for scenario in scenarios::all() {
        let fitting = played.iter_mut().filter(|(kind, _)| scenario.fits(*kind));
        let Some((kind, count)) = fitting.min_by_key(|(_, count)| *count) else { continue };
        *count += 1;
        let on_threads = items.len() % 3 == 2 && scenario.fits_mode(&Mode::Threads);
        let mode = if on_threads { Mode::Threads } else { processes.clone() };
        items.push(Item { scenario, kind: *kind, mode });
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

    fn processes() -> Mode {
        Mode::Processes("participant".into())
    }

    #[test]
    fn each_scenario_is_played_once_and_every_store_and_mode_has_its_share() {
        let items = once(&processes());
        assert_eq!(items.len(), scenarios::all().count());
        for kind in Kind::ALL {
            assert!(items.iter().filter(|item| item.kind == kind).count() >= 3, "{kind}");
        }
        let on_threads = items.iter().filter(|item| matches!(item.mode, Mode::Threads));
        assert!(on_threads.count() >= 5);
        for item in items {
            assert!(item.scenario.fits(item.kind) && item.scenario.fits_mode(&item.mode));
        }
    }

    #[test]
    fn the_matrix_leaves_nothing_out_that_fits() {
        let all: Vec<_> = scenarios::all().collect();
        let items = matrix(&all, &Kind::ALL, &[processes(), Mode::Threads]);
        let steady = items.iter().filter(|item| item.scenario.name == "steady");
        assert_eq!(steady.count(), Kind::ALL.len() * 2);
        let crash = items.iter().filter(|item| item.scenario.name == "crash");
        assert_eq!(crash.count(), Kind::ALL.len());
    }
}
