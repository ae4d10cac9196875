//! What refusals say, as set on an adapter.

use std::time::Duration;

use tenure::Leadership;

use crate::Refusal;

/// When a refused client is asked to come back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum RetryAfter {
    /// When the lease that was seen last will have run out, which is when this replica may lead: the default.
    #[default]
    Lease,
    /// Always after this time, rounded up to whole seconds. Behind a load balancer that does not know who leads, the next
    /// attempt may reach the leader at once, and a second is long enough.
    Fixed(Duration),
}

/// What refusals say. Adapters keep one, and make a [`Refusal`] with it for each request that is turned away.
///
/// ```
/// use std::time::Duration;
/// use tenure::{Elector, MemoryStore};
/// use tenure_http::{RefusalSettings, RetryAfter};
///
/// let elector = Elector::builder("billing", MemoryStore::new()).build()?;
/// let settings = RefusalSettings::new()
///     .advertise_leader()
///     .retry_after(RetryAfter::Fixed(Duration::from_secs(2)));
/// let refusal = settings.refusal(&elector.leadership());
/// assert_eq!(refusal.retry_after(), Duration::from_secs(2));
/// # Ok::<(), tenure::ConfigError>(())
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct RefusalSettings {
    advertise: bool,
    retry_after: RetryAfter,
}

impl RefusalSettings {
    /// Who leads is not told, and clients are asked to come back when the lease will have run out.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Tells whoever is refused who leads: identity, fence and payload. By default that is not told, since the payload
    /// is often an internal address.
    #[must_use]
    pub fn advertise_leader(mut self) -> Self {
        self.advertise = true;
        self
    }

    /// When clients are asked to come back.
    #[must_use]
    pub fn retry_after(mut self, retry_after: RetryAfter) -> Self {
        self.retry_after = retry_after;
        self
    }

    /// What there is to say to a request that is refused now.
    #[must_use]
    pub fn refusal(&self, leadership: &Leadership) -> Refusal {
        let status = leadership.status();
        let after = match self.retry_after {
            RetryAfter::Lease => status.lease_left(),
            RetryAfter::Fixed(after) => Some(after),
        };
        let refusal = Refusal::new(status.election().clone(), after);
        match status.other_leader() {
            Some(leader) if self.advertise => refusal.with_leader(leader.clone()),
            _ => refusal,
        }
    }
}
