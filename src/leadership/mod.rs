//! What everybody but the elector holds: whether this candidate leads, and work that runs only if it does.

mod crier;
mod if_leader;
#[cfg(test)]
mod incidents;
#[cfg(all(test, tenure_loom))]
mod interleavings;
mod publisher;
mod requests;
mod status;
mod terms;
#[cfg(test)]
mod tests;
mod transition;
mod watch;

use std::{
    fmt,
    future::{Future, IntoFuture},
    sync::Arc,
};

pub(crate) use self::{crier::Telling, publisher::Publisher, requests::Requests};
pub use self::{
    if_leader::{IfLeader, LeaderOnlyError},
    status::{LastError, Leader, PastTerm, Status},
    terms::Terms,
    transition::{Transition, Transitions},
    watch::StatusWatch,
};
use crate::{
    lease::{ElectionName, Fence, Identity, InvalidValue, Payload},
    protocol::Phase,
    sync::watch::Receiver,
    telemetry::{Telemetry, metrics::RequestOutcome},
    term::{InFlight, Term, TermGuard},
};

/// One candidate's view of its election, for all who want to know whether it leads. Cheap to clone, and usable on any
/// thread and any runtime.
///
/// *Leading* means here that the term is live and [ready](Term::is_ready). No answer waits for anything (but for
/// whoever keeps a loan of [`StatusWatch::into_receiver`]), and each is judged by the clock when it is given: an elector that
/// hangs, or is gone, reads as not leading once its deadline has passed.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
/// use tenure::{Elector, LeaderOnlyError, MemoryStore};
///
/// let elector = Elector::builder("invoice-reconciler", MemoryStore::new()).build()?;
/// let leadership = elector.leadership();
/// assert!(!leadership.is_leader());
/// let refused = leadership.leader_only(async { "reconciled" }).await;
/// assert_eq!(refused, Err(LeaderOnlyError::NotLeader { leader: None }));
///
/// let candidacy = elector.spawn();
/// leadership.leading().await?;
/// assert_eq!(leadership.leader_only(async { "reconciled" }).await, Ok("reconciled"));
/// candidacy.shutdown().await?;
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Leadership {
    status: Receiver<Status>,
    telemetry: Arc<Telemetry>,
    requests: Arc<Requests>,
}

impl Leadership {
    /// Whether this candidate leads. Costs one reading of the clock.
    #[must_use]
    #[inline]
    pub fn is_leader(&self) -> bool {
        self.status.borrow().is_leader()
    }

    /// The term under which this candidate leads, if it does.
    #[must_use]
    pub fn term(&self) -> Option<Term> {
        self.status.borrow().term()
    }

    /// For adapters that begin work where they admit it, such as a service that is called: if this candidate leads,
    /// counts the work as in flight and guards its beginning. Costs one reading of the clock.
    ///
    /// Drop the guard when the work has begun; what remains of it is polled through
    /// [`InFlight::poll_with`](crate::InFlight::poll_with).
    #[must_use]
    pub fn admit(&self) -> Option<(InFlight, TermGuard)> {
        let admitted = {
            let status = self.status.borrow();
            let term = status.term.as_ref().filter(|term| term.is_ready());
            term.and_then(|term| InFlight::begin(term).ok())
        };
        // Not on loan: who counts is somebody else's code.
        self.telemetry().request(match &admitted {
            Some(_) => RequestOutcome::Admitted,
            None => RequestOutcome::Refused,
        });
        admitted
    }

    /// The fence of that term.
    #[must_use]
    pub fn fence(&self) -> Option<Fence> {
        self.status.borrow().fence()
    }

    /// All that this candidate knows about its election.
    #[must_use]
    pub fn status(&self) -> Status {
        self.status.borrow().clone()
    }

    /// To be woken when the status changes: terms that start, become ready, are cancelled or end, new leaders, and
    /// errors. Renewals wake nobody. What is current now counts as seen.
    ///
    /// The last status stays readable after the elector is gone, and is then *stopped*.
    #[must_use]
    pub fn watch(&self) -> StatusWatch {
        StatusWatch::new(self.status.clone())
    }

    /// The election.
    #[must_use]
    pub fn election(&self) -> &ElectionName {
        self.telemetry.election()
    }

    /// This candidate.
    #[must_use]
    pub fn identity(&self) -> &Identity {
        self.telemetry.identity()
    }

    /// Waits until this candidate leads, and gives its term. The future owns what it needs; dropping it has no effect.
    ///
    /// # Errors
    /// [`Stopped`] when the elector has stopped: it never will.
    pub fn leading(
        &self,
    ) -> impl Future<Output = Result<Term, Stopped>> + Send + Sync + 'static + use<> {
        let mut status = self.status.clone();
        async move { wait_for(&mut status, Status::term).await }
    }

    /// Runs `work` if this candidate leads when the future is first polled, and drops it when that term is cancelled:
    /// [`Term::leader_only`] without a term in hand. It does not wait to become the leader.
    ///
    /// # Errors
    /// [`LeaderOnlyError::NotLeader`], and `work` was never polled; [`LeaderOnlyError::TermEnded`], and its outcome is
    /// unknown.
    ///
    /// # Panics
    /// If `work` panics, and when it is polled after it was done.
    pub fn leader_only<F: IntoFuture>(&self, work: F) -> IfLeader<F::IntoFuture> {
        IfLeader::new(self.clone(), work.into_future())
    }

    /// Runs what `work` makes of the current term, which it needs for the fence; otherwise as
    /// [`leader_only`](Self::leader_only). `work` itself is called under the term, too.
    ///
    /// # Errors
    /// As [`leader_only`](Self::leader_only).
    ///
    /// ```
    /// # async fn save(fence: tenure::Fence) {}
    /// # async fn example(leadership: tenure::Leadership) -> Result<(), tenure::LeaderOnlyError> {
    /// leadership.leader_only_with(|term| async move { save(term.fence()).await }).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn leader_only_with<F, Fut>(&self, work: F) -> Result<Fut::Output, LeaderOnlyError>
    where
        F: FnOnce(Term) -> Fut,
        Fut: Future,
    {
        let term = self.term_or_leader()?;
        let done = term.leader_only(async { work(term.clone()).await }).await;
        done.map_err(|ended| LeaderOnlyError::TermEnded(ended.reason()))
    }

    /// The terms of this candidate, one after the other, for loops that keep state across terms:
    ///
    /// ```
    /// # async fn example(leadership: tenure::Leadership) {
    /// let mut runs = 0;
    /// let mut terms = leadership.terms();
    /// while let Some(term) = terms.next().await {
    ///     let _ = term.leader_only(async { runs += 1 }).await;
    /// }
    /// # }
    /// ```
    ///
    /// They come when this candidate is *elected*, whether or not it is ready yet: this is who calls
    /// [`Term::ready`].
    pub fn terms(&self) -> Terms {
        Terms::new(self.status.clone())
    }

    /// Runs what `work` makes of each term, one after the other, until the elector has stopped. It runs in the caller's
    /// task, and each run is dropped when its term is cancelled, as with [`Term::leader_only`].
    ///
    /// `work` is called once for every term that is still live when the caller gets to run; a term that passes while
    /// the caller's runtime is blocked is left out. If a run returns early, the next one is that of the next term.
    /// Dropping the future drops the current run.
    ///
    /// ```
    /// # async fn reconcile(fence: tenure::Fence) {}
    /// # async fn example(leadership: tenure::Leadership) {
    /// leadership.each_term(|term| async move { reconcile(term.fence()).await }).await;
    /// # }
    /// ```
    pub async fn each_term<F, Fut>(&self, mut work: F)
    where
        F: FnMut(Term) -> Fut,
        Fut: Future<Output = ()>,
    {
        let mut terms = self.terms();
        while let Some(term) = terms.next().await {
            // That the term is over is no failure; the next one comes.
            let _ = term.leader_only(async { work(term.clone()).await }).await;
        }
    }

    /// What happens in the election, in order: terms of this candidate with their ends, and new leaders.
    ///
    /// ```
    /// # async fn example(leadership: tenure::Leadership) {
    /// use tenure::Transition;
    ///
    /// let mut transitions = leadership.transitions();
    /// while let Some(transition) = transitions.next().await {
    ///     match transition {
    ///         Transition::Started(term) => println!("elected, fence {}", term.fence()),
    ///         Transition::Ended { term, reason } => println!("fence {} is over: {reason}", term.fence()),
    ///         Transition::NewLeader(leader) => println!("{} leads", leader.identity()),
    ///         _ => {}
    ///     }
    /// }
    /// # }
    /// ```
    pub fn transitions(&self) -> Transitions {
        Transitions::new(self.status.clone())
    }

    /// Asks this candidate to hand over: its term is cancelled, drained, ended, and its lease given back; then it pauses
    /// before it contends again. In following it is the pause alone.
    ///
    /// The request is made by the call. The future waits until it has been carried out, or the elector has stopped, and
    /// may be dropped. Awaited inside of work that the hand-over waits for, it waits for itself.
    pub fn resign(&self) -> impl Future<Output = ()> + Send + 'static + use<> {
        let ticket = self.requests.request_resign();
        let mut status = self.status.clone();
        let done = move |status: &Status| (status.known.resigns_done >= ticket).then_some(());
        async move {
            // An elector that has stopped leads no more, which is what was asked for.
            let _ = wait_for(&mut status, done).await;
        }
    }

    /// Replaces what this candidate publishes as leader. A leader writes it with its next renewal.
    ///
    /// # Errors
    /// [`InvalidValue`] if it is longer than 64 KiB.
    pub fn set_payload(&self, payload: impl Into<Payload>) -> Result<(), InvalidValue> {
        self.requests.set_payload(payload.into().checked()?);
        Ok(())
    }

    /// Says whether this candidate should lead: false while a health check fails, or for maintenance. A leader that
    /// becomes ineligible hands over as if it resigned, without the pause; becoming eligible does not shorten a pause.
    pub fn set_eligible(&self, eligible: bool) {
        self.requests.set_eligible(eligible);
    }

    pub(crate) fn telemetry(&self) -> &Telemetry {
        &self.telemetry
    }

    fn term_or_leader(&self) -> Result<Term, LeaderOnlyError> {
        let status = self.status.borrow();
        let not_leader = || LeaderOnlyError::NotLeader { leader: status.other_leader().cloned() };
        status.term().ok_or_else(not_leader)
    }
}

impl fmt::Debug for Leadership {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Leadership").field("status", &self.status()).finish_non_exhaustive()
    }
}

/// The elector has stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[error("the elector has stopped")]
#[non_exhaustive]
pub struct Stopped;

/// The first answer that `ask` gives to a status. Every status is asked, also the current one. It is asked on loan, which
/// keeps the elector from publishing for that long: of ten thousand copies each would take longer.
async fn wait_for<T>(
    status: &mut Receiver<Status>,
    mut ask: impl FnMut(&Status) -> Option<T>,
) -> Result<T, Stopped> {
    loop {
        {
            let current = status.borrow_and_update();
            if let Some(answer) = ask(&current) {
                return Ok(answer);
            }
            if current.phase() == Phase::Stopped {
                return Err(Stopped);
            }
        }
        status.changed().await.map_err(|_| Stopped)?;
    }
}
