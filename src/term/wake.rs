//! Being woken when a term is cancelled or over.

use std::{
    fmt,
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, Waker},
};

use pin_project_lite::pin_project;

use super::{
    Term, TermEnded,
    cell::{Cell, Moment},
};
use crate::{lease::TermEnd, sync::OwnedNotified};

pin_project! {
    /// Wakes the task that polls a piece of work when the term under it is over. One belongs to each piece of work, is
    /// pinned beside it, and is handed to every [`InFlight::poll_with`](super::InFlight::poll_with). It allocates
    /// nothing, and registers nothing before the work pends for the first time.
    #[derive(Default)]
    pub struct EndWake {
        #[pin]
        notified: Option<OwnedNotified>,
        registered: Option<Registered>,
    }
}

/// With which announcement, and for which task, so that polling again costs no lock. The address stays taken as long as
/// `notified` lives.
struct Registered {
    announcement: usize,
    waker: Waker,
}

impl EndWake {
    /// Pending, and registered, until the term has come to `moment`.
    pub(super) fn poll_reached(
        self: Pin<&mut Self>,
        cell: &Cell,
        moment: Moment,
        cx: &mut Context<'_>,
    ) -> Poll<TermEnd> {
        self.register(cell, moment, cx);
        // Only now: what was announced before the registration is to be seen in the word.
        cell.marked(moment).map_or(Poll::Pending, Poll::Ready)
    }

    fn register(self: Pin<&mut Self>, cell: &Cell, moment: Moment, cx: &mut Context<'_>) {
        let mut this = self.project();
        let notify = cell.announcement(moment);
        let announcement = Arc::as_ptr(notify).addr();
        let same = this.registered.as_ref().filter(|known| known.announcement == announcement);
        if same.is_some_and(|known| known.waker.will_wake(cx.waker())) {
            return;
        }
        if same.is_none() {
            this.notified.set(Some(notify.clone().notified_owned()));
        }
        if let Some(notified) = this.notified.as_pin_mut() {
            // Ready only after an announcement, which the word shows.
            let _ = notified.poll(cx);
        }
        *this.registered = Some(Registered { announcement, waker: cx.waker().clone() });
    }
}

impl fmt::Debug for EndWake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EndWake").field("registered", &self.registered.is_some()).finish()
    }
}

/// The rule of one poll of work under a term, in one place: a guard goes up, the clock is compared with the deadline,
/// the work is polled, the guard comes down; and only if the work pends it is registered for the end.
pub(super) fn poll_work<T>(
    cell: &Cell,
    until: Moment,
    wake: Pin<&mut EndWake>,
    cx: &mut Context<'_>,
    poll: impl FnOnce(&mut Context<'_>) -> Poll<T>,
) -> Poll<Result<T, TermEnded>> {
    if let Err(reason) = cell.take_guard(until) {
        return Poll::Ready(Err(TermEnded(reason)));
    }
    let guard = PollGuard(cell);
    let polled = poll(cx);
    drop(guard);
    match polled {
        Poll::Ready(value) => Poll::Ready(Ok(value)),
        Poll::Pending => wake.poll_reached(cell, until, cx).map(|reason| Err(TermEnded(reason))),
    }
}

/// Gives the guard of a poll back, also when the work panics.
struct PollGuard<'a>(&'a Cell);

impl Drop for PollGuard<'_> {
    fn drop(&mut self) {
        self.0.drop_guard();
    }
}

pin_project! {
    /// Waits until a term is cancelled. Made by [`Term::cancelled`].
    #[derive(Debug)]
    #[must_use = "futures do nothing unless they are awaited"]
    pub struct Cancelled {
        term: Term,
        #[pin]
        wake: EndWake,
    }
}

pin_project! {
    /// Waits until a term is over. Made by [`Term::ended`].
    #[derive(Debug)]
    #[must_use = "futures do nothing unless they are awaited"]
    pub struct Ended {
        term: Term,
        #[pin]
        wake: EndWake,
    }
}

impl Cancelled {
    pub(super) fn new(term: Term) -> Self {
        Self { term, wake: EndWake::default() }
    }
}

impl Ended {
    pub(super) fn new(term: Term) -> Self {
        Self { term, wake: EndWake::default() }
    }
}

impl Future for Cancelled {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = self.project();
        poll_moment(this.term, Moment::Cancelled, this.wake, cx).map(|_| ())
    }
}

impl Future for Ended {
    type Output = TermEnd;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<TermEnd> {
        let this = self.project();
        poll_moment(this.term, Moment::Ended, this.wake, cx)
    }
}

fn poll_moment(
    term: &Term,
    moment: Moment,
    wake: Pin<&mut EndWake>,
    cx: &mut Context<'_>,
) -> Poll<TermEnd> {
    match term.cell().reached(moment) {
        Some(reason) => Poll::Ready(reason),
        None => wake.poll_reached(term.cell(), moment, cx),
    }
}
