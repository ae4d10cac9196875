//! Two or three candidates with clocks of their own against one store, while everything goes wrong that may. That there
//! is never more than one leader, that fences rise, and that a term begins over no old guard is checked by the world.

use std::time::Duration;

use proptest::prelude::*;

use crate::protocol::{
    Expiry, Input, Levels, Timing,
    tests::{
        database::Skew,
        ms,
        world::{Answer, Fate, World},
    },
};

/// How much faster or slower than real time each clock may be. Two of them differ by less than margin / lease.
const MAX_PPM: i32 = 40_000;

#[derive(Clone, Debug)]
enum Fault {
    /// Nothing, until the next one.
    Calm,
    Freeze(usize, Duration),
    /// A process dies, and another one takes its place.
    Replace(usize),
    Ask(usize, Input),
    Levels(usize, Levels),
    Depose,
    Delete,
    /// The store's clock is set to another time.
    MoveClock {
        by: Duration,
        back: bool,
    },
}

#[derive(Clone, Debug)]
struct Scenario {
    timings: Vec<Timing>,
    clocks: Vec<Skew>,
    store_clock: Skew,
    fates: Vec<Fate>,
    faults: Vec<(Duration, Fault)>,
    expiry: Expiry,
    /// Either records vanish or the store's clock is set back: after both, nothing is left that would make fences rise.
    may_delete: bool,
    seed: u64,
}

fn fates() -> impl Strategy<Value = Fate> {
    let delay = || {
        prop_oneof![
            4 => (0..100_u64).prop_map(ms),
            2 => (0..2_000_u64).prop_map(ms),
            1 => (0..20_000_u64).prop_map(ms),
        ]
    };
    let answer = prop_oneof![
        6 => delay().prop_map(Answer::After),
        1 => delay().prop_map(Answer::Failed),
        1 => Just(Answer::Never),
    ];
    (prop::option::weighted(0.9, delay()), prop::option::weighted(0.2, delay()), answer)
        .prop_map(|(first, second, answer)| Fate { executed: [first, second], answer })
}

fn faults() -> impl Strategy<Value = Fault> {
    let member = || 0..3_usize;
    let input = prop_oneof![
        Just(Input::Resign),
        Just(Input::Shutdown),
        Just(Input::Hint),
        any::<bool>().prop_map(Input::Eligible),
    ];
    let levels =
        (0..2_usize, 0..2_usize).prop_map(|(guards, in_flight)| Levels { guards, in_flight });
    prop_oneof![
        3 => Just(Fault::Calm),
        2 => (member(), 0..20_000_u64).prop_map(|(member, n)| Fault::Freeze(member, ms(n))),
        2 => member().prop_map(Fault::Replace),
        2 => (member(), input).prop_map(|(member, input)| Fault::Ask(member, input)),
        3 => (member(), levels).prop_map(|(member, levels)| Fault::Levels(member, levels)),
        1 => Just(Fault::Depose),
        1 => Just(Fault::Delete),
        1 => (0..30_000_u64, any::<bool>())
            .prop_map(|(n, back)| Fault::MoveClock { by: ms(n), back }),
    ]
}

fn skews() -> impl Strategy<Value = Skew> {
    (3_600_000..7_200_000_u64, -MAX_PPM..=MAX_PPM)
        .prop_map(|(ahead, ppm)| Skew { ahead: ms(ahead), ppm })
}

prop_compose! {
    fn scenarios()(
        expiry in prop_oneof![Just(Expiry::Either), Just(Expiry::Observed), Just(Expiry::Both)],
        leases in prop::collection::vec(3_000..9_000_u64, 2..=3),
        clocks in prop::collection::vec(skews(), 3),
        store_clock in skews(),
        fates in prop::collection::vec(fates(), 1..40),
        faults in prop::collection::vec(((0..4_000_u64).prop_map(ms), faults()), 0..25),
        may_delete in any::<bool>(),
        seed in any::<u64>(),
    ) -> Scenario {
        let timing = |lease| {
            let builder = Timing::builder().lease_duration(ms(lease)).drain_timeout(ms(2_000));
            builder.expiry(expiry).build().unwrap()
        };
        Scenario {
            timings: leases.into_iter().map(timing).collect(),
            clocks,
            store_clock,
            fates,
            faults,
            expiry,
            may_delete,
            seed,
        }
    }
}

impl Scenario {
    fn play(&self) -> Result<(), TestCaseError> {
        let (fates, mut next) = (self.fates.clone(), 0);
        let network = move |_: Duration, _: &_| {
            next += 1;
            fates[next % fates.len()]
        };
        let mut world = World::new(self.store_clock, self.seed, Box::new(network));
        for (timing, clock) in self.timings.iter().zip(&self.clocks) {
            world.join(*timing, *clock);
        }
        for (wait, fault) in &self.faults {
            world.run(world.now + *wait, |_| false);
            self.strike(&mut world, fault);
        }
        self.recover(&mut world)
    }

    fn strike(&self, world: &mut World, fault: &Fault) {
        // The latest candidate in that place.
        let places = self.timings.len();
        let latest = |place: &usize| {
            let first = place % places;
            let replaced = (world.members.len() - 1 - first) / places;
            first + replaced * places
        };
        match fault {
            Fault::Calm => {}
            Fault::Freeze(place, duration) => world.freeze(latest(place), *duration),
            Fault::Replace(place) => {
                // A fresh candidate can not know that there was a record: the design assumes that none starts then.
                if world.database.record.is_some() {
                    world.kill(latest(place));
                    world.join(self.timings[place % places], self.clocks[place % places]);
                }
            }
            Fault::Ask(place, input) => world.give(latest(place), input.clone()),
            Fault::Levels(place, levels) => world.set_levels(latest(place), *levels),
            Fault::Depose => world.depose(),
            Fault::Delete if self.may_delete => world.delete(),
            Fault::MoveClock { by, back: true } if !self.may_delete => world.move_clock(*by, true),
            Fault::MoveClock { by, back: false } if self.expiry != Expiry::Either => {
                world.move_clock(*by, false);
            }
            Fault::Delete | Fault::MoveClock { .. } => {}
        }
    }

    /// Once the last request of the bad times has been executed, somebody leads.
    fn recover(&self, world: &mut World) -> Result<(), TestCaseError> {
        let round_trip = ms(40);
        world.network = Box::new(move |_, _| Fate::round_trip(round_trip));
        world.run(world.settled_at(), |_| false);
        let everybody = 0..world.members.len();
        for member in everybody.clone() {
            world.set_levels(member, Levels::default());
            world.give(member, Input::Eligible(true));
        }
        if !everybody.clone().any(|member| world.takes_part(member)) {
            let is_quiet =
                |world: &World| !(0..world.members.len()).any(|member| world.is_running(member));
            prop_assert!(world.run(world.now + self.longest(Timing::shutdown_bound), is_quiet));
            world.join(self.timings[0], self.clocks[0]);
        }
        // As in the worst case, and what is not part of it: a pause, a record that was deleted or a clock that was set back
        // at the last moment, candidates with leases of different length, and clocks that differ by more than 0.1 %.
        let recovery = |timing: &Timing| timing.worst_case_with(round_trip).recovery;
        let lease = self.longest(Timing::lease_duration);
        let bound = self.longest(recovery) + 2 * lease + self.longest(Timing::resign_pause);
        let limit = world.now + bound + bound / 10;
        prop_assert!(world.run(limit, |world| world.leader().is_some()), "nobody leads");
        Ok(())
    }

    fn longest(&self, of: impl Fn(&Timing) -> Duration) -> Duration {
        self.timings.iter().map(of).max().unwrap()
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn there_is_never_more_than_one_leader_and_always_one_again(scenario in scenarios()) {
        scenario.play()?;
    }
}
