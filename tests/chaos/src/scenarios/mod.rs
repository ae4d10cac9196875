//! What befalls elections.

mod candidates;
mod clocks;
mod paths;
mod pooler;
pub(crate) mod random;
mod records;
mod server;
mod sessions;

use std::time::Duration;

use tenure_tests::Stamp;

use crate::{
    http,
    kind::{Kind, Need},
    stage::{Mode, Stage},
};

/// Something that befalls an election.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scenario {
    /// On the command line.
    pub(crate) name: &'static str,
    /// In a sentence.
    pub(crate) about: &'static str,
    /// What it takes for granted.
    pub(crate) needs: &'static [Need],
    pub(crate) play: fn(&mut Stage),
}

/// All of them.
pub(crate) fn all() -> impl Iterator<Item = &'static Scenario> {
    [
        candidates::ALL,
        paths::ALL,
        server::ALL,
        pooler::ALL,
        sessions::ALL,
        records::ALL,
        clocks::ALL,
        random::ALL,
        http::ALL,
    ]
    .into_iter()
    .flatten()
}

impl Scenario {
    /// Whether it can be played there.
    pub(crate) fn fits(&self, kind: Kind) -> bool {
        self.needs.iter().all(|&need| kind.has(need))
    }

    /// Whether its candidates can run like this.
    pub(crate) fn fits_mode(&self, mode: &Mode) -> bool {
        self.needs.iter().all(|&need| mode.has(need))
    }
}

/// Longer than a term lasts without a renewal, at the lease of 2 s that most scenarios have.
pub(crate) const LONGER_THAN_A_TERM: Duration = Duration::from_secs(4);

/// What befalls everybody, says when it was over, and may cost the term: then somebody leads again.
fn outage(stage: &mut Stage, befalls: impl FnOnce(&mut Stage) -> Stamp) {
    stage.allow_outage(stage.recovery());
    stage.start(3);
    let healed = befalls(stage);
    stage.recovers(healed);
    stage.wait(Duration::from_secs(1));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_has_a_name_of_its_own_and_somewhere_to_be_played() {
        let mut names: Vec<&str> = all().map(|scenario| scenario.name).collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
        for scenario in all() {
            assert!(Kind::ALL.into_iter().any(|kind| scenario.fits(kind)), "{scenario:?}");
        }
    }

    #[test]
    fn every_store_is_played_on() {
        for kind in Kind::ALL {
            let count = all().filter(|scenario| scenario.fits(kind)).count();
            assert!(count >= 8, "{kind}: {count}");
        }
    }
}
