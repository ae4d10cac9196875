//! What becomes of streams while a hand-over waits for requests in flight.

use std::{
    future::{Future, Pending, pending},
    pin::Pin,
    task::{Context, Poll},
};

use tenure::{LeaderOnly, Term, TermEnded};

/// What a voluntary end of the term (resigning, shutting down) does to responses that are being sent.
///
/// Handlers, and bodies whose length is known, are always left to finish, up to the elector's `drain_timeout`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Drain {
    /// Streams are left to finish as well: the default.
    #[default]
    Finish,
    /// Streams are cut when the term is *cancelled*, for services whose streams never end by themselves.
    ///
    /// A stream is a body whose length is not known beforehand. One that has not begun by then may go on for as long as it
    /// has something to send and need not wait: it may be the short answer of a request that the hand-over waited for.
    Cut,
}

/// For adapters: for how long a body goes on once its term is cancelled. Each body has one.
#[derive(Debug)]
pub struct Patience(State);

#[derive(Debug)]
enum State {
    UntilEnded,
    /// To be found out when the body is polled first.
    Undecided,
    /// It began when the term had been cancelled already.
    UntilItWaits,
    UntilCancelled(Pin<Box<Watch>>),
}

/// Notices that the term is cancelled.
type Watch = LeaderOnly<Pending<()>>;

impl Patience {
    /// Of a body that has not been polled yet.
    #[must_use]
    pub fn new(drain: Drain) -> Self {
        Self(match drain {
            Drain::Finish => State::UntilEnded,
            Drain::Cut => State::Undecided,
        })
    }

    /// Decides, when a body is about to be polled, unless that was decided before: `length` is how many bytes it will
    /// have, if that is known.
    pub fn begin(&mut self, term: &Term, length: impl FnOnce() -> Option<u64>) {
        if matches!(self.0, State::Undecided) {
            self.0 = match length() {
                Some(_) => State::UntilEnded,
                None if term.is_live() => watching(term),
                None => State::UntilItWaits,
            };
        }
    }

    /// Polls a body, unless it has to be cut. `poll` is to ask [`InFlight::poll_with`](tenure::InFlight::poll_with).
    ///
    /// # Errors
    /// [`TermEnded`] if the body has to be cut, in this same poll.
    pub fn poll_with<T>(
        &mut self,
        term: &Term,
        cx: &mut Context<'_>,
        poll: impl FnOnce(&mut Context<'_>) -> Poll<Result<T, TermEnded>>,
    ) -> Poll<Result<T, TermEnded>> {
        if let Err(ended) = self.look(cx) {
            return Poll::Ready(Err(ended));
        }
        let polled = poll(cx);
        if polled.is_pending() && matches!(self.0, State::UntilItWaits) {
            self.0 = watching(term);
            if let Err(ended) = self.look(cx) {
                return Poll::Ready(Err(ended));
            }
        }
        polled
    }

    fn look(&mut self, cx: &mut Context<'_>) -> Result<(), TermEnded> {
        match &mut self.0 {
            State::UntilCancelled(watch) => match watch.as_mut().poll(cx) {
                Poll::Ready(done) => done,
                Poll::Pending => Ok(()),
            },
            _ => Ok(()),
        }
    }
}

fn watching(term: &Term) -> State {
    State::UntilCancelled(Box::pin(term.leader_only(pending())))
}
