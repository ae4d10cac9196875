//! What becomes of one call on its way to the store and back.

use std::time::Duration;

/// What the network is like.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(clippy::exhaustive_enums)] // a schedule must know them all
pub enum Weather {
    /// Every call is answered, soon.
    Fair,
    /// Now and then something is lost, slow, or happens twice.
    Rough,
    /// Much is lost, and much is executed long after anybody waits for it.
    Storm,
}

/// The longest round trip of a call in fair weather.
pub const FAIR_ROUND_TRIP: Duration = Duration::from_millis(8);

/// What becomes of one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fate {
    /// How long after it was sent the store executes it; never if that is lost.
    pub(crate) executed: Option<Duration>,
    /// The same for a copy of it.
    pub(crate) doubled: Option<Duration>,
    /// How long each answer takes; none if it is lost.
    pub(crate) answered: Option<Duration>,
    /// How long after it was sent somebody on the way says that it failed.
    pub(crate) failed: Option<Duration>,
    /// How much later than it wrote the store looks how long the lease is still valid.
    pub(crate) worn: Duration,
}

/// How many of 1,024 calls get what they don't deserve.
struct Odds {
    request_lost: u64,
    answer_lost: u64,
    failed: u64,
    failed_yet_executed: u64,
    slow: u64,
    slow_answer: u64,
    late: u64,
    doubled: u64,
    worn: u64,
}

const ROUGH: Odds = Odds {
    request_lost: 20,
    answer_lost: 20,
    failed: 12,
    failed_yet_executed: 12,
    slow: 40,
    slow_answer: 40,
    late: 10,
    doubled: 16,
    worn: 10,
};

const STORM: Odds = Odds {
    request_lost: 120,
    answer_lost: 120,
    failed: 60,
    failed_yet_executed: 60,
    slow: 120,
    slow_answer: 120,
    late: 100,
    doubled: 60,
    worn: 40,
};

/// What is slow takes up to this long: longer than most timeouts.
const SLOW: Duration = Duration::from_millis(4_500);
/// What is late comes up to this much later: after restarts, and after other terms.
const LATE: Duration = Duration::from_secs(60);

/// A store that is busy may need this long between a write and its answer.
const WORN: Duration = Duration::from_secs(12);

impl Fate {
    /// Whether it is executed and answered as soon as in fair weather.
    pub(crate) fn is_fair(&self) -> bool {
        let leg = FAIR_ROUND_TRIP / 2;
        let is_soon = |delay: Option<Duration>| delay.is_some_and(|delay| delay <= leg);
        self.failed.is_none() && is_soon(self.executed) && is_soon(self.answered)
    }

    /// Of a call with this roll: zero is the best there is.
    pub(crate) fn of(roll: u64, weather: Weather) -> Self {
        let bits = |from: u32, count: u32| (roll >> from) & ((1 << count) - 1);
        let part = |of: Duration, from: u32| of.mul_f64(bits(from, 10) as f64 / 1_024.0);
        let leg = FAIR_ROUND_TRIP / 2;
        let (there, back) = (part(leg, 0), part(leg, 10));
        let fair = Self {
            executed: Some(there),
            doubled: None,
            answered: Some(back),
            failed: None,
            worn: Duration::ZERO,
        };
        let odds = match weather {
            Weather::Fair => return fair,
            Weather::Rough => ROUGH,
            Weather::Storm => STORM,
        };
        let (size, other) = (20, 30);
        // Long delays are rarer than short ones.
        let late = part(part(LATE, size), other);
        // The harmless fate has the lowest numbers.
        let mut left = 1_023 - bits(40, 10);
        let mut is = |share: u64| {
            let hit = left < share;
            left = left.wrapping_sub(if hit { 0 } else { share });
            hit
        };
        if is(odds.request_lost) {
            Self { executed: None, answered: None, ..fair }
        } else if is(odds.answer_lost) {
            Self { answered: None, ..fair }
        } else if is(odds.failed) {
            Self { executed: None, answered: None, failed: Some(part(SLOW, size)), ..fair }
        } else if is(odds.failed_yet_executed) {
            Self {
                executed: Some(part(SLOW, other)),
                answered: None,
                failed: Some(part(SLOW, size)),
                ..fair
            }
        } else if is(odds.slow) {
            Self { executed: Some(part(SLOW, size)), ..fair }
        } else if is(odds.slow_answer) {
            Self { answered: Some(part(SLOW, size)), ..fair }
        } else if is(odds.late) {
            Self { executed: Some(late), ..fair }
        } else if is(odds.doubled) {
            Self { doubled: Some(late), ..fair }
        } else if is(odds.worn) {
            Self { worn: part(WORN, size), ..fair }
        } else {
            fair
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::choices::{Choices, Seeded};

    #[test]
    fn a_call_that_is_not_struck_takes_no_time_whatever_the_weather() {
        for weather in [Weather::Fair, Weather::Rough, Weather::Storm] {
            let fate = Fate::of(0, weather);
            assert_eq!(fate.executed, Some(Duration::ZERO));
            assert_eq!((fate.answered, fate.doubled), (Some(Duration::ZERO), None));
        }
    }

    #[test]
    fn every_kind_of_bad_luck_strikes_in_a_storm_and_none_in_fair_weather() {
        let mut choices = Seeded::new(3);
        let mut seen = [0; 6];
        for _ in 0..10_000 {
            let roll = choices.roll();
            let fair = Fate::of(roll, Weather::Fair);
            let round_trip = fair.executed.unwrap() + fair.answered.unwrap();
            assert!(round_trip < FAIR_ROUND_TRIP && fair.doubled.is_none());
            let fate = Fate::of(roll, Weather::Storm);
            let late = Duration::from_secs(10);
            for (count, is) in seen.iter_mut().zip([
                fate.executed.is_none() && fate.failed.is_none(),
                fate.executed.is_some() && fate.failed.is_some(),
                fate.executed.is_some() && fate.answered.is_none(),
                fate.executed.is_some_and(|delay| delay > late),
                fate.doubled.is_some_and(|delay| delay > late),
                fate.worn > late / 2,
            ]) {
                *count += u32::from(is);
            }
        }
        assert!(seen.iter().all(|count| *count > 100), "{seen:?}");
    }
}
