//! What happens in an election, as a sequence.

use std::{
    fmt,
    pin::Pin,
    task::{Context, Poll},
};

use futures::{Stream, StreamExt, stream, stream::BoxStream};

use super::{Leader, Phase, Status};
use crate::{lease::TermEnd, sync::watch, term::Term};

/// A change in an election, as one candidate sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Transition {
    /// This candidate was elected. It leads once the term [is ready](Term::is_ready).
    Started(Term),
    /// The term that was announced last is over.
    Ended {
        /// That term.
        term: Term,
        /// Why it is over.
        reason: TermEnd,
    },
    /// Another term than before is known to lead: another candidate's, or the same candidate's under a new fence. This
    /// candidate's own term is announced like any other, after it has started.
    NewLeader(Leader),
}

/// The [`Transition`]s of an election, in order. Made by [`Leadership::transitions`](super::Leadership::transitions);
/// ends when the elector has stopped.
///
/// There is no queue, so a slow reader holds nothing up, and may miss whole terms, but nothing about a term that it was
/// told of: each [`Transition::Started`] is followed by its [`Transition::Ended`] with the reason. Nothing is remembered
/// for a reader that never reads.
#[must_use = "streams do nothing unless they are read"]
pub struct Transitions(BoxStream<'static, Transition>);

impl Transitions {
    pub(super) fn new(status: watch::Receiver<Status>) -> Self {
        let reader = Reader { status, open: None, leader: None, closed: false };
        let read = |mut reader: Reader| async move { Some((reader.next().await?, reader)) };
        Self(stream::unfold(reader, read).fuse().boxed())
    }

    /// The next one, or `None` when the elector has stopped. Dropping the wait loses nothing.
    pub async fn next(&mut self) -> Option<Transition> {
        self.0.next().await
    }
}

impl Stream for Transitions {
    type Item = Transition;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Transition>> {
        self.0.poll_next_unpin(cx)
    }
}

impl fmt::Debug for Transitions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Transitions")
    }
}

struct Reader {
    status: watch::Receiver<Status>,
    /// The term that was announced and whose end was not: it remembers its own end, however late that is read.
    open: Option<Term>,
    leader: Option<Leader>,
    /// The elector is gone, and the status will not change any more.
    closed: bool,
}

impl Reader {
    async fn next(&mut self) -> Option<Transition> {
        loop {
            let status = self.status.borrow_and_update().clone();
            if let Some(transition) = self.difference(&status) {
                return Some(transition);
            }
            if self.closed || status.phase() == Phase::Stopped {
                return None;
            }
            tokio::select! {
                changed = self.status.changed() => self.closed = changed.is_err(),
                _ = over(self.open.as_ref()) => {}
            }
        }
    }

    /// The first thing that `status` says and the reader has not been told.
    fn difference(&mut self, status: &Status) -> Option<Transition> {
        if let Some((term, reason)) = self.open.as_ref().and_then(|term| Some((term, term.end()?)))
        {
            let term = term.clone();
            self.open = None;
            return Some(Transition::Ended { term, reason });
        }
        if self.open.is_none() {
            if let Some(term) = status.elected_term() {
                self.open = Some(term.clone());
                return Some(Transition::Started(term.clone()));
            }
        }
        let leader = status.leader()?;
        if self.leader.as_ref().is_some_and(|known| known.same_term(leader)) {
            return None;
        }
        self.leader = Some(leader.clone());
        Some(Transition::NewLeader(leader.clone()))
    }
}

async fn over(term: Option<&Term>) {
    match term {
        Some(term) => {
            term.ended().await;
        }
        None => std::future::pending().await,
    }
}
