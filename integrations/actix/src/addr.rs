//! Addresses of a leader-only actor.

use std::{fmt, future::Future, sync::Arc};

use actix::{Actor, AsyncContext, Handler, Message};
use tenure::{InFlight, Leadership, Stopped, Term};
use tokio::sync::{mpsc, oneshot};

use crate::{
    Answer, LeaderSendError,
    answer::{Claim, Office},
    letter::{Reply, Seal},
    postbox::Postbox,
};

/// The address of an actor that exists only while this candidate leads. Made by
/// [`LeaderSupervisor::start`](crate::LeaderSupervisor::start).
///
/// It may be used on any thread and any runtime. Whether a message is accepted is judged by the clock when it is sent,
/// also if the supervisor has not noticed yet what has happened to the term. Messages that are accepted are handled in
/// order, and a hand-over waits for them, up to the elector's `drain_timeout`. It does not wait for an actor that has failed and is
/// about to be started anew: what was accepted meanwhile is refused as [`NotLeader`](crate::LeaderSendError::NotLeader), and no
/// handler has seen it.
///
/// Clones are the same address. When the last one is dropped, messages that were accepted are handled, the actor stops,
/// and the supervisor ends.
pub struct LeaderAddr<A: Actor> {
    postbox: Arc<Postbox<A>>,
    /// Tells the supervisor whether anybody can still write.
    _open: mpsc::Sender<Never>,
}

/// Nothing is ever sent: what counts is whether somebody could.
pub(crate) enum Never {}

impl<A: Actor> LeaderAddr<A> {
    pub(crate) fn new(postbox: Arc<Postbox<A>>, open: mpsc::Sender<Never>) -> Self {
        Self { postbox, _open: open }
    }

    /// Posts a message, and gives its answer. The message is posted by the call, not by the first poll, so that messages
    /// are handled in the order of the calls.
    ///
    /// # Errors
    /// The answer is a [`LeaderSendError`] if no handler has seen the message, or if one has and gave no answer.
    pub fn send<M>(&self, message: M) -> Answer<M::Result>
    where
        A: Handler<M>,
        A::Context: AsyncContext<A>,
        M: Message + Send + 'static,
        M::Result: Send,
    {
        let (answer, claimed) = oneshot::channel();
        let seal = Seal::default();
        let reply = Reply { seal: seal.clone(), answer };
        let posted = self.postbox.admit().and_then(|in_flight: InFlight| {
            let term = in_flight.term().clone();
            self.postbox.post(message, Some(reply), in_flight).map(|()| term)
        });
        match posted {
            Ok(term) => {
                let office: Arc<dyn Office> = self.postbox.clone();
                Answer::posted(claimed, Claim { seal, term, office })
            }
            Err(why) => Answer::refused(why),
        }
    }

    /// Posts a message for which no answer is wanted.
    ///
    /// # Errors
    /// [`LeaderSendError`] if it was not accepted. One that was accepted is still lost if the term ends before the actor
    /// has handled it.
    pub fn try_send<M>(&self, message: M) -> Result<(), LeaderSendError>
    where
        A: Handler<M>,
        A::Context: AsyncContext<A>,
        M: Message + Send + 'static,
        M::Result: Send,
    {
        let in_flight = self.postbox.admit()?;
        self.postbox.post(message, None, in_flight)
    }

    /// Posts a message, and drops it if it is not accepted: [`try_send`](Self::try_send) for those who do not want to know.
    /// Unlike that of an [`Addr`](actix::Addr), it does not go beyond what the mailbox holds.
    pub fn do_send<M>(&self, message: M)
    where
        A: Handler<M>,
        A::Context: AsyncContext<A>,
        M: Message + Send + 'static,
        M::Result: Send,
    {
        let _ = self.try_send(message);
    }

    /// An address for messages of one type, which does not show whose it is. It counts as an address like any other.
    #[must_use]
    pub fn recipient<M>(self) -> LeaderRecipient<M>
    where
        A: Handler<M>,
        A::Context: AsyncContext<A>,
        M: Message + Send + 'static,
        M::Result: Send,
    {
        LeaderRecipient(Arc::new(self))
    }

    /// Waits until this candidate leads, so that messages are accepted, and gives the term. The future owns what it needs;
    /// dropping it has no effect.
    ///
    /// # Errors
    /// [`Stopped`] when the elector has stopped: it never will.
    pub fn wait_leading(
        &self,
    ) -> impl Future<Output = Result<Term, Stopped>> + Send + Sync + 'static + use<A> {
        self.leadership().leading()
    }

    /// Whose terms the actor lives in.
    #[must_use]
    pub fn leadership(&self) -> &Leadership {
        self.postbox.leadership()
    }
}

impl<A: Actor> Office for Postbox<A> {
    fn refusal(&self) -> LeaderSendError {
        Self::refusal(self)
    }
}

impl<A: Actor> Clone for LeaderAddr<A> {
    fn clone(&self) -> Self {
        Self { postbox: self.postbox.clone(), _open: self._open.clone() }
    }
}

impl<A: Actor> fmt::Debug for LeaderAddr<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LeaderAddr").field("leadership", self.leadership()).finish_non_exhaustive()
    }
}

/// An address for messages of one type. Made by [`LeaderAddr::recipient`].
pub struct LeaderRecipient<M: Message>(Arc<dyn Recipient<M>>);

/// A [`LeaderAddr`] of whatever actor.
trait Recipient<M: Message>: Send + Sync {
    fn send(&self, message: M) -> Answer<M::Result>;
    fn try_send(&self, message: M) -> Result<(), LeaderSendError>;
    fn leadership(&self) -> &Leadership;
}

impl<A, M> Recipient<M> for LeaderAddr<A>
where
    A: Actor + Handler<M>,
    A::Context: AsyncContext<A>,
    M: Message + Send + 'static,
    M::Result: Send,
{
    fn send(&self, message: M) -> Answer<M::Result> {
        Self::send(self, message)
    }

    fn try_send(&self, message: M) -> Result<(), LeaderSendError> {
        Self::try_send(self, message)
    }

    fn leadership(&self) -> &Leadership {
        Self::leadership(self)
    }
}

impl<M: Message> LeaderRecipient<M> {
    /// See [`LeaderAddr::send`].
    ///
    /// # Errors
    /// The answer is a [`LeaderSendError`] if no handler has seen the message, or if one has and gave no answer.
    pub fn send(&self, message: M) -> Answer<M::Result> {
        self.0.send(message)
    }

    /// See [`LeaderAddr::try_send`].
    ///
    /// # Errors
    /// [`LeaderSendError`] if it was not accepted.
    pub fn try_send(&self, message: M) -> Result<(), LeaderSendError> {
        self.0.try_send(message)
    }

    /// See [`LeaderAddr::do_send`].
    pub fn do_send(&self, message: M) {
        let _ = self.try_send(message);
    }

    /// Whose terms the actor lives in.
    #[must_use]
    pub fn leadership(&self) -> &Leadership {
        self.0.leadership()
    }
}

impl<M: Message> Clone for LeaderRecipient<M> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<M: Message> fmt::Debug for LeaderRecipient<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LeaderRecipient")
            .field("leadership", self.leadership())
            .finish_non_exhaustive()
    }
}
