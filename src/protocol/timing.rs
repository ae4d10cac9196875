//! How long everything takes: the settings, what follows from them, and which of them contradict each other.

use std::time::Duration;

use super::Expiry;
use crate::instant::Instant;

/// One in this many: by how much two clocks' rates may differ for the figures of [`Timing::worst_case`]. It is 500 ppm
/// each way, as far as NTP slews a clock.
const RATE_ERROR: u32 = 1_000;
/// The longest jitter that is added to the expiry of a lease.
pub(super) const MAX_EXPIRY_JITTER: Duration = Duration::from_millis(5);
/// The longest lease, and the longest time between two looks.
const MAX_PERIOD: Duration = Duration::from_secs(3600);
/// The shortest that anything which is set may be: below that a candidate would do nothing but ask.
const MIN_PERIOD: Duration = Duration::from_millis(1);
const MIN_RETRY_DELAY: Duration = Duration::from_millis(50);

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

/// What would make refused timings pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Remedy {
    /// A lease of this duration, everything else as it was set.
    LongerLease(Duration),
    /// To set nothing but the lease's duration, since no allowed lease is long enough for what was set beside it.
    DeriveTheRest,
}

impl std::fmt::Display for Remedy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::LongerLease(lease) => {
                write!(f, "with lease_duration = {lease:?} and the rest as it is it would pass")
            }
            Self::DeriveTheRest => {
                f.write_str("set lease_duration alone (500ms to 1h), and the rest follows from it")
            }
        }
    }
}

/// Why timings were refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TimingError {
    /// A duration is so short that a candidate would do nothing but ask.
    #[error("{field} is {value:?}, at least {limit:?} is needed; leave it out for its default")]
    TooShort {
        /// Which one.
        field: &'static str,
        /// What was asked for.
        value: Duration,
        /// The least that is allowed.
        limit: Duration,
    },
    /// A duration is longer than any fail-over should take.
    #[error("{field} is {value:?}, at most {limit:?} is allowed")]
    TooLong {
        /// Which one.
        field: &'static str,
        /// What was asked for.
        value: Duration,
        /// The most that is allowed.
        limit: Duration,
    },
    /// A leader that loses one renewal could not complete a second one before its term ends.
    #[error(
        "renew_interval: one lost renewal takes max(renew_interval {:?}, operation_timeout {:?}) + 2 * operation_timeout \
         + retry_delay {:?} = {needed:?}, but lease_duration {:?} - safety_margin {:?} leaves {available:?}; {remedy}",
        refused.renew_interval,
        refused.operation_timeout,
        refused.retry_delay(),
        refused.lease_duration,
        refused.safety_margin
    )]
    NoRoomForALostRenewal {
        /// What the sum comes to.
        needed: Duration,
        /// What the lease leaves for it.
        available: Duration,
        /// All the figures, as set or derived.
        refused: Box<Timing>,
        /// What would pass.
        remedy: Remedy,
    },
}

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

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    #[test]
    fn the_default_is_the_table_in_the_design() {
        let timing = Timing::builder().build().unwrap();
        assert_eq!(timing.lease_duration(), ms(15_000));
        assert_eq!(timing.renew_interval(), ms(5_000));
        assert_eq!(timing.retry_period(), ms(3_000));
        assert_eq!(timing.operation_timeout(), ms(3_000));
        assert_eq!(timing.safety_margin(), ms(1_500));
        assert_eq!(timing.drain_timeout(), ms(10_000));
        assert_eq!(timing.resign_pause(), ms(9_000));
        assert_eq!(timing.retry_delay(), ms(1_250));
        assert_eq!(timing.shutdown_bound(), ms(16_000));
    }

    #[test]
    fn derived_timings_pass_for_every_lease_from_half_a_second_to_an_hour() {
        for lease in (501..20_000).step_by(37).chain((20_000..=3_600_000).step_by(70_001)) {
            let built = Timing::builder().lease_duration(ms(lease)).build();
            assert!(built.is_ok(), "{lease} ms: {built:?}");
        }
    }

    #[test]
    fn a_refusal_names_the_field_both_sides_and_what_would_pass() {
        let error = Timing::builder()
            .lease_duration(ms(10_000))
            .renew_interval(ms(5_000))
            .operation_timeout(ms(3_000))
            .safety_margin(ms(1_000))
            .build()
            .unwrap_err();
        let TimingError::NoRoomForALostRenewal { needed, available, .. } = &error else {
            panic!("{error:?}")
        };
        assert_eq!((*needed, *available), (ms(12_250), ms(9_000)));
        let text = error.to_string();
        for part in ["renew_interval", "12.25s", "9s", "lease_duration"] {
            assert!(text.contains(part), "{part} is missing in: {text}");
        }
    }

    #[test]
    fn what_an_error_recommends_passes() {
        let tight = Timing::builder().lease_duration(ms(10_000)).operation_timeout(ms(4_000));
        let Err(TimingError::NoRoomForALostRenewal { remedy: Remedy::LongerLease(lease), .. }) =
            tight.build()
        else {
            panic!("expected a longer lease as the remedy")
        };
        assert!(tight.lease_duration(lease).build().is_ok());

        let hopeless = Timing::builder().operation_timeout(ms(3_600_000));
        assert!(matches!(
            hopeless.build(),
            Err(TimingError::NoRoomForALostRenewal { remedy: Remedy::DeriveTheRest, .. })
        ));
    }

    #[test]
    fn absurd_timings_are_refused_without_overflow() {
        for builder in [
            Timing::builder().lease_duration(Duration::MAX),
            Timing::builder().lease_duration(Duration::ZERO),
            Timing::builder().lease_duration(ms(1)),
            Timing::builder().renew_interval(Duration::from_nanos(1)),
            Timing::builder().renew_interval(Duration::MAX),
            Timing::builder().operation_timeout(Duration::MAX),
            Timing::builder().safety_margin(Duration::MAX),
            Timing::builder().retry_period(Duration::ZERO),
            Timing::builder().retry_period(Duration::MAX),
        ] {
            assert!(builder.build().is_err(), "{builder:?}");
        }
        let patient = Timing::builder().drain_timeout(Duration::MAX).resign_pause(Duration::MAX);
        assert_eq!(patient.build().unwrap().shutdown_bound(), Duration::MAX);
    }

    #[test]
    fn what_is_too_short_is_named() {
        let ns = Duration::from_nanos(999_999);
        for (field, builder) in [
            ("lease_duration", Timing::builder().lease_duration(ns)),
            ("renew_interval", Timing::builder().renew_interval(ns)),
            ("retry_period", Timing::builder().retry_period(ns)),
            ("operation_timeout", Timing::builder().operation_timeout(ns)),
            ("safety_margin", Timing::builder().safety_margin(ns)),
        ] {
            let error = builder.build().unwrap_err();
            assert_eq!(error, TimingError::TooShort { field, value: ns, limit: ms(1) });
        }
    }

    #[test]
    fn refused_timings_have_worst_cases_without_overflow() {
        let builder = Timing::builder().renew_interval(Duration::MAX);
        let error = builder.operation_timeout(Duration::MAX).build().unwrap_err();
        let TimingError::NoRoomForALostRenewal { refused, .. } = error else { panic!("{error:?}") };
        assert_eq!(refused.worst_case_with(Duration::MAX).recovery, Duration::MAX);
    }

    #[test]
    fn a_deadline_counts_from_the_send_and_trusts_the_shorter_duration() {
        let timing = Timing::builder().build().unwrap();
        let sent = Instant::from_nanos(7);
        assert_eq!(timing.hold_deadline(sent, None), sent + ms(13_500));
        assert_eq!(timing.hold_deadline(sent, Some(ms(60_000))), sent + ms(13_500));
        assert_eq!(timing.hold_deadline(sent, Some(ms(5_000))), sent + ms(3_500));
        assert_eq!(timing.hold_deadline(sent, Some(ms(900))), sent);
    }

    #[test]
    fn the_worst_cases_are_the_sums_in_the_design() {
        let worst = |expiry| {
            Timing::builder().lease_duration(ms(3_000)).expiry(expiry).build().unwrap().worst_case()
        };
        let about = |a: Duration, b: u64| a.as_millis().abs_diff(u128::from(b)) <= 5;
        let either = worst(Expiry::Either);
        assert!(about(either.fail_over, 3_008), "{either:?}");
        assert!(about(either.hand_over, 721), "{either:?}");
        assert!(about(either.survived_outage, 650), "{either:?}");
        assert!(about(worst(Expiry::Observed).fail_over, 3_729));
        assert!(about(worst(Expiry::Observed).recovery, 4_329));
        assert!(about(worst(Expiry::Both).recovery, 7_332));
    }
}
