//! Measured on virtual time: nobody ever waits longer than [`Timing::worst_case`](crate::protocol::Timing) says.

use std::time::Duration;

use proptest::prelude::*;

use super::{
    database::Skew,
    surviving,
    world::{Answer, Fate, World},
};
use crate::{
    lease::TermEnd,
    protocol::{Call, Change, Expiry, Input, Timing, WorstCase},
};

/// Two candidates with one configuration, and everything that varies between two runs.
#[derive(Clone, Debug)]
struct Setting {
    timing: Timing,
    round_trip: Duration,
    clocks: [Skew; 3],
    seed: u64,
    /// From 0 to 1: when something happens, in units of whatever is at hand.
    moment: f64,
}

prop_compose! {
    fn settings()(
        builder in surviving::accepted(),
        expiry in prop_oneof![Just(Expiry::Either), Just(Expiry::Observed), Just(Expiry::Both)],
        trip in 0..=40_u32,
        ppm in prop::array::uniform3(-500..=500_i32),
        seed in any::<u64>(),
        moment in 0.0..1.0_f64,
    ) -> Setting {
        let timing = builder.expiry(expiry).build().unwrap();
        let skew = |ppm| Skew { ahead: Duration::from_secs(5), ppm };
        Setting {
            timing,
            round_trip: timing.operation_timeout() * trip / 100,
            clocks: ppm.map(skew),
            seed,
            moment,
        }
    }
}

impl Setting {
    /// The first candidate leads, the second one follows, and everything has settled.
    fn settled(&self) -> World {
        let healthy = Fate::round_trip(self.round_trip);
        let mut world = World::new(self.clocks[0], self.seed, Box::new(move |_, _| healthy));
        world.join(self.timing, self.clocks[1]);
        let lease = self.timing.lease_duration();
        assert!(world.run(lease, |world| world.leader() == Some(0)));
        world.join(self.timing, self.clocks[2]);
        let settled = world.now + lease * 3 + self.timing.retry_period() * 2;
        world.run(settled + lease.mul_f64(self.moment), |_| false);
        assert_eq!(world.leader(), Some(0));
        world
    }

    fn worst_case(&self) -> WorstCase {
        self.timing.worst_case_with(self.round_trip)
    }
}

fn lead_within(
    world: &mut World,
    bound: Duration,
    member: Option<usize>,
) -> Result<(), TestCaseError> {
    let from = world.now;
    let leads = |world: &World| match member {
        Some(member) => world.leader() == Some(member),
        None => world.leader().is_some(),
    };
    prop_assert!(world.run(from + bound, leads), "nobody leads {bound:?} after {from:?}");
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn after_a_kill_the_next_leader_is_there_in_time(setting in settings()) {
        let mut world = setting.settled();
        world.kill(0);
        lead_within(&mut world, setting.worst_case().fail_over, Some(1))?;
    }

    #[test]
    fn after_a_hand_over_the_next_leader_is_there_in_time(setting in settings()) {
        let mut world = setting.settled();
        world.give(0, Input::Shutdown);
        let limit = world.now + setting.timing.shutdown_bound();
        let is_releasing =
            |world: &World| matches!(world.calls.last(), Some((_, 0, Call::Release(_))));
        prop_assert!(world.run(limit, is_releasing));
        lead_within(&mut world, setting.worst_case().hand_over, Some(1))?;
    }

    #[test]
    fn after_an_outage_and_a_kill_somebody_leads_in_time(
        setting in settings(),
        outage in 0.0..4.0_f64,
        is_killed in any::<bool>(),
        is_executed in any::<bool>(),
    ) {
        let mut world = setting.settled();
        let over = world.now + setting.timing.lease_duration().mul_f64(outage);
        let healthy = Fate::round_trip(setting.round_trip);
        let lost = Fate {
            executed: [is_executed.then_some(Duration::ZERO), None],
            ..Fate::HANGS
        };
        world.network = Box::new(move |now, _| if now < over { lost } else { healthy });
        world.run(over, |_| false);
        if is_killed {
            world.kill(0);
        }
        lead_within(&mut world, setting.worst_case().recovery, None)?;
    }

    #[test]
    fn an_outage_that_is_said_to_be_survived_costs_no_term(setting in settings()) {
        let mut world = setting.settled();
        let outage = setting.worst_case().survived_outage;
        let (from, over) = (world.now, world.now + outage);
        let (there, back) = (setting.round_trip / 2, setting.round_trip - setting.round_trip / 2);
        world.network = Box::new(move |sent, _| {
            // The store is away from `from` to `over`: what would be executed in between is lost.
            let is_lost = (from..over).contains(&(sent + there));
            if is_lost { Fate::HANGS } else {
                Fate { executed: [Some(there), None], answer: Answer::After(back) }
            }
        });
        world.run(over + setting.timing.lease_duration() * 2, |_| false);
        let ended = |(_, _, change): &(Duration, usize, Change)| {
            matches!(change, Change::Ended(TermEnd::Expired | TermEnd::Lost))
        };
        prop_assert!(!world.changes.iter().any(ended), "{:?}", world.changes);
    }
}
