//! The wait for an answer.

use std::{
    fmt,
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use pin_project_lite::pin_project;
use tenure::{Ended, Term};
use tokio::sync::oneshot;

use crate::{LeaderSendError, letter::Seal};

pin_project! {
    /// The answer to a message. Made by [`LeaderAddr::send`](crate::LeaderAddr::send), which has posted the message already.
    ///
    /// It is ready when the actor has answered, and at the latest when the term has ended, also if the actor's own thread
    /// is held up. It is tied to no runtime. Dropping it takes the message back if no handler has seen it yet; otherwise
    /// the handler goes on.
    ///
    /// # Panics
    /// When it is polled after it was ready.
    #[must_use = "a message whose answer is dropped is taken back"]
    pub struct Answer<R> {
        #[pin]
        state: State<R>,
    }
}

pin_project! {
    #[project = StateProj]
    enum State<R> {
        Posted {
            answer: oneshot::Receiver<R>,
            claim: Claim,
            #[pin]
            ended: Ended,
        },
        Refused {
            why: LeaderSendError,
        },
        Done,
    }
}

/// What the sender of a message keeps.
pub(crate) struct Claim {
    pub(crate) seal: Seal,
    pub(crate) term: Term,
    pub(crate) office: Arc<dyn Office>,
}

/// Knows why nobody has seen a message.
pub(crate) trait Office: Send + Sync {
    fn refusal(&self) -> LeaderSendError;
}

impl<R> Answer<R> {
    pub(crate) fn posted(answer: oneshot::Receiver<R>, claim: Claim) -> Self {
        let ended = claim.term.ended();
        Self { state: State::Posted { answer, claim, ended } }
    }

    pub(crate) fn refused(why: LeaderSendError) -> Self {
        Self { state: State::Refused { why } }
    }
}

impl<R> Future for Answer<R> {
    type Output = Result<R, LeaderSendError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut state = self.project().state;
        let output = match state.as_mut().project() {
            StateProj::Posted { answer, claim, ended } => match Pin::new(&mut *answer).poll(cx) {
                Poll::Ready(Ok(result)) => Ok(result),
                Poll::Ready(Err(_dropped)) => Err(claim.why_dropped()),
                Poll::Pending if ended.poll(cx).is_pending() => return Poll::Pending,
                // An answer that was given in time counts, also if it is read only now.
                Poll::Pending => answer.try_recv().map_err(|_| claim.why_dropped()),
            },
            StateProj::Refused { why } => Err(why.clone()),
            StateProj::Done => panic!("polled after it was ready"),
        };
        state.set(State::Done);
        Poll::Ready(output)
    }
}

impl Claim {
    /// Why there is no answer and none will come.
    fn why_dropped(&self) -> LeaderSendError {
        if self.seal.withdraw() {
            return self.office.refusal();
        }
        self.term.end().map_or(LeaderSendError::Unanswered, LeaderSendError::TermEnded)
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        self.seal.withdraw();
    }
}

impl<R> fmt::Debug for Answer<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = match &self.state {
            State::Posted { .. } => "Posted",
            State::Refused { .. } => "Refused",
            State::Done => "Done",
        };
        f.debug_tuple("Answer").field(&format_args!("{state}")).finish()
    }
}
