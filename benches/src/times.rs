//! How long the same thing took, again and again.

use std::{fmt, time::Duration};

/// Durations of one thing in many runs.
#[derive(Clone, Debug, Default)]
pub struct Times(Vec<Duration>);

impl Times {
    /// The duration in the middle; zero if there is none.
    #[must_use]
    pub fn median(&self) -> Duration {
        self.0.get(self.0.len() / 2).copied().unwrap_or_default()
    }

    /// The longest; zero if there is none.
    #[must_use]
    pub fn max(&self) -> Duration {
        self.0.last().copied().unwrap_or_default()
    }

    /// How many times as long it takes as the other thing, going by the medians.
    #[must_use]
    pub fn ratio(&self, other: &Self) -> f64 {
        self.median().as_secs_f64() / other.median().as_secs_f64()
    }
}

impl FromIterator<Duration> for Times {
    fn from_iter<T: IntoIterator<Item = Duration>>(times: T) -> Self {
        let mut times: Vec<_> = times.into_iter().collect();
        times.sort();
        Self(times)
    }
}

/// In milliseconds.
impl fmt::Display for Times {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let millis = |time: Duration| time.as_secs_f64() * 1e3;
        let min = self.0.first().copied().unwrap_or_default();
        let [min, median, max] = [min, self.median(), self.max()].map(millis);
        write!(f, "min {min:>8.2}  median {median:>8.2}  max {max:>8.2} ms")
    }
}
