//! A point on the local clock, and nothing else: who reads the clock is [`crate::clock`].

use std::{
    fmt,
    ops::{Add, Sub},
    time::Duration,
};

/// A point in time on one candidate's own clock: nanoseconds since an origin that only that clock knows.
///
/// It is not a [`std::time::Instant`], which stops while the machine is suspended, and it can not be made from a
/// timestamp of a server: stores report durations, never points in time (rule S12). All arithmetic saturates, so
/// that an absurd duration can neither overflow nor bring a deadline back into the future.
///
/// ```
/// use std::time::Duration;
/// use tenure::Instant;
///
/// let sent = Instant::from_nanos(1_000);
/// assert_eq!(sent + Duration::from_nanos(500), Instant::from_nanos(1_500));
/// assert_eq!(sent.saturating_since(Instant::from_nanos(2_000)), Duration::ZERO);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instant(u64);

impl Instant {
    /// The origin of the clock; no deadline lies before it.
    pub const ORIGIN: Self = Self(0);

    /// The point `nanos` nanoseconds after the clock's origin.
    #[must_use]
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// Nanoseconds since the clock's origin.
    #[must_use]
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// How long ago `earlier` was; zero if it lies in the future.
    #[must_use]
    pub const fn saturating_since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Duration> for Instant {
    type Output = Self;

    fn add(self, duration: Duration) -> Self {
        let nanos = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        Self(self.0.saturating_add(nanos))
    }
}

impl Sub<Duration> for Instant {
    type Output = Self;

    fn sub(self, duration: Duration) -> Self {
        let nanos = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        Self(self.0.saturating_sub(nanos))
    }
}

impl fmt::Display for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "+{:?}", Duration::from_nanos(self.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arithmetic_saturates_instead_of_wrapping() {
        let late = Instant::from_nanos(u64::MAX - 1);
        assert_eq!(late + Duration::MAX, Instant::from_nanos(u64::MAX));
        assert_eq!(Instant::from_nanos(5) - Duration::from_secs(1), Instant::ORIGIN);
    }

    #[test]
    fn an_instant_is_shown_as_the_time_since_the_origin() {
        assert_eq!(Instant::from_nanos(1_500_000_000).to_string(), "+1.5s");
    }
}
