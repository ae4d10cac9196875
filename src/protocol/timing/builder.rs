//! Timings as the user gives them: what follows from them, and which of them contradict each other.

use std::time::Duration;

use super::{Remedy, Timing, TimingError};
use crate::protocol::Expiry;

/// The longest lease, and the longest time between two looks.
const MAX_PERIOD: Duration = Duration::from_secs(3600);
/// The shortest that anything which is set may be: below that a candidate would do nothing but ask.
const MIN_PERIOD: Duration = Duration::from_millis(1);
/// Timings as the user gives them. Each is derived from the lease's duration if it is not set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[must_use = "call `.build()`"]
pub struct TimingBuilder {
    lease_duration: Option<Duration>,
    renew_interval: Option<Duration>,
    retry_period: Option<Duration>,
    operation_timeout: Option<Duration>,
    safety_margin: Option<Duration>,
    drain_timeout: Option<Duration>,
    resign_pause: Option<Duration>,
    expiry: Expiry,
}

impl TimingBuilder {
    /// How long a lease is valid; bounds the fail-over after a crash. At most 1 h. Defaults to 15 s.
    pub const fn lease_duration(mut self, duration: Duration) -> Self {
        self.lease_duration = Some(duration);
        self
    }

    /// How often the leader extends its lease, from send to send. Defaults to a third of the lease.
    pub const fn renew_interval(mut self, interval: Duration) -> Self {
        self.renew_interval = Some(interval);
        self
    }

    /// How often a follower looks, give or take 20 %. Defaults to a fifth of the lease.
    pub const fn retry_period(mut self, period: Duration) -> Self {
        self.retry_period = Some(period);
        self
    }

    /// Bounds one call to the store. Defaults to a fifth of the lease.
    pub const fn operation_timeout(mut self, timeout: Duration) -> Self {
        self.operation_timeout = Some(timeout);
        self
    }

    /// How much earlier than the lease the term ends here. Defaults to a tenth of the lease, at least 1 s, at most a sixth
    /// of the lease.
    pub const fn safety_margin(mut self, margin: Duration) -> Self {
        self.safety_margin = Some(margin);
        self
    }

    /// How long a voluntary end waits for work. Defaults to 10 s.
    pub const fn drain_timeout(mut self, timeout: Duration) -> Self {
        self.drain_timeout = Some(timeout);
        self
    }

    /// How long a candidate does not contend after it resigned, from when it follows again. Defaults to two retry periods
    /// and an operation timeout.
    pub const fn resign_pause(mut self, pause: Duration) -> Self {
        self.resign_pause = Some(pause);
        self
    }

    /// Who says that a lease has expired. Defaults to [`Expiry::Either`].
    pub const fn expiry(mut self, expiry: Expiry) -> Self {
        self.expiry = expiry;
        self
    }

    /// Fills in what was not set, and checks everything together.
    ///
    /// # Errors
    /// [`TimingError`] names the field, both sides in figures, and what would pass.
    pub fn build(self) -> Result<Timing, TimingError> {
        for (field, set) in [
            ("lease_duration", self.lease_duration),
            ("renew_interval", self.renew_interval),
            ("retry_period", self.retry_period),
            ("operation_timeout", self.operation_timeout),
            ("safety_margin", self.safety_margin),
        ] {
            if let Some(value) = set.filter(|value| *value < MIN_PERIOD) {
                return Err(TimingError::TooShort { field, value, limit: MIN_PERIOD });
            }
        }
        let timing = self.derive();
        for (field, value) in
            [("lease_duration", timing.lease_duration), ("retry_period", timing.retry_period)]
        {
            if value > MAX_PERIOD {
                return Err(TimingError::TooLong { field, value, limit: MAX_PERIOD });
            }
        }
        if timing.survives_a_lost_renewal() {
            return Ok(timing);
        }
        Err(TimingError::NoRoomForALostRenewal {
            needed: timing.one_renewal_lost(),
            available: timing.term_length(),
            refused: Box::new(timing),
            remedy: self.remedy(timing.lease_duration),
        })
    }

    /// The figures, whether they contradict each other or not.
    fn derive(self) -> Timing {
        let lease = self.lease_duration.unwrap_or(Duration::from_secs(15));
        let retry_period = self.retry_period.unwrap_or(lease / 5);
        let operation_timeout = self.operation_timeout.unwrap_or(lease / 5);
        let derived_margin = (lease / 10).max(Duration::from_secs(1)).min(lease / 6);
        let derived_pause = retry_period.saturating_mul(2).saturating_add(operation_timeout);
        Timing {
            lease_duration: lease,
            renew_interval: self.renew_interval.unwrap_or(lease / 3),
            retry_period,
            operation_timeout,
            safety_margin: self.safety_margin.unwrap_or(derived_margin),
            drain_timeout: self.drain_timeout.unwrap_or(Duration::from_secs(10)),
            resign_pause: self.resign_pause.unwrap_or(derived_pause),
            expiry: self.expiry,
        }
    }

    /// The shortest longer lease with which the rest of the settings passes, in steps of a tenth; or, where no lease is
    /// long enough, to leave the rest to be derived.
    fn remedy(self, refused: Duration) -> Remedy {
        let mut lease = round_up_to_ms(refused);
        while lease < MAX_PERIOD {
            lease = round_up_to_ms(lease / 10 * 11 + Duration::from_millis(1)).min(MAX_PERIOD);
            if self.lease_duration(lease).derive().survives_a_lost_renewal() {
                return Remedy::LongerLease(lease);
            }
        }
        Remedy::DeriveTheRest
    }
}

fn round_up_to_ms(duration: Duration) -> Duration {
    let ms = duration.as_nanos().div_ceil(1_000_000);
    Duration::from_millis(u64::try_from(ms).unwrap_or(u64::MAX))
}
