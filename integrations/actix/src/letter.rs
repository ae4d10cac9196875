//! A message on its way to an actor.

use std::sync::{
    Arc,
    atomic::{AtomicU8, Ordering::Relaxed},
};

use actix::{Actor, AsyncContext, Handler, Message, dev::MessageResponse};
use futures::future::LocalBoxFuture;
use tenure::InFlight;
use tokio::sync::oneshot::{self, error::TryRecvError};

/// A message to `A` whose type is known to itself alone. Dropping it unopened tells its sender that nobody has seen it.
pub(crate) trait Letter<A: Actor>: Send {
    /// Hands the message to the actor. What is left is the wait for an answer that does not come at once.
    fn open(self: Box<Self>, actor: &mut A, context: &mut A::Context) -> Option<Unanswered>;
}

/// Passes on an answer when it comes. Counts the message as in flight until then, also if nobody waits for the answer.
pub(crate) type Unanswered = LocalBoxFuture<'static, ()>;

pub(crate) struct Post<M: Message> {
    pub(crate) message: M,
    /// If somebody waits for the answer.
    pub(crate) reply: Option<Reply<M::Result>>,
    pub(crate) in_flight: InFlight,
}

pub(crate) struct Reply<R> {
    pub(crate) seal: Seal,
    pub(crate) answer: oneshot::Sender<R>,
}

impl<A, M> Letter<A> for Post<M>
where
    A: Actor + Handler<M>,
    A::Context: AsyncContext<A>,
    M: Message + Send,
    M::Result: Send,
{
    fn open(self: Box<Self>, actor: &mut A, context: &mut A::Context) -> Option<Unanswered> {
        let Self { message, reply, in_flight } = *self;
        if reply.as_ref().is_some_and(|reply| !reply.seal.open()) {
            return None;
        }
        // Always, since nothing but its end shows when an asynchronous handler is done.
        let (sender, mut answer) = oneshot::channel();
        actor.handle(message, context).handle(context, Some(sender));
        let pass_on = |result, reply: Option<Reply<M::Result>>| {
            if let Some(reply) = reply {
                // Nobody may wait for it any more.
                let _ = reply.answer.send(result);
            }
        };
        match answer.try_recv() {
            Ok(result) => {
                pass_on(result, reply);
                None
            }
            Err(TryRecvError::Closed) => None,
            Err(TryRecvError::Empty) => Some(Box::pin(async move {
                if let Ok(result) = answer.await {
                    pass_on(result, reply);
                }
                drop(in_flight);
            })),
        }
    }
}

/// Broken once: by the actor that opens the letter, or by the sender who takes it back. So each knows for certain whether
/// a handler has seen the message.
#[derive(Clone, Debug, Default)]
pub(crate) struct Seal(Arc<AtomicU8>);

impl Seal {
    const WHOLE: u8 = 0;
    const OPENED: u8 = 1;
    const WITHDRAWN: u8 = 2;

    /// False if the message was taken back.
    fn open(&self) -> bool {
        self.break_as(Self::OPENED)
    }

    /// False if a handler has seen the message.
    pub(crate) fn withdraw(&self) -> bool {
        self.break_as(Self::WITHDRAWN)
    }

    fn break_as(&self, how: u8) -> bool {
        // Relaxed: who comes first is all that it says; message and answer travel through channels.
        match self.0.compare_exchange(Self::WHOLE, how, Relaxed, Relaxed) {
            Ok(_) => true,
            Err(before) => before == how,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_letter_that_was_taken_back_is_not_opened() {
        let seal = Seal::default();
        assert!(seal.withdraw() && seal.withdraw());
        assert!(!seal.open());
    }

    #[test]
    fn a_letter_that_was_opened_cannot_be_taken_back() {
        let seal = Seal::default();
        assert!(seal.open());
        assert!(!seal.withdraw());
    }
}
