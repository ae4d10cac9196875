//! Who still works under a term: guards, and work in flight.

use std::{
    fmt,
    pin::Pin,
    task::{Context, Poll},
};

use super::{EndWake, Term, TermEnded, cell::Moment};
use crate::telemetry::metrics::RequestOutcome;

/// Proof that work under a term goes on, held by what tenure can't stop: blocking code, a thread of one's own.
///
/// It does not prolong the term. While it is held, this candidate starts no newer term and does not give the lease back:
/// after an end that can't be waited for (the deadline) the lease runs out in the store, and a candidate elsewhere may
/// lead while the guarded work still runs. So long work looks at [`Term::may_finish`] between its steps, and hands
/// [`Term::fence`] to whatever it writes to.
///
/// Dropping it gives it back; at a voluntary end the lease is released when the last one is gone.
///
/// ```no_run
/// # fn rows() -> Vec<u8> { Vec::new() }
/// # fn example(leadership: &tenure::Leadership) {
/// if let Some(guard) = leadership.term().and_then(|term| term.guard()) {
///     std::thread::spawn(move || {
///         for row in rows() {
///             if !guard.term().may_finish() {
///                 break;
///             }
///             println!("{row} under fence {}", guard.term().fence());
///         }
///     });
/// }
/// # }
/// ```
#[must_use = "the work is guarded only while this is held"]
pub struct TermGuard(Term);

impl TermGuard {
    /// A guard, unless the term is over.
    pub(super) fn take(term: &Term) -> Result<Self, TermEnded> {
        term.cell().take_guard(Moment::Ended).map_err(TermEnded)?;
        Ok(Self(term.clone()))
    }

    /// The term that it was taken under.
    #[must_use]
    pub fn term(&self) -> &Term {
        &self.0
    }
}

impl Clone for TermGuard {
    /// One more guard of the same work, also when the term is over by now.
    fn clone(&self) -> Self {
        self.0.cell().clone_guard();
        Self(self.0.clone())
    }
}

impl Drop for TermGuard {
    fn drop(&mut self) {
        self.0.cell().drop_guard();
    }
}

impl fmt::Debug for TermGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("TermGuard").field(&self.0).finish()
    }
}

/// A piece of work that was admitted under a term and is polled by an adapter, for example a request.
///
/// Made by [`Term::admit`]. A voluntary end of the term (resigning, shutting down) waits for it, up to the
/// `drain_timeout`; after the end it is inert: it is never polled again, and it keeps nobody from leading. Dropping it
/// says that the work is done.
#[must_use = "the work is counted only while this is held"]
pub struct InFlight(Term);

impl InFlight {
    pub(super) fn enter(term: &Term) -> Result<Self, TermEnded> {
        term.cell().enter();
        let in_flight = Self(term.clone());
        match term.cell().reached(Moment::Cancelled) {
            None => Ok(in_flight),
            Some(reason) => Err(TermEnded(reason)),
        }
    }

    /// Counted and guarded at once, for one reading of the clock.
    pub(crate) fn begin(term: &Term) -> Result<(Self, TermGuard), TermEnded> {
        term.cell().enter();
        let in_flight = Self(term.clone());
        term.cell().take_guard(Moment::Cancelled).map_err(TermEnded)?;
        Ok((in_flight, TermGuard(term.clone())))
    }

    /// The term that it was admitted under.
    #[must_use]
    pub fn term(&self) -> &Term {
        &self.0
    }

    /// Polls the work once, the whole rule: not at or past the deadline, under a guard, and registered for the end of
    /// the term if it pends.
    ///
    /// `poll` is called at most once. `wake` belongs to this piece of work alone.
    ///
    /// # Errors
    /// [`TermEnded`] when the term is over. The work has to be dropped then, in this same poll; its outcome is unknown
    /// if it had been polled before.
    ///
    /// # Examples
    /// ```
    /// use std::{future::Future, pin::Pin, task::{Context, Poll}};
    /// use pin_project_lite::pin_project;
    /// use tenure::{EndWake, InFlight, TermEnded};
    ///
    /// pin_project! {
    ///     struct Admitted<F> {
    ///         in_flight: InFlight,
    ///         #[pin] work: F,
    ///         #[pin] wake: EndWake,
    ///     }
    /// }
    ///
    /// impl<F: Future> Future for Admitted<F> {
    ///     type Output = Result<F::Output, TermEnded>;
    ///
    ///     fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
    ///         let this = self.project();
    ///         let work = this.work;
    ///         this.in_flight.poll_with(this.wake, cx, |cx| work.poll(cx))
    ///     }
    /// }
    /// ```
    pub fn poll_with<T>(
        &self,
        wake: Pin<&mut EndWake>,
        cx: &mut Context<'_>,
        poll: impl FnOnce(&mut Context<'_>) -> Poll<T>,
    ) -> Poll<Result<T, TermEnded>> {
        let polled = self.0.poll_with(wake, cx, poll);
        if let Poll::Ready(Err(_)) = &polled {
            self.0.telemetry().request(RequestOutcome::Cut);
        }
        polled
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.cell().leave();
    }
}

impl fmt::Debug for InFlight {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("InFlight").field(&self.0).finish()
    }
}
