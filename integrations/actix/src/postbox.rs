//! Where messages go before an actor gets them: admitted under a term, refused outside of one.

use std::sync::{Mutex, MutexGuard, PoisonError};

use actix::{Actor, AsyncContext, Handler, Message};
use tenure::{InFlight, Leadership, Term};
use tokio::sync::mpsc::{self, error::TrySendError};

use crate::{
    LeaderSendError,
    letter::{Letter, Post, Reply},
};

pub(crate) type Letters<A> = mpsc::Receiver<Box<dyn Letter<A>>>;

/// One mailbox per term. It is made by who comes first, sender or supervisor: so a message is never refused because the
/// supervisor has not got to run yet, and never accepted because it has not noticed the end.
pub(crate) struct Postbox<A: Actor> {
    leadership: Leadership,
    capacity: usize,
    state: Mutex<State<A>>,
}

struct State<A: Actor> {
    mailbox: Option<Mailbox<A>>,
    /// Whether the supervisor is gone.
    closed: bool,
}

struct Mailbox<A: Actor> {
    term: Term,
    sender: mpsc::Sender<Box<dyn Letter<A>>>,
    /// Until the supervisor takes it.
    letters: Option<Letters<A>>,
}

impl<A: Actor> Postbox<A> {
    pub(crate) fn new(leadership: Leadership, capacity: usize) -> Self {
        Self { leadership, capacity, state: Mutex::new(State { mailbox: None, closed: false }) }
    }

    pub(crate) fn leadership(&self) -> &Leadership {
        &self.leadership
    }

    /// Counts a message in, if this candidate leads.
    pub(crate) fn admit(&self) -> Result<InFlight, LeaderSendError> {
        // The work does not begin here, so that there is nothing to be guarded.
        let (in_flight, _guard) = self.leadership.admit().ok_or_else(|| self.refusal())?;
        Ok(in_flight)
    }

    /// Puts a message that was admitted into the mailbox of its term.
    pub(crate) fn post<M>(
        &self,
        message: M,
        reply: Option<Reply<M::Result>>,
        in_flight: InFlight,
    ) -> Result<(), LeaderSendError>
    where
        A: Handler<M>,
        A::Context: AsyncContext<A>,
        M: Message + Send + 'static,
        M::Result: Send,
    {
        let sender = self.mailbox(in_flight.term(), |mailbox| mailbox.sender.clone());
        let sender = sender.ok_or_else(|| self.refusal())?;
        match sender.try_send(Box::new(Post { message, reply, in_flight })) {
            Ok(()) => Ok(()),
            Err(TrySendError::Full(_)) => Err(LeaderSendError::MailboxFull),
            Err(TrySendError::Closed(_)) => Err(self.refusal()),
        }
    }

    /// The supervisor's end of a term's mailbox; given once.
    pub(crate) fn collect(&self, term: &Term) -> Option<Letters<A>> {
        self.mailbox(term, |mailbox| mailbox.letters.take()).flatten()
    }

    /// Refuses everything from here on, and what nobody has collected.
    pub(crate) fn close(&self) {
        let mut state = self.lock();
        state.closed = true;
        let left = state.mailbox.take();
        drop(state);
        drop(left);
    }

    /// Why a message goes to nobody.
    pub(crate) fn refusal(&self) -> LeaderSendError {
        let status = self.leadership.status();
        if status.is_leader() && self.lock().closed {
            return LeaderSendError::SupervisorGone;
        }
        LeaderSendError::NotLeader { leader: status.other_leader().cloned() }
    }

    /// `None` if a newer term has begun, or the supervisor is gone.
    fn mailbox<T>(&self, term: &Term, ask: impl FnOnce(&mut Mailbox<A>) -> T) -> Option<T> {
        let mut state = self.lock();
        let known = state.mailbox.as_ref().map(|mailbox| mailbox.term.fence());
        if state.closed || known > Some(term.fence()) {
            return None;
        }
        let outdated = match known {
            Some(fence) if fence == term.fence() => None,
            _ => state.mailbox.replace(Mailbox::new(term.clone(), self.capacity)),
        };
        let answer = state.mailbox.as_mut().map(ask);
        drop(state);
        // Not under the lock: messages are dropped with it, and theirs is the users' code.
        drop(outdated);
        answer
    }

    fn lock(&self) -> MutexGuard<'_, State<A>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<A: Actor> Mailbox<A> {
    fn new(term: Term, capacity: usize) -> Self {
        let (sender, letters) = mpsc::channel(capacity);
        Self { term, sender, letters: Some(letters) }
    }
}
