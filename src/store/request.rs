//! What is asked of a store, and how a conditional write ends.

use std::time::Duration;

use crate::lease::{Fence, Identity, Lease, Payload, Version};

/// What a candidate must find unchanged for its acquire to succeed: a compare-and-set.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Observed {
    /// The record's fence.
    pub fence: Fence,
    /// The record's version.
    pub version: Version,
}

impl Observed {
    /// The record with this fence and version.
    #[must_use]
    pub fn new(fence: Fence, version: Version) -> Self {
        Self { fence, version }
    }
}

impl From<&Lease> for Observed {
    fn from(lease: &Lease) -> Self {
        Self::new(lease.fence, lease.version.clone())
    }
}

/// What else must hold, beside the record being the one that was observed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(clippy::exhaustive_enums)] // a store must treat every condition there is
pub enum When {
    /// The lease has expired by the store's clock, read after the record was locked. A store that shows no clock is never
    /// asked for this, and answers that it lost.
    Expired,
    /// Nothing: the record was released, is the caller's own, or was watched unchanged for its whole duration.
    Unchanged,
}

/// Asks for a new term.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct AcquireRequest {
    /// Who asks.
    pub holder: Identity,
    /// What the record must still be; `None`: there must still be no record.
    pub observed: Option<Observed>,
    /// The further condition; of no meaning where no record was observed.
    pub when: When,
    /// The new fence must also be above this: the highest that the caller has ever seen.
    pub floor: Option<Fence>,
    /// For how long the lease is to be valid, exactly.
    pub duration: Duration,
    /// What the holder publishes.
    pub payload: Payload,
}

impl AcquireRequest {
    /// A request of `holder` for a record that is as it was observed.
    #[must_use]
    pub fn new(holder: Identity, observed: Option<Observed>, duration: Duration) -> Self {
        Self {
            holder,
            observed,
            when: When::Unchanged,
            floor: None,
            duration,
            payload: Payload::default(),
        }
    }
}

/// Asks to put an unheld, unreleased record where one has vanished, so that there is something to wait for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct PlaceRequest {
    /// For how long the record is not claimable.
    pub duration: Duration,
    /// Its fence must not be below this: the highest that the caller has ever seen.
    pub floor: Option<Fence>,
}

impl PlaceRequest {
    /// A record of this duration.
    #[must_use]
    pub fn new(duration: Duration) -> Self {
        Self { duration, floor: None }
    }
}

/// Asks to make the lease valid for `duration` from now on, if it is still this term's.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct RenewRequest {
    /// Who asks.
    pub holder: Identity,
    /// The term's fence.
    pub fence: Fence,
    /// For how long the lease is to be valid, exactly.
    pub duration: Duration,
    /// What to publish from now on; `None` leaves what is there.
    pub payload: Option<Payload>,
}

impl RenewRequest {
    /// Extends the term of `holder` with this fence.
    #[must_use]
    pub fn new(holder: Identity, fence: Fence, duration: Duration) -> Self {
        Self { holder, fence, duration, payload: None }
    }
}

/// Asks to give the lease back, if it is still this term's.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct ReleaseRequest {
    /// Who asks.
    pub holder: Identity,
    /// The term's fence.
    pub fence: Fence,
}

impl ReleaseRequest {
    /// Gives back the term of `holder` with this fence.
    #[must_use]
    pub fn new(holder: Identity, fence: Fence) -> Self {
        Self { holder, fence }
    }
}

/// How a conditional write ended. Losing is an outcome, not an error.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[allow(clippy::exhaustive_enums)] // callers match on both, and there is no third
pub enum Outcome {
    /// The write was executed after the call was made; this is the record now.
    Won(Lease),
    /// Nothing was written. The record that stood in the way, or `None` if there is none.
    Lost(Option<Lease>),
}

impl Outcome {
    /// The record as it is now, if there is one.
    #[must_use]
    pub fn lease(&self) -> Option<&Lease> {
        match self {
            Self::Won(lease) => Some(lease),
            Self::Lost(lease) => lease.as_ref(),
        }
    }
}
