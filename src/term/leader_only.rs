//! Async work that is polled under a term only.

use std::{
    fmt,
    future::Future,
    pin::Pin,
    task::{Context, Poll, ready},
};

use pin_project_lite::pin_project;

use super::{
    EndWake, Term, TermEnded,
    cell::{Cell, Moment},
    wake::poll_work,
};

pin_project! {
    /// Work that is polled while its term admits it, and dropped when it does not. Made by [`Term::leader_only`], which
    /// cuts it when the term is *cancelled*, and by [`Term::until_ended`], which cuts it when the term has *ended*.
    ///
    /// Every poll compares the clock with the deadline first. It is in flight from its first poll until it is done, cut
    /// or dropped. A panic of the work passes through.
    #[must_use = "futures do nothing unless they are awaited"]
    pub struct LeaderOnly<F> {
        // Before the seat: what the work drops is dropped while it still counts as in flight.
        #[pin]
        work: Option<F>,
        #[pin]
        wake: EndWake,
        until: Moment,
        seat: Option<Seat>,
    }
}

impl<F> LeaderOnly<F> {
    pub(super) fn new(term: Term, until: Moment, work: F) -> Self {
        Self { seat: Some(Seat::new(term)), ..Self::unseated(until, work) }
    }

    /// Work that does not know its term yet; see [`seat`](Self::seat).
    pub(crate) fn unseated(until: Moment, work: F) -> Self {
        Self { work: Some(work), wake: EndWake::default(), until, seat: None }
    }

    pub(crate) fn seat(self: Pin<&mut Self>, term: Term) {
        *self.project().seat = Some(Seat::new(term));
    }

    /// Drops the work, done or not, and what counts it.
    pub(crate) fn clear(self: Pin<&mut Self>) {
        let mut this = self.project();
        this.work.set(None);
        this.wake.set(EndWake::default());
        *this.seat = None;
    }
}

impl<F: Future> Future for LeaderOnly<F> {
    type Output = Result<F::Output, TermEnded>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.as_mut().project();
        let seat = this.seat.as_mut().expect("polled after it was done");
        let work = this.work.as_pin_mut().expect("work leaves together with its seat");
        // Counted before the clock is read: an elector that cancels the term now either counts this work, or is seen.
        let cell = seat.take();
        let done = ready!(poll_work(cell, *this.until, this.wake, cx, |cx| work.poll(cx)));
        self.clear();
        Poll::Ready(done)
    }
}

impl<F> fmt::Debug for LeaderOnly<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LeaderOnly")
            .field("term", &self.seat.as_ref().map(|seat| &seat.term))
            .field("until", &self.until)
            .finish_non_exhaustive()
    }
}

/// A place under a term, which counts as in flight once it is taken.
struct Seat {
    term: Term,
    taken: bool,
}

impl Seat {
    fn new(term: Term) -> Self {
        Self { term, taken: false }
    }

    fn take(&mut self) -> &Cell {
        if !self.taken {
            self.term.cell().enter();
            self.taken = true;
        }
        self.term.cell()
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        if self.taken {
            self.term.cell().leave();
        }
    }
}
