//! An elector that takes part, from the outside: resigned, shut down, waited for.

use std::{future::Future, io, sync::Arc, time::Duration};

use tokio::sync::watch;

use super::{callbacks, id};
use crate::{
    clock::Clock,
    leadership::{Leadership, Requests},
};

/// How far an elector that was spawned has come.
#[derive(Clone, Debug)]
pub(super) enum Progress {
    /// It takes part.
    Taking,
    /// It has stopped; callbacks may still be called.
    Stopped(Result<(), StopError>),
    /// Nothing of it runs any more.
    Finished(Result<(), StopError>),
}

impl Progress {
    /// What came of it, if that is as far as one waits.
    fn outcome(&self, with_callbacks: bool) -> Option<&Result<(), StopError>> {
        match self {
            Self::Stopped(result) if !with_callbacks => Some(result),
            Self::Finished(result) => Some(result),
            Self::Taking | Self::Stopped(_) => None,
        }
    }
}

/// A candidate that takes part. Dropping it shuts the elector down in the background: it hands over as
/// [`shutdown`](Self::shutdown) does, without anybody waiting for it.
#[derive(Debug)]
#[must_use = "dropping a candidacy ends it; keep it, or call `.detach()`"]
pub struct Candidacy {
    pub(super) leadership: Leadership,
    pub(super) requests: Arc<Requests>,
    pub(super) clock: Clock,
    pub(super) operation_timeout: Duration,
    pub(super) stopped: watch::Receiver<Progress>,
    pub(super) is_detached: bool,
}

impl Candidacy {
    /// What everybody else holds.
    #[must_use]
    pub fn leadership(&self) -> Leadership {
        self.leadership.clone()
    }

    /// Hands over, and then does not contend for a while. See [`Leadership::resign`].
    pub fn resign(&self) -> impl Future<Output = ()> + Send + 'static + use<> {
        self.leadership.resign()
    }

    /// Hands over and stops: cancels the term, lets work in flight finish, ends it, releases the lease. Bounded by
    /// [`Timing::shutdown_bound`](crate::Timing::shutdown_bound).
    ///
    /// The request is made when this is called. The future only waits, may be dropped, and this may be called again.
    /// Awaited inside work in flight it waits for that very work, until the drain times out.
    ///
    /// # Errors
    /// [`StopError::StillRunning`] if guards were still held at the end: then the lease was not released, and runs out.
    pub fn shutdown(&self) -> impl Future<Output = Result<(), StopError>> + Send + 'static + use<> {
        self.requests.request_shutdown();
        self.stopped()
    }

    /// [`shutdown`](Self::shutdown) for those who will be killed in a moment: it waits for work in flight only as long as
    /// there is time left to release the lease, an `operation_timeout`, and after `limit` it has stopped in any case. A lease
    /// that could not be released by then runs out.
    ///
    /// May be called after [`shutdown`](Self::shutdown), to be quicker.
    ///
    /// # Errors
    /// [`StopError::OutOfTime`] if the time was over before the lease was released; the others as
    /// [`shutdown`](Self::shutdown).
    pub fn shutdown_within(
        &self,
        limit: Duration,
    ) -> impl Future<Output = Result<(), StopError>> + Send + 'static + use<> {
        let drain = limit.saturating_sub(self.operation_timeout);
        self.requests.request_shutdown_by(self.clock.now() + limit, drain);
        self.stopped()
    }

    /// Waits until the elector has stopped, for whatever reason, and the last callback has returned. May be dropped, and called
    /// again.
    ///
    /// # Errors
    /// [`StopError`] unless everything ended in order.
    pub fn stopped(&self) -> impl Future<Output = Result<(), StopError>> + Send + 'static + use<> {
        let mut stopped = self.stopped.clone();
        // A callback that waited for itself would wait for ever.
        let with_callbacks = !callbacks::is_called_for(id(&self.requests));
        async move {
            let done =
                stopped.wait_for(|progress| progress.outcome(with_callbacks).is_some()).await;
            // Without an answer the runtime was torn down with the elector on it.
            let done = done.ok().and_then(|progress| progress.outcome(with_callbacks).cloned());
            done.unwrap_or(Err(StopError::Aborted))
        }
    }

    /// Lets the elector take part for as long as the process lives. Nothing hands over at the end of the process then: the
    /// lease runs out.
    pub fn detach(mut self) {
        self.is_detached = true;
    }
}

impl Drop for Candidacy {
    fn drop(&mut self) {
        if !self.is_detached && self.stopped.borrow().outcome(false).is_none() {
            self.leadership.telemetry().dropped();
            self.requests.request_shutdown();
        }
    }
}

/// Why an elector did not stop in order.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StopError {
    /// Guards of the last term were held beyond the time that a shutdown has. Its lease was not released, so that nobody
    /// else leads while that work goes on, and runs out.
    #[error(
        "{guards} guards of the last term are still held; its lease was left to run out instead of being released"
    )]
    StillRunning {
        /// How many.
        guards: usize,
    },
    /// The elector panicked, which is a bug of tenure. Its term ended at that moment.
    #[error("the elector panicked: {message}")]
    Panicked {
        /// What the panic said.
        message: Arc<str>,
    },
    /// The operating system refused a thread, or there was no runtime to run on. It never took part.
    #[error("the elector could not be started")]
    NotStarted {
        /// What was refused.
        #[source]
        source: Arc<io::Error>,
    },
    /// The time that [`Candidacy::shutdown_within`] gave was over. The term has ended; a lease that was not released by then
    /// runs out.
    #[error(
        "the time for the shutdown was over before everything was done; an unreleased lease runs out"
    )]
    OutOfTime,
    /// A callback has not returned in the time that it had. The election was left in order, and no further callback is
    /// called, but that one may still run.
    #[error("a callback does not return; look for one that blocks its thread")]
    CallbackStuck,
    /// The runtime on which the elector lived was torn down. Its term ended at that moment.
    #[error("the runtime of the elector was shut down before the elector was")]
    Aborted,
}

impl StopError {
    pub(super) fn not_started(source: io::Error) -> Self {
        Self::NotStarted { source: Arc::new(source) }
    }
}
