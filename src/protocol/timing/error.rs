//! Why timings were refused, and what would pass.

use std::{fmt, time::Duration};

use super::Timing;

/// What would make refused timings pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Remedy {
    /// A lease of this duration, everything else as it was set.
    LongerLease(Duration),
    /// To set nothing but the lease's duration, since no allowed lease is long enough for what was set beside it.
    DeriveTheRest,
}

impl fmt::Display for Remedy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
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
