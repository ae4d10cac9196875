//! How long everything takes, and how long anybody waits in the worst case.

mod builder;
mod error;

#[cfg(test)]
mod tests;

use std::time::Duration;

pub use self::{
    builder::TimingBuilder,
    error::{Remedy, TimingError},
};
use super::Expiry;
use crate::instant::Instant;

/// One in this many: by how much two clocks' rates may differ for the figures of [`Timing::worst_case`]. It is 500 ppm
/// each way, as far as NTP slews a clock.
const RATE_ERROR: u32 = 1_000;
/// The longest jitter that is added to the expiry of a lease.
pub(super) const MAX_EXPIRY_JITTER: Duration = Duration::from_millis(5);
const MIN_RETRY_DELAY: Duration = Duration::from_millis(50);

/// Timings that were checked: a leader survives one lost renewal with any of them.
///
/// ```
/// use std::time::Duration;
/// use tenure::protocol::Timing;
///
/// let timing = Timing::builder().lease_duration(Duration::from_secs(3)).build()?;
/// assert_eq!(timing.renew_interval(), Duration::from_secs(1));
/// assert_eq!(timing.safety_margin(), Duration::from_millis(500));
/// # Ok::<(), tenure::protocol::TimingError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Timing {
    lease_duration: Duration,
    renew_interval: Duration,
    retry_period: Duration,
    operation_timeout: Duration,
    safety_margin: Duration,
    drain_timeout: Duration,
    resign_pause: Duration,
    expiry: Expiry,
}

impl Timing {
    /// Collects settings.
    pub fn builder() -> TimingBuilder {
        TimingBuilder::default()
    }

    /// How long a lease is valid.
    #[must_use]
    pub const fn lease_duration(&self) -> Duration {
        self.lease_duration
    }

    /// How often the leader extends its lease, from send to send.
    #[must_use]
    pub const fn renew_interval(&self) -> Duration {
        self.renew_interval
    }

    /// How often a follower looks, give or take 20 %.
    #[must_use]
    pub const fn retry_period(&self) -> Duration {
        self.retry_period
    }

    /// Bounds one call to the store.
    #[must_use]
    pub const fn operation_timeout(&self) -> Duration {
        self.operation_timeout
    }

    /// How much earlier than the lease the term ends here.
    #[must_use]
    pub const fn safety_margin(&self) -> Duration {
        self.safety_margin
    }

    /// How long a voluntary end waits for work.
    #[must_use]
    pub const fn drain_timeout(&self) -> Duration {
        self.drain_timeout
    }

    /// How long a candidate does not contend after it resigned.
    #[must_use]
    pub const fn resign_pause(&self) -> Duration {
        self.resign_pause
    }

    /// Who says that a lease has expired.
    #[must_use]
    pub const fn expiry(&self) -> Expiry {
        self.expiry
    }

    /// How long after a failed call the next one is sent: a quarter of the renew interval, at least 50 ms.
    #[must_use]
    pub fn retry_delay(&self) -> Duration {
        (self.renew_interval / 4).max(MIN_RETRY_DELAY)
    }

    /// The most that [`shutdown`](crate::Candidacy::shutdown) takes.
    #[must_use]
    pub fn shutdown_bound(&self) -> Duration {
        let waits = self.drain_timeout.max(self.operation_timeout);
        waits.saturating_add(self.operation_timeout.saturating_mul(2))
    }

    /// What users wait for in the worst case, with a store that answers at once. See [`Timing::worst_case_with`].
    #[must_use]
    pub fn worst_case(&self) -> WorstCase {
        self.worst_case_with(Duration::ZERO)
    }

    /// What users wait for in the worst case, with a store that takes up to `round_trip` for an answer. The rate by which
    /// clocks may differ (0.1 %) is included.
    #[must_use]
    pub fn worst_case_with(&self, round_trip: Duration) -> WorstCase {
        let sum = |parts: &[Duration]| {
            parts.iter().copied().fold(Duration::ZERO, Duration::saturating_add)
        };
        let with_rate = |duration: Duration| duration.saturating_add(duration / RATE_ERROR);
        let trips = |n: u32| round_trip.saturating_mul(n);
        let lease = self.lease_duration;
        let expired = sum(&[lease, MAX_EXPIRY_JITTER]);
        let look = self.retry_period.saturating_mul(6) / 5;
        // The call that was hanging when the faults stopped, the wait after it, and the first look that succeeds.
        let first_look = sum(&[self.operation_timeout, look.max(self.retry_delay()), round_trip]);
        // From the request of the last renewal, which may have been on its way, to the answer to an acquire.
        let (fail_over, recovery) = match self.expiry {
            Expiry::Either => {
                (sum(&[expired, trips(3)]), sum(&[first_look.max(expired), trips(3)]))
            }
            Expiry::Observed => {
                (sum(&[expired, look, trips(4)]), sum(&[first_look, expired, trips(2)]))
            }
            Expiry::Both => {
                (sum(&[expired, look, trips(4)]), sum(&[first_look, expired, lease, trips(2)]))
            }
        };
        let lost = sum(&[self.one_renewal_lost(), round_trip]);
        WorstCase {
            fail_over: with_rate(fail_over),
            hand_over: with_rate(sum(&[look, trips(3)])),
            recovery: with_rate(recovery),
            survived_outage: sum(&[self.term_length(), self.operation_timeout])
                .saturating_sub(lost),
        }
    }

    /// Until when a term may go on, confirmed by an answer to what was sent at `sent` (rule S2): the store counted from
    /// some later instant, so this side stops first.
    #[must_use]
    pub fn hold_deadline(&self, sent: Instant, ttl: Option<Duration>) -> Instant {
        let valid = ttl.map_or(self.lease_duration, |ttl| ttl.min(self.lease_duration));
        sent + valid.saturating_sub(self.safety_margin)
    }

    fn term_length(&self) -> Duration {
        self.lease_duration.saturating_sub(self.safety_margin)
    }

    fn one_renewal_lost(&self) -> Duration {
        let sent = self.renew_interval.max(self.operation_timeout);
        sent.saturating_add(self.operation_timeout.saturating_mul(2))
            .saturating_add(self.retry_delay())
    }

    fn survives_a_lost_renewal(&self) -> bool {
        self.one_renewal_lost() <= self.term_length()
    }
}

/// The longest that users wait, from [`Timing::worst_case`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct WorstCase {
    /// From the death of a leader to the next one, in a healthy system.
    pub fail_over: Duration,
    /// From the release of a lease to the next leader, without hints.
    pub hand_over: Duration,
    /// From the moment in which faults stop, whatever they were, to a leader.
    pub recovery: Duration,
    /// The longest time for which the store may be away without costing the leader its term.
    pub survived_outage: Duration,
}
