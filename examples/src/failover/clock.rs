//! The clock by which requests and exercises are timed: one for the whole run, of this process alone.

// Nothing is elected by it, and it is read on one machine that is not suspended meanwhile.
#![allow(clippy::disallowed_methods)]

use std::time::{Duration, Instant};

/// Time since the run began.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clock(Instant);

impl Clock {
    pub(super) fn start() -> Self {
        Self(Instant::now())
    }

    pub(super) fn now(self) -> Duration {
        self.0.elapsed()
    }
}
