//! Electors: built, started, resigned, shut down.

mod actor;
mod builder;
mod call;
mod callbacks;
mod candidacy;
mod identity;
mod thread;

#[cfg(test)]
mod called;
#[cfg(all(test, feature = "metrics"))]
mod counted;
#[cfg(test)]
mod dropped;
#[cfg(test)]
mod endings;
#[cfg(test)]
mod faulty;
#[cfg(test)]
mod hostile;
#[cfg(test)]
mod races;
#[cfg(test)]
mod refusing;
#[cfg(test)]
mod tests;

use std::{any::Any, fmt, future::Future, io, mem, panic::AssertUnwindSafe, pin::pin, sync::Arc};

use futures::{
    FutureExt,
    future::{Either, select},
};
use tokio::{runtime::Handle, sync::watch};

use self::{
    actor::Actor,
    callbacks::{Callbacks, Calling},
    candidacy::Progress,
};
pub use self::{
    builder::{ConfigError, ElectorBuilder},
    candidacy::{Candidacy, StopError},
};
use crate::{
    clock::Clock,
    leadership::{Leadership, Publisher, Requests, Telling},
    lease::{ElectionName, Identity, Payload},
    protocol::Timing,
    store::{DynStore, Store},
    telemetry::Telemetry,
    term::{Overrun, watchdog},
};

/// One candidate in one election: built, but not taking part yet.
///
/// [`spawn`](Self::spawn) or [`run`](Self::run) makes it take part; dropping it instead shows everybody who holds its
/// [`Leadership`] that it has stopped.
///
/// ```
/// use std::time::Duration;
/// use tenure::{Elector, MemoryStore};
///
/// # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
/// let elector = Elector::builder("invoice-reconciler", MemoryStore::new())
///     .payload("https://leader.eu-west.internal:8443")
///     .lease_duration(Duration::from_secs(15))
///     .build()?;
/// let leadership = elector.leadership();
/// let candidacy = elector.spawn();
///
/// let term = leadership.leading().await?;
/// assert!(leadership.is_leader());
/// println!("leading under fence {}", term.fence());
///
/// candidacy.shutdown().await?;
/// assert!(!term.is_live());
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
#[must_use = "an elector takes part once it is spawned or run"]
pub struct Elector {
    parts: Parts,
    publisher: Publisher,
    requests: Arc<Requests>,
    leadership: Leadership,
}

/// What the builder has checked.
#[derive(Debug)]
struct Parts {
    election: ElectionName,
    identity: Identity,
    telemetry: Telemetry,
    store: DynStore,
    timing: Timing,
    payload: Payload,
    eligible: bool,
    ready: bool,
    releases: bool,
    callbacks: Callbacks,
    overrun: Overrun,
    clock: Clock,
}

impl Elector {
    /// Collects settings for a candidate in the election of this name, which `store` keeps.
    ///
    /// A name that is not 1 to 255 bytes of UTF-8 without NUL is reported by [`ElectorBuilder::build`].
    pub fn builder<N>(election: N, store: impl Store) -> ElectorBuilder
    where
        N: TryInto<ElectionName>,
        N::Error: Into<ConfigError>,
    {
        ElectorBuilder::new(election.try_into().map_err(Into::into), store)
    }

    fn from_parts(parts: Parts) -> Self {
        let requests = Arc::new(Requests::default());
        let telling = if parts.clock.is_virtual() { Telling::Here } else { Telling::Aside };
        let (publisher, leadership) = Publisher::new(
            parts.telemetry.clone(),
            parts.clock.clone(),
            parts.payload.clone(),
            telling,
            &requests,
        );
        Self { parts, publisher, requests, leadership }
    }

    /// What everybody else holds: cheap to clone, and never in the way of the election.
    #[must_use]
    pub fn leadership(&self) -> Leadership {
        self.leadership.clone()
    }

    /// The name of the election.
    #[must_use]
    pub fn election(&self) -> &ElectionName {
        &self.parts.election
    }

    /// Who this candidate is.
    #[must_use]
    pub fn identity(&self) -> &Identity {
        &self.parts.identity
    }

    /// The timings, as set or derived, and with them [`Timing::worst_case`].
    #[must_use]
    pub fn timing(&self) -> &Timing {
        &self.parts.timing
    }

    /// Takes part on tenure's own thread, and needs no runtime of the caller's.
    ///
    /// All electors of a process share that thread; an application that blocks its own runtime delays neither renewals
    /// nor the end of a term. With a virtual clock (feature `test-util`) it takes part on the runtime in which this is
    /// called.
    ///
    /// Note that `let _ = elector.spawn();` drops the candidacy on the spot, and with it ends it.
    ///
    /// Where the operating system refuses a thread, the candidacy has stopped already, and says why.
    pub fn spawn(self) -> Candidacy {
        let (outcome, stopped) = watch::channel(Progress::Taking);
        let candidacy = Candidacy {
            leadership: self.leadership(),
            requests: Arc::clone(&self.requests),
            clock: self.parts.clock.clone(),
            operation_timeout: self.parts.timing.operation_timeout(),
            stopped,
            is_detached: false,
        };
        let runtime = if self.parts.clock.is_virtual() {
            Handle::try_current().map_err(io::Error::other)
        } else {
            thread::handle()
        };
        match runtime {
            Ok(runtime) => {
                runtime.spawn(async move {
                    let ended = self.take_part().await;
                    outcome.send_replace(Progress::Stopped(ended.result.clone()));
                    outcome.send_replace(Progress::Finished(ended.finished().await));
                });
            }
            Err(source) => {
                drop(self);
                outcome.send_replace(Progress::Finished(Err(StopError::not_started(source))));
            }
        }
        candidacy
    }

    /// Takes part on the caller's runtime, until `shutdown` is ready: then it hands over, and returns.
    ///
    /// It returns for no other reason but a panic: a term that is lost is followed by the next attempt, and whatever goes
    /// wrong with the store shows in [`Status::last_error`](crate::Status::last_error).
    ///
    /// # Errors
    /// [`StopError::StillRunning`] if guards of the last term were still held when the time for a shutdown was over.
    ///
    /// # Cancel safety
    /// Dropping the future ends the term at once, without draining and without a release: the lease runs out.
    pub async fn run(self, shutdown: impl Future<Output = ()>) -> Result<(), StopError> {
        let requests = Arc::clone(&self.requests);
        let taking_part = pin!(self.take_part());
        let shutdown = pin!(shutdown);
        match select(taking_part, shutdown).await {
            Either::Left((ended, _)) => ended.finished().await,
            Either::Right(((), taking_part)) => {
                requests.request_shutdown();
                taking_part.await.finished().await
            }
        }
    }

    /// Takes part until it has stopped; callbacks may still be called then.
    async fn take_part(self) -> Ended {
        let mut parts = self.parts;
        let callbacks = mem::take(&mut parts.callbacks);
        let (clock, requests) = (parts.clock.clone(), Arc::clone(&self.requests));
        // Without a watchdog nobody would end a term while the store hangs.
        if let Err(error) = watchdog::ensure_started(&clock) {
            let result = Err(StopError::not_started(error));
            return Ended { result, calling: Calling::default(), clock, requests };
        }
        parts.telemetry.started(&parts.timing);
        let calling = callbacks.start(&self.leadership, id(&requests));
        let actor = Actor::new(parts, self.publisher, self.requests);
        let result = tokio::select! {
            biased;
            ended = AssertUnwindSafe(actor.run()).catch_unwind() => match ended {
                Ok(0) => Ok(()),
                Ok(guards) => Err(StopError::StillRunning { guards }),
                Err(panic) => Err(StopError::Panicked { message: panic_message(&*panic).into() }),
            },
            // Dropping the actor ends the term.
            () = requests.out_of_time(&clock) => Err(StopError::OutOfTime),
        };
        Ended { result, calling, clock, requests }
    }
}

impl fmt::Debug for Elector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Elector")
            .field("election", &self.parts.election)
            .field("identity", &self.parts.identity)
            .field("timing", &self.parts.timing)
            .finish_non_exhaustive()
    }
}

/// An elector that has stopped, of which callbacks may still be called.
struct Ended {
    result: Result<(), StopError>,
    calling: Calling,
    clock: Clock,
    requests: Arc<Requests>,
}

impl Ended {
    /// What came of it in the end. Who would not stop keeps callbacks from coming to their end, so they are not waited for.
    async fn finished(self) -> Result<(), StopError> {
        let Self { result, calling, clock, requests } = self;
        result?;
        tokio::select! {
            biased;
            finished = calling.finished() => match finished {
                true => Ok(()),
                false => Err(StopError::CallbackStuck),
            },
            () = requests.out_of_time(&clock) => Err(StopError::OutOfTime),
        }
    }
}

/// Tells the electors of a process apart, for as long as one of the clones lives.
fn id(requests: &Arc<Requests>) -> usize {
    Arc::as_ptr(requests).addr()
}

/// What a panic said.
fn panic_message(panic: &(dyn Any + Send)) -> &str {
    match (panic.downcast_ref::<&str>(), panic.downcast_ref::<String>()) {
        (Some(text), _) => text,
        (None, Some(text)) => text,
        (None, None) => "a panic without a message",
    }
}
