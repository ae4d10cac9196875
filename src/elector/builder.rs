//! Collects what an elector is to be, and checks it.

use std::{convert::Infallible, time::Duration};

use super::{Elector, identity::Naming};
use crate::{
    clock::Clock,
    lease::{ElectionName, Identity, InvalidValue, Payload},
    protocol::{Expiry, Timing, TimingBuilder, TimingError},
    store::{DynStore, Store},
};

/// Why an elector could not be built.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The election's name, the identity or the payload is out of its limits.
    #[error(transparent)]
    Invalid(#[from] InvalidValue),
    /// Timings contradict each other.
    #[error(transparent)]
    Timing(#[from] TimingError),
    /// A rule that asks the store's clock was chosen for a store that shows none.
    #[error(
        "expiry: {expiry:?} asks the store's clock, and this store shows none; leave it out, or choose \
         Expiry::Observed"
    )]
    NoStoreClock {
        /// What was chosen.
        expiry: Expiry,
    },
    /// The operating system gave no random bits, without which no identity is unique.
    #[error("identity: the operating system gave no random bits to make it unique")]
    NoRandomness {
        /// What it said instead.
        #[source]
        source: getrandom::Error,
    },
}

/// So that names which need no checking are taken as well.
impl From<Infallible> for ConfigError {
    fn from(never: Infallible) -> Self {
        match never {}
    }
}

/// Collects settings; [`build`](Self::build) checks them together.
///
/// Setting [`lease_duration`](Self::lease_duration) alone is enough: all other timings follow from it.
#[derive(Debug)]
#[must_use = "call `.build()`"]
pub struct ElectorBuilder {
    election: Result<ElectionName, ConfigError>,
    store: DynStore,
    naming: Naming,
    payload: Payload,
    timing: TimingBuilder,
    expiry: Option<Expiry>,
    eligible: bool,
    ready: bool,
    clock: Clock,
}

impl ElectorBuilder {
    pub(super) fn new(election: Result<ElectionName, ConfigError>, store: impl Store) -> Self {
        Self {
            election,
            store: store.into_dyn(),
            naming: Naming::Drawn,
            payload: Payload::default(),
            timing: Timing::builder(),
            expiry: None,
            eligible: true,
            ready: true,
            clock: Clock::system(),
        }
    }

    /// What this candidate publishes while it leads, for example its address; up to 64 KiB, any bytes. Defaults to nothing.
    pub fn payload(mut self, payload: impl Into<Payload>) -> Self {
        self.payload = payload.into();
        self
    }

    /// A prefix for this candidate's identity, for people who read logs: `label-hostname-pid-random`. Defaults to none.
    pub fn label(mut self, label: impl Into<String>) -> Self {
        self.naming = Naming::Labelled(label.into());
        self
    }

    /// Fixes the identity, also over restarts, instead of drawing it anew for each elector.
    ///
    /// Two electors with one identity at the same time, be it a process that has just been replaced and is not quite dead
    /// yet, would each take the other's lease for its own. Defaults to a drawn one.
    pub fn fixed_identity_risking_two_leaders<I>(mut self, identity: I) -> Self
    where
        I: TryInto<Identity>,
        I::Error: Into<InvalidValue>,
    {
        self.naming = Naming::Fixed(identity.try_into().map_err(Into::into));
        self
    }

    /// How long a lease is valid; bounds the fail-over after a crash. At most 1 h. Defaults to 15 s.
    pub fn lease_duration(mut self, duration: Duration) -> Self {
        self.timing = self.timing.lease_duration(duration);
        self
    }

    /// How often the leader extends its lease, from send to send. Defaults to a third of the lease.
    pub fn renew_interval(mut self, interval: Duration) -> Self {
        self.timing = self.timing.renew_interval(interval);
        self
    }

    /// How often a follower looks, give or take 20 %. Defaults to a fifth of the lease.
    pub fn retry_period(mut self, period: Duration) -> Self {
        self.timing = self.timing.retry_period(period);
        self
    }

    /// Bounds one call to the store, connecting included. Defaults to a fifth of the lease.
    pub fn operation_timeout(mut self, timeout: Duration) -> Self {
        self.timing = self.timing.operation_timeout(timeout);
        self
    }

    /// How much earlier than the lease the term ends here. Defaults to a tenth of the lease, at least 1 s, at most a sixth
    /// of the lease.
    pub fn safety_margin(mut self, margin: Duration) -> Self {
        self.timing = self.timing.safety_margin(margin);
        self
    }

    /// How long a voluntary end waits for work. Defaults to 10 s.
    pub fn drain_timeout(mut self, timeout: Duration) -> Self {
        self.timing = self.timing.drain_timeout(timeout);
        self
    }

    /// How long this candidate does not contend after it resigned. Defaults to two retry periods and an operation timeout.
    pub fn resign_pause(mut self, pause: Duration) -> Self {
        self.timing = self.timing.resign_pause(pause);
        self
    }

    /// Who says that a lease has expired. Defaults to [`Expiry::Either`], or [`Expiry::Observed`] on a store that shows no
    /// clock.
    pub fn expiry(mut self, expiry: Expiry) -> Self {
        self.expiry = Some(expiry);
        self
    }

    /// Takes part without ever contending, until [`Leadership::set_eligible`](crate::Leadership::set_eligible) says
    /// otherwise. An observer writes nothing. Defaults to contending.
    pub fn observer(mut self) -> Self {
        self.eligible = false;
        self
    }

    /// A term that was won is not shown as leadership before [`Term::ready`](crate::Term::ready) is called: for leaders
    /// that must load something first. Defaults to being ready at once.
    pub fn ready_when_told(mut self) -> Self {
        self.ready = false;
        self
    }

    /// The clock that deadlines stand on. With a virtual one, [`Elector::spawn`] uses the runtime in which it is called.
    /// Defaults to the system's.
    #[cfg(any(test, feature = "test-util"))]
    #[cfg_attr(docsrs, doc(cfg(feature = "test-util")))]
    pub fn clock(mut self, clock: Clock) -> Self {
        self.clock = clock;
        self
    }

    /// Checks everything, and draws the identity. Does no I/O.
    ///
    /// # Errors
    /// [`ConfigError`] names the field that is wrong, and what would be right.
    pub fn build(self) -> Result<Elector, ConfigError> {
        let election = self.election?;
        let payload = self.payload.checked()?;
        let expiry = match (self.expiry, self.store.capabilities().clock) {
            (None, false) => Expiry::Observed,
            (Some(expiry), false) if expiry != Expiry::Observed => {
                return Err(ConfigError::NoStoreClock { expiry });
            }
            (chosen, _) => chosen.unwrap_or_default(),
        };
        let timing = self.timing.expiry(expiry).build()?;
        let identity = self.naming.draw()?;
        Ok(Elector::from_parts(super::Parts {
            election,
            identity,
            store: self.store,
            timing,
            payload,
            eligible: self.eligible,
            ready: self.ready,
            clock: self.clock,
        }))
    }
}
