//! Collects what an elector is to be, and checks it.

use std::{convert::Infallible, future::Future, time::Duration};

use tokio::runtime::Handle;

use super::{Elector, callbacks::Callbacks, identity::Naming};
use crate::{
    clock::Clock,
    leadership::Leader,
    lease::{ElectionName, Identity, InvalidValue, Payload, TermEnd},
    protocol::{Expiry, Timing, TimingBuilder, TimingError},
    store::{DynStore, Store},
    telemetry::Telemetry,
    term::{Overrun, Term},
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
    /// There are callbacks, and no runtime to call them on.
    #[error(
        "callbacks need a tokio runtime: call build() within one, or name one with callback_runtime()"
    )]
    NoCallbackRuntime,
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
    releases: bool,
    callbacks: Callbacks,
    overrun: Overrun,
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
            releases: true,
            callbacks: Callbacks::default(),
            overrun: Overrun::default(),
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

    /// Whether the lease is given back when a term ends, so that a successor need not wait for it to run out. Turn it off where
    /// a leader's work should rest for a while after each term, whatever ended it. Defaults to `true`.
    pub fn release_on_end(mut self, release: bool) -> Self {
        self.releases = release;
        self
    }

    /// What to do about guarded work that goes on although the lease is over. Defaults to [`Overrun::Report`].
    pub fn on_overrun(mut self, overrun: Overrun) -> Self {
        self.overrun = overrun;
        self
    }

    /// Calls this for each term of this candidate, when it is elected, whether or not it is
    /// [ready](Self::ready_when_told) yet. What it returns runs for as long as the term admits work: it is dropped when the
    /// term is cancelled, as with [`Term::leader_only`](crate::Term::leader_only).
    ///
    /// May be called several times; all run beside each other. Each term that is still live when the runtime gets to it is
    /// called for, as in [`Leadership::each_term`](crate::Leadership::each_term). Callbacks run on the runtime in which
    /// [`build`](Self::build) is called, or on [`callback_runtime`](Self::callback_runtime). One that panics is reported, and
    /// changes nothing else. A callback may call back into everything; one that waits for a shutdown of its own elector
    /// waits only for the election to stop, not for itself.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use tenure::{Elector, MemoryStore};
    /// # struct Jobs;
    /// # impl Jobs { async fn run(&self, fence: tenure::Fence) {} }
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// # let jobs = Arc::new(Jobs);
    /// let elector = Elector::builder("invoice-reconciler", MemoryStore::new())
    ///     .on_started_leading(move |term| {
    ///         let jobs = jobs.clone();
    ///         async move { jobs.run(term.fence()).await }
    ///     })
    ///     .on_stopped_leading(|term, reason| async move { println!("{} is over: {reason}", term.fence()) })
    ///     .on_new_leader(|leader| async move { println!("{} leads", leader.identity()) })
    ///     .build()?;
    /// # Ok::<_, tenure::ConfigError>(())
    /// # })?;
    /// # Ok::<_, Box<dyn std::error::Error>>(())
    /// ```
    pub fn on_started_leading<F, Fut>(mut self, call: F) -> Self
    where
        F: FnMut(Term) -> Fut + Send + 'static,
        Fut: Future<Output = ()> + Send + 'static,
    {
        self.callbacks.on_started(call);
        self
    }

    /// Calls this after each term of this candidate, with the reason, once all that
    /// [`on_started_leading`](Self::on_started_leading) began has come to its end. The lease may be somebody else's by then.
    ///
    /// May be called several times; they are called one after the other, each for at most
    /// [`callback_timeout`](Self::callback_timeout). For the rest see [`on_started_leading`](Self::on_started_leading).
    pub fn on_stopped_leading<F, Fut>(mut self, call: F) -> Self
    where
        F: FnMut(Term, TermEnd) -> Fut + Send + 'static,
        Fut: Future<Output = ()> + Send + 'static,
    {
        self.callbacks.on_stopped(call);
        self
    }

    /// Calls this whenever another term than before is known to lead: another candidate's, or this one's.
    ///
    /// May be called several times; they are called one after the other, each for at most
    /// [`callback_timeout`](Self::callback_timeout). For the rest see [`on_started_leading`](Self::on_started_leading).
    pub fn on_new_leader<F, Fut>(mut self, call: F) -> Self
    where
        F: FnMut(Leader) -> Fut + Send + 'static,
        Fut: Future<Output = ()> + Send + 'static,
    {
        self.callbacks.on_new_leader(call);
        self
    }

    /// The runtime to run callbacks on, which needs its timer enabled. Defaults to the one in which [`build`](Self::build) is
    /// called.
    pub fn callback_runtime(mut self, runtime: Handle) -> Self {
        self.callbacks.run_on(runtime);
        self
    }

    /// How long a callback may take that is not for the length of a term; then it is dropped. Defaults to 3 s.
    pub fn callback_timeout(mut self, timeout: Duration) -> Self {
        self.callbacks.limit(timeout);
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
        let callbacks = self.callbacks.settled().ok_or(ConfigError::NoCallbackRuntime)?;
        let is_fixed = matches!(self.naming, Naming::Fixed(_));
        let identity = self.naming.draw()?;
        let telemetry = Telemetry::new(election.clone(), identity.clone(), is_fixed);
        Ok(Elector::from_parts(super::Parts {
            election,
            identity,
            telemetry,
            store: self.store,
            timing,
            payload,
            eligible: self.eligible,
            ready: self.ready,
            releases: self.releases,
            callbacks,
            overrun: self.overrun,
            clock: self.clock,
        }))
    }
}
