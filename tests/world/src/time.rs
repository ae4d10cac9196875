//! True time, and clocks that show it more or less.

use std::{
    fmt,
    ops::{Add, Sub},
    time::Duration,
};

use tenure::Instant;

/// A point in true time, which nobody in the world can read: nanoseconds since it began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Moment(u64);

impl Moment {
    /// The beginning of the world.
    pub const START: Self = Self(0);
    /// Later than anything that happens.
    pub const NEVER: Self = Self(u64::MAX);

    /// The moment `nanos` nanoseconds after the beginning.
    #[must_use]
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// The moment `secs` seconds after the beginning.
    #[must_use]
    pub const fn from_secs(secs: u64) -> Self {
        Self(secs * 1_000_000_000)
    }

    /// Nanoseconds since the beginning.
    #[must_use]
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// How long ago `earlier` was; zero if it lies in the future.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Duration> for Moment {
    type Output = Self;

    fn add(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(nanos(duration)))
    }
}

impl Sub<Duration> for Moment {
    type Output = Self;

    fn sub(self, duration: Duration) -> Self {
        Self(self.0.saturating_sub(nanos(duration)))
    }
}

impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (seconds, rest) = (self.0 / 1_000_000_000, self.0 % 1_000_000_000);
        write!(f, "{seconds:>4}.{:06}", rest / 1_000)
    }
}

/// The nanoseconds of a duration, as far as a clock can count them.
fn nanos(duration: Duration) -> u64 {
    duration.as_secs().saturating_mul(1_000_000_000).saturating_add(duration.subsec_nanos().into())
}

/// A clock that began to count at some other time, and that runs faster or slower than true time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Skew {
    /// What it showed when the world began.
    pub ahead: Duration,
    /// By how many parts per million it is faster.
    pub ppm: i32,
}

impl Skew {
    /// The parts of which there are a million.
    const MILLION: u64 = 1_000_000;

    /// A clock that showed `ahead` when the world began, and is `ppm` parts per million faster than true time.
    #[must_use]
    pub const fn new(ahead: Duration, ppm: i32) -> Self {
        Self { ahead, ppm }
    }

    /// What it shows at a moment.
    #[must_use]
    pub fn shows(self, moment: Moment) -> Instant {
        Instant::from_nanos(nanos(self.ahead) + moment.0 * self.rate() / Self::MILLION)
    }

    /// The first moment at which it shows `local`, or [`Moment::NEVER`] if that is ages away.
    #[must_use]
    pub fn reaches(self, local: Instant) -> Moment {
        let counted = local.as_nanos().saturating_sub(nanos(self.ahead));
        let parts = counted.checked_mul(Self::MILLION);
        parts.map_or(Moment::NEVER, |parts| Moment(parts.div_ceil(self.rate())))
    }

    fn rate(self) -> u64 {
        Self::MILLION.saturating_add_signed(self.ppm.into())
    }
}

/// The clock of a store: it can be set.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StoreClock {
    skew: Skew,
    /// By how many nanoseconds it has been set ahead.
    moved: i64,
}

impl StoreClock {
    pub(crate) fn new(skew: Skew) -> Self {
        Self { skew, moved: 0 }
    }

    /// Nanoseconds since its own origin.
    pub(crate) fn shows(self, moment: Moment) -> i64 {
        let shown = self.skew.shows(moment).as_nanos();
        i64::try_from(shown).unwrap_or(i64::MAX).saturating_add(self.moved)
    }

    pub(crate) fn set_ahead(&mut self, nanos: i64) {
        self.moved = self.moved.saturating_add(nanos);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_reaches_what_it_shows() {
        for ppm in [-50_000, -1, 0, 1, 50_000] {
            let clock = Skew::new(Duration::from_secs(86_400), ppm);
            for nanos in [0, 1, 999_999_999, 600_000_000_001] {
                let moment = Moment::from_nanos(nanos);
                let local = clock.shows(moment);
                let reached = clock.reaches(local);
                assert!(reached <= moment && clock.shows(reached) == local, "{ppm} {nanos}");
                let next = clock.reaches(local + Duration::from_nanos(1));
                assert!(next > moment, "{ppm} {nanos}");
            }
        }
    }

    #[test]
    fn what_is_ages_away_is_never_reached() {
        let clock = Skew::new(Duration::ZERO, 0);
        assert_eq!(clock.reaches(Instant::from_nanos(u64::MAX)), Moment::NEVER);
    }
}
