//! Work that is run if this candidate leads.

use std::{
    fmt,
    future::Future,
    pin::Pin,
    task::{Context, Poll, ready},
};

use pin_project_lite::pin_project;

use super::{Leader, Leadership};
use crate::{
    lease::TermEnd,
    term::{LeaderOnly, Moment},
};

/// Why leader-only work gave no result.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LeaderOnlyError {
    /// This candidate does not lead. The work was never polled.
    #[error("this candidate does not lead{}", Elsewhere(.leader.as_ref()))]
    NotLeader {
        /// Whom to ask instead: who else led when this candidate last looked, if anybody did.
        leader: Option<Leader>,
    },
    /// The term was cancelled or ended under the work, which was dropped. Its outcome is unknown.
    #[error("the term is over: {0}")]
    TermEnded(TermEnd),
}

struct Elsewhere<'a>(Option<&'a Leader>);

impl fmt::Display for Elsewhere<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(leader) => {
                write!(f, "; {} does, with fence {}", leader.identity(), leader.fence())
            }
            None => Ok(()),
        }
    }
}

pin_project! {
    /// Work that is polled only while this candidate leads. Made by [`Leadership::leader_only`].
    #[must_use = "futures do nothing unless they are awaited"]
    pub struct IfLeader<F> {
        // Taken at the first poll, which decides under which term the work runs.
        undecided: Option<Leadership>,
        #[pin]
        work: LeaderOnly<F>,
    }
}

impl<F> IfLeader<F> {
    pub(super) fn new(leadership: Leadership, work: F) -> Self {
        let work = LeaderOnly::unseated(Moment::Cancelled, work);
        Self { undecided: Some(leadership), work }
    }
}

impl<F: Future> Future for IfLeader<F> {
    type Output = Result<F::Output, LeaderOnlyError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        if let Some(leadership) = this.undecided.take() {
            match leadership.term_or_leader() {
                Ok(term) => this.work.as_mut().seat(term),
                Err(not_leader) => {
                    this.work.clear();
                    return Poll::Ready(Err(not_leader));
                }
            }
        }
        let done = ready!(this.work.poll(cx));
        Poll::Ready(done.map_err(|ended| LeaderOnlyError::TermEnded(ended.reason())))
    }
}

impl<F> fmt::Debug for IfLeader<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IfLeader").field("work", &self.work).finish_non_exhaustive()
    }
}
