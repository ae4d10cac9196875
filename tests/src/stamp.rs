//! A reading of the clock that all processes of a machine share.

use std::{
    fmt,
    ops::{Add, Sub},
    time::Duration,
};

use serde::{Deserialize, Serialize};
use tenure::Clock;

/// A reading of the system's clock, in nanoseconds since the machine was started: those of different processes can be
/// compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Stamp(u64);

impl Stamp {
    /// Now.
    #[must_use]
    pub fn now() -> Self {
        Self(Clock::system().now().as_nanos())
    }

    /// A reading that was written down in microseconds.
    ///
    /// # Panics
    /// If it is negative.
    #[must_use]
    pub fn from_micros(micros: i64) -> Self {
        Self(u64::try_from(micros).expect("no clock shows less than zero").saturating_mul(1_000))
    }

    /// How long ago it was.
    #[must_use]
    pub fn age(self) -> Duration {
        Self::now() - self
    }
}

impl Add<Duration> for Stamp {
    type Output = Self;

    fn add(self, duration: Duration) -> Self {
        let nanos = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        Self(self.0.saturating_add(nanos))
    }
}

/// The time between two, zero if the second is the later one.
impl Sub for Stamp {
    type Output = Duration;

    fn sub(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

impl fmt::Display for Stamp {
    /// In seconds.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:06}", self.0 / 1_000_000_000, self.0 % 1_000_000_000 / 1_000)
    }
}
