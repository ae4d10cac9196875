//! One protocol, any inputs in any order, also answers that no store would give. What holds in every step is checked by
//! the candidate that drives it.

use std::time::Duration;

use proptest::prelude::*;

use crate::{
    instant::Instant,
    lease::{Lease, Version},
    protocol::{
        Call, Expiry, Input, Jitter, Levels, Phase, Reply, Timing,
        tests::{
            candidate::{Candidate, ME},
            fence, identity, ms,
        },
    },
    store::Outcome,
};

#[derive(Clone, Debug)]
enum Action {
    /// Time passes, and each wake-up comes when it was asked for.
    Advance(Duration),
    /// Time passes unnoticed.
    Sleep(Duration),
    /// The outstanding call is answered, by something that fits it.
    Answer {
        lease: Option<Lease>,
        is_won: bool,
    },
    Give(Input),
    Levels(Levels),
}

fn leases() -> impl Strategy<Value = Lease> {
    let holder = prop_oneof![2 => Just(Some(ME)), 1 => Just(Some("other")), 1 => Just(None)];
    let duration = prop_oneof![Just(ms(15_000)), Just(ms(1_000))];
    let ttl = prop::option::of((0..=10_u32).prop_map(|tenths| ms(1_500) * tenths));
    (holder, 1..9_i64, 1..6_u64, duration, ttl, prop::bool::weighted(0.2)).prop_map(
        |(holder, number, version, duration, ttl, released)| {
            let version = Version::from(version);
            let mut lease = Lease::new(holder.map(identity), fence(number), version, duration);
            lease.ttl = ttl.map(|ttl| ttl.min(duration));
            lease.released = released;
            lease
        },
    )
}

fn replies() -> impl Strategy<Value = Reply> {
    (0..6, prop::option::of(leases()), any::<bool>()).prop_map(|(kind, lease, is_won)| {
        let outcome = outcome(lease.clone(), is_won);
        match (kind, lease) {
            (0, lease) => Reply::Inspected(lease),
            (1, Some(lease)) => Reply::Placed(lease),
            (2, _) => Reply::Acquired(outcome),
            (3, _) => Reply::Renewed(outcome),
            (4, _) => Reply::Released(outcome),
            _ => Reply::Failed,
        }
    })
}

fn outcome(lease: Option<Lease>, is_won: bool) -> Outcome {
    match lease {
        Some(lease) if is_won => Outcome::Won(lease),
        lease => Outcome::Lost(lease),
    }
}

fn actions() -> impl Strategy<Value = Action> {
    let levels = (0..3_usize, 0..3_usize);
    prop_oneof![
        6 => (0..4_000_u64).prop_map(|n| Action::Advance(ms(n))),
        1 => (0..20_000_u64).prop_map(|n| Action::Sleep(ms(n))),
        12 => (prop::option::weighted(0.9, leases()), prop::bool::weighted(0.8))
            .prop_map(|(lease, is_won)| Action::Answer { lease, is_won }),
        1 => replies().prop_map(|reply| Action::Give(Input::Reply(reply))),
        1 => Just(Action::Give(Input::Wake)),
        1 => Just(Action::Give(Input::Hint)),
        1 => Just(Action::Give(Input::Resign)),
        1 => Just(Action::Give(Input::Over)),
        1 => any::<bool>().prop_map(|eligible| Action::Give(Input::Eligible(eligible))),
        2 => levels
            .prop_map(|(guards, in_flight)| Action::Levels(Levels { guards, in_flight })),
    ]
}

fn timings() -> impl Strategy<Value = Timing> {
    prop_oneof![Just(Expiry::Either), Just(Expiry::Observed), Just(Expiry::Both)]
        .prop_map(|expiry| Timing::builder().expiry(expiry).build().unwrap())
}

impl Candidate {
    fn act(&mut self, action: &Action) {
        match action {
            Action::Advance(by) => self.advance(*by),
            Action::Sleep(by) => self.sleep(*by),
            Action::Answer { lease, is_won } => {
                let Some(call) = self.asked() else { return };
                let outcome = outcome(lease.clone(), *is_won);
                let reply = match call {
                    Call::Inspect => Reply::Inspected(lease.clone()),
                    Call::Place(_) => lease.clone().map_or(Reply::Failed, Reply::Placed),
                    Call::Acquire(_) => Reply::Acquired(outcome),
                    Call::Renew(_) => Reply::Renewed(outcome),
                    Call::Release(_) => Reply::Released(outcome),
                };
                self.reply(reply);
            }
            Action::Give(input) => {
                self.give(input.clone());
            }
            Action::Levels(levels) => {
                // Nobody gets a guard of a term that is over.
                let has_term = self.protocol.term().is_some();
                let guards =
                    if has_term { levels.guards } else { levels.guards.min(self.levels.guards) };
                self.levels = Levels { guards, ..*levels };
                self.give(Input::Wake);
            }
        }
    }
}

fn starting_at(now: Instant, timing: Timing, eligible: bool) -> Candidate {
    Candidate::idle(identity(ME), timing, eligible, now)
}

proptest! {
    #[test]
    fn no_sequence_of_events_breaks_a_protocol(
        timing in timings(),
        is_eligible in prop::bool::weighted(0.9),
        acts in prop::collection::vec((actions(), any::<u16>()), 1..80),
        is_shut_down in any::<bool>(),
    ) {
        let mut candidate = starting_at(Instant::ORIGIN, timing, is_eligible);
        candidate.give(Input::Wake);
        for (action, numerator) in &acts {
            candidate.jitter = Jitter::new(*numerator);
            candidate.act(action);
        }
        if is_shut_down {
            candidate.give(Input::Shutdown);
            let asked = candidate.now;
            candidate.advance(timing.shutdown_bound());
            prop_assert_eq!(candidate.phase(), Phase::Stopped, "{} after {}", candidate.now, asked);
            for (action, _) in &acts {
                candidate.act(action);
            }
            prop_assert!(candidate.asked().is_none());
        }
    }

    #[test]
    fn the_time_of_day_makes_no_difference(
        timing in timings(),
        acts in prop::collection::vec((actions(), any::<u16>()), 1..60),
        later in 1..1_000_000_000_000_u64,
    ) {
        let later = Duration::from_nanos(later);
        let mut early = starting_at(Instant::ORIGIN, timing, true);
        let mut late = starting_at(Instant::ORIGIN + later, timing, true);
        for candidate in [&mut early, &mut late] {
            candidate.give(Input::Wake);
        }
        for (action, numerator) in &acts {
            for candidate in [&mut early, &mut late] {
                candidate.jitter = Jitter::new(*numerator);
                candidate.act(action);
            }
            prop_assert_eq!(&late.protocol.clone().rebased(later), &early.protocol);
            prop_assert_eq!(late.asked(), early.asked());
            prop_assert_eq!(late.remaining(), early.remaining());
        }
    }
}
