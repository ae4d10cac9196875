//! One term of leadership: until when it lasts, and who works under it.

mod alarm;
mod cell;
mod guard;
#[cfg(all(test, tenure_loom))]
pub(crate) mod interleavings;
mod leader_only;
mod overrun;
#[cfg(test)]
mod races;
#[cfg(test)]
pub(crate) mod tests;
mod wake;
pub(crate) mod watchdog;

use std::{
    fmt,
    future::{Future, IntoFuture},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use tokio::task::JoinHandle;
use tracing::Span;

use self::cell::Cell;
pub(crate) use self::cell::Moment;
pub use self::{
    guard::{InFlight, TermGuard},
    leader_only::LeaderOnly,
    overrun::{Overran, Overrun},
    wake::{Cancelled, EndWake, Ended},
};
use crate::{
    clock::Clock,
    instant::Instant,
    lease::{ElectionName, Fence, Identity, TermEnd},
    sync::{CancellationToken, Notify},
    telemetry::Telemetry,
};

/// One unbroken period for which this candidate leads, with one [`Fence`] from start to end.
///
/// It lasts until its deadline, which every confirmed renewal moves on, or until its elector ends it. A voluntary end
/// comes in two steps: when it is *cancelled* the term admits no new work, when it has *ended* none of its work runs any
/// more. An end that nobody wanted is both at once. Each question is answered by comparing the clock with the deadline,
/// so that the answer is right also when the elector, its runtime or the whole process was held up (rule S4).
///
/// Clones are the same term, and cost one atomic count; two terms are equal if they are clones.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
/// use tenure::{Elector, MemoryStore};
///
/// let elector = Elector::builder("invoice-reconciler", MemoryStore::new()).build()?;
/// let leadership = elector.leadership();
/// let candidacy = elector.spawn();
///
/// let term = leadership.leading().await?;
/// let sum = term.leader_only(async { 2 + 2 }).await?;
/// assert_eq!(sum, 4);
///
/// candidacy.shutdown().await?;
/// assert!(!term.is_live());
/// assert!(term.leader_only(async { 2 + 2 }).await.is_err());
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Term(Arc<Inner>);

struct Inner {
    telemetry: Telemetry,
    fence: Fence,
    span: Span,
    cell: Cell,
}

/// What a term is made of.
#[derive(Debug)]
pub(crate) struct TermParts {
    pub(crate) telemetry: Telemetry,
    pub(crate) fence: Fence,
    pub(crate) deadline: Instant,
    /// Whether it is ready from its start on.
    pub(crate) ready: bool,
    pub(crate) clock: Clock,
    /// The elector's: wakes it when the term becomes ready, and when work that it waits for is done.
    pub(crate) changed: Arc<Notify>,
}

impl Term {
    /// The number of this term, constant from its start to its end.
    #[must_use]
    pub fn fence(&self) -> Fence {
        self.0.fence
    }

    /// The election that it was won in.
    #[must_use]
    pub fn election(&self) -> &ElectionName {
        self.0.telemetry.election()
    }

    /// The candidate that leads.
    #[must_use]
    pub fn identity(&self) -> &Identity {
        self.0.telemetry.identity()
    }

    /// A span of `tracing` for this term, with the fields `election`, `identity` and `fence`: for work that should be seen in
    /// it, by `work.instrument(term.span().clone())`. It closes when the last clone of the term is dropped.
    #[must_use]
    pub fn span(&self) -> &Span {
        &self.0.span
    }

    pub(crate) fn telemetry(&self) -> &Telemetry {
        &self.0.telemetry
    }

    /// Whether it admits work: it is neither cancelled nor over. Says nothing about whether it [is
    /// ready](Self::is_ready). Costs one reading of the clock.
    #[must_use]
    #[inline]
    pub fn is_live(&self) -> bool {
        self.cell().reached(Moment::Cancelled).is_none()
    }

    /// Whether work that was admitted may go on: it is not over, though it may be cancelled.
    #[must_use]
    #[inline]
    pub fn may_finish(&self) -> bool {
        self.cell().reached(Moment::Ended).is_none()
    }

    /// Whether this candidate said that it is ready to lead, which by default is so from the start.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.cell().is_ready()
    }

    /// Says that this candidate is ready: its caches are warm, its logs are read. From here on
    /// [`Leadership::is_leader`](crate::Leadership::is_leader) answers yes, and adapters admit work. Only of use with
    /// the builder's `ready_when_told()`; may be repeated.
    pub fn ready(&self) {
        self.cell().set_ready();
    }

    /// How long it lasts if no further renewal is confirmed; zero if it is over.
    #[must_use]
    pub fn remaining(&self) -> Duration {
        self.cell().remaining()
    }

    /// Why it is over, if it is. Never changes once it is known.
    #[must_use]
    pub fn end(&self) -> Option<TermEnd> {
        self.cell().reached(Moment::Ended)
    }

    /// Waits until it is cancelled: a voluntary end has begun, or it is over. For `select!`; the future owns its term,
    /// and dropping it has no effect.
    pub fn cancelled(&self) -> Cancelled {
        Cancelled::new(self.clone())
    }

    /// Waits until it is over, and says why. The future owns its term, and dropping it has no effect.
    pub fn ended(&self) -> Ended {
        Ended::new(self.clone())
    }

    /// A token that fires when the term is cancelled, for code that takes one. It is a child: cancelling it does nothing
    /// to the term.
    #[must_use]
    pub fn cancellation_token(&self) -> CancellationToken {
        self.cell().token()
    }

    /// Runs `work` while the term admits work: it is dropped when the term is cancelled, whatever the reason.
    ///
    /// Each poll compares the clock with the deadline first, so `work` is never polled for a term that is over (rule
    /// S4), not even by a late runtime. It is dropped in the very poll that finds the term cancelled. A single poll that
    /// begins before the deadline may go on past it: keep polls short, and hand the [fence](Self::fence) to what you
    /// write to.
    ///
    /// Needs no runtime, and neither `Send` nor `'static` of the work. Dropping the future drops the work.
    ///
    /// # Errors
    /// [`TermEnded`], and the work's outcome is unknown if it had begun.
    ///
    /// # Panics
    /// If `work` panics, and when it is polled after it was done.
    ///
    /// ```
    /// # async fn reconcile() {}
    /// # async fn example(term: tenure::Term) {
    /// if let Err(ended) = term.leader_only(reconcile()).await {
    ///     eprintln!("stopped reconciling: {ended}");
    /// }
    /// # }
    /// ```
    pub fn leader_only<F: IntoFuture>(&self, work: F) -> LeaderOnly<F::IntoFuture> {
        LeaderOnly::new(self.clone(), Moment::Cancelled, work.into_future())
    }

    /// Runs `work` until the term is over: unlike with [`leader_only`](Self::leader_only), a voluntary end lets it
    /// finish, for as long as the `drain_timeout`. Waiting in it for the end of that very term waits for itself.
    ///
    /// # Errors
    /// [`TermEnded`], and the work's outcome is unknown if it had begun.
    ///
    /// # Panics
    /// If `work` panics, and when it is polled after it was done.
    pub fn until_ended<F: IntoFuture>(&self, work: F) -> LeaderOnly<F::IntoFuture> {
        LeaderOnly::new(self.clone(), Moment::Ended, work.into_future())
    }

    /// Proof that work goes on, for work that tenure can't stop; `None` if the term is over. Work that was admitted may
    /// take one while a voluntary end waits for it.
    #[must_use]
    pub fn guard(&self) -> Option<TermGuard> {
        TermGuard::take(self).ok()
    }

    /// Spawns `work` on the current tokio runtime as [`leader_only`](Self::leader_only): it is dropped when the term is
    /// cancelled. For work that a voluntary end lets finish, `tokio::spawn(term.until_ended(work))`.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    #[track_caller]
    pub fn spawn<F>(&self, work: F) -> JoinHandle<Result<F::Output, TermEnded>>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        tokio::spawn(self.leader_only(work))
    }

    /// Runs blocking code on the current tokio runtime's blocking threads, under a guard that is taken when the code
    /// starts, not while it is queued. Nothing stops it: between its steps it should ask
    /// `guard.term().may_finish()`.
    ///
    /// The task answers [`TermEnded`], and the code was not run, if the term was over by then.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    #[track_caller]
    pub fn spawn_blocking<F, T>(&self, work: F) -> JoinHandle<Result<T, TermEnded>>
    where
        F: FnOnce(&TermGuard) -> T + Send + 'static,
        T: Send + 'static,
    {
        let term = self.clone();
        tokio::task::spawn_blocking(move || TermGuard::take(&term).map(|guard| work(&guard)))
    }

    /// For adapters: counts a piece of work as in flight, unless the term admits none. The work is then polled through
    /// [`InFlight::poll_with`].
    #[must_use]
    pub fn admit(&self) -> Option<InFlight> {
        InFlight::enter(self).ok()
    }

    /// For adapters: polls something that lives as long as the term and is not a piece of work of its own, such as an
    /// actor between two messages. The rule is that of [`InFlight::poll_with`], but nothing waits for it.
    ///
    /// # Errors
    /// [`TermEnded`] when the term is over; what was polled has to be dropped then, in this same poll.
    pub fn poll_with<T>(
        &self,
        wake: Pin<&mut EndWake>,
        cx: &mut Context<'_>,
        poll: impl FnOnce(&mut Context<'_>) -> Poll<T>,
    ) -> Poll<Result<T, TermEnded>> {
        wake::poll_work(self.cell(), Moment::Ended, wake, cx, poll)
    }
}

/// What the elector does with it. A term's end is, in this order: [`finish`](Self::finish), publish, and
/// [`announce`](Self::announce).
impl Term {
    pub(crate) fn start(parts: TermParts) -> Self {
        let TermParts { telemetry, fence, deadline, ready, clock, changed } = parts;
        let cell = Cell::new(deadline, ready, clock, changed);
        Self(Arc::new(Inner { span: telemetry.span(fence), telemetry, fence, cell }))
    }

    /// Replaces the deadline, by an earlier one too. False if the term is over.
    pub(crate) fn extend(&self, deadline: Instant) -> bool {
        self.cell().extend(deadline)
    }

    /// Begins a voluntary end: no work is admitted from here on. A later reason replaces an earlier one.
    pub(crate) fn cancel(&self, reason: TermEnd) {
        self.cell().cancel(reason);
    }

    /// Ends it, unless it is over already. Returns why it ended.
    pub(crate) fn finish(&self, reason: TermEnd) -> TermEnd {
        self.cell().finish(reason)
    }

    /// Wakes those who wait for what has happened to it. May be repeated.
    pub(crate) fn announce(&self) {
        self.cell().announce();
    }

    /// The clock's origin if it is known to be over.
    pub(crate) fn deadline(&self) -> Instant {
        self.cell().deadline()
    }

    pub(crate) fn last_deadline(&self) -> Instant {
        self.cell().last_deadline()
    }

    pub(crate) fn guards(&self) -> usize {
        self.cell().guards()
    }

    pub(crate) fn in_flight(&self) -> usize {
        self.cell().in_flight()
    }

    fn cell(&self) -> &Cell {
        &self.0.cell
    }
}

impl PartialEq for Term {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Term {}

impl fmt::Debug for Term {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Term")
            .field("election", self.0.telemetry.election())
            .field("identity", self.0.telemetry.identity())
            .field("fence", &self.0.fence)
            .field("remaining", &self.remaining())
            .field("end", &self.end())
            .finish_non_exhaustive()
    }
}

/// Work was cut, or refused, because its term is cancelled or over. The outcome of work that had begun is unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[error("the term is over: {0}")]
pub struct TermEnded(TermEnd);

impl TermEnded {
    /// Why. Of work that was cut at *cancelled* this is the end that was intended: a resignation may still end as
    /// [`TermEnd::Expired`] or [`TermEnd::Lost`].
    #[must_use]
    pub fn reason(&self) -> TermEnd {
        self.0
    }
}
