//! The contexts in which supervised actors live.

use std::fmt;

use actix::{
    Actor, ActorContext, ActorFuture, ActorState, Addr, AsyncContext, Context, Handler, Message,
    SpawnHandle,
    dev::{AsyncContextParts, ContextFut, ContextParts, Envelope, Mailbox, ToEnvelope},
};
use tenure::Term;

/// A context that a [`LeaderSupervisor`](crate::LeaderSupervisor) can run an actor in: actix's own [`Context`],
/// [`LeaderContext`], or one of your own that is made for one term.
pub trait SupervisedContext<A: Actor<Context = Self>>: AsyncContextParts<A> + Unpin {
    /// A context without its actor, so that something can be spawned into it before the actor starts.
    fn of(term: &Term) -> Self;

    /// Lets `actor` live in it when the future is polled.
    fn run(self, actor: A) -> ContextFut<A, Self>;
}

impl<A: Actor<Context = Self>> SupervisedContext<A> for Context<A> {
    fn of(_: &Term) -> Self {
        Self::new()
    }

    fn run(self, actor: A) -> ContextFut<A, Self> {
        self.into_future(actor)
    }
}

/// A context that handles no message once the term has ended, not even one that the actor has sent to itself.
///
/// Between two messages that came through a [`LeaderAddr`](crate::LeaderAddr) the term is asked in any context. What an
/// actor posts to its own [`Addr`] goes past that: in actix's [`Context`] all such messages are handled in one go,
/// also those that the term's end comes between. An actor that works through a backlog that way declares this context
/// instead:
///
/// ```
/// use actix::Actor;
/// use tenure_actix::LeaderContext;
///
/// struct Importer;
///
/// impl Actor for Importer {
///     type Context = LeaderContext<Self>;
/// }
/// ```
pub struct LeaderContext<A: Actor<Context = Self>> {
    parts: ContextParts<A>,
    /// Until the actor runs.
    mailbox: Option<Mailbox<A>>,
    term: Term,
}

impl<A: Actor<Context = Self>> LeaderContext<A> {
    /// The term that the actor lives in.
    #[must_use]
    pub fn term(&self) -> &Term {
        &self.term
    }

    /// How many messages the actor's own [`Addr`] holds. What a [`LeaderAddr`](crate::LeaderAddr) holds is set with
    /// [`LeaderSupervisor::mailbox_capacity`](crate::LeaderSupervisor::mailbox_capacity).
    pub fn set_mailbox_capacity(&mut self, capacity: usize) {
        self.parts.set_mailbox_capacity(capacity);
    }

    /// The handle of the future that is being polled, as in [`Context::handle`].
    #[must_use]
    pub fn handle(&self) -> SpawnHandle {
        self.parts.curr_handle()
    }
}

impl<A: Actor<Context = Self>> SupervisedContext<A> for LeaderContext<A> {
    fn of(term: &Term) -> Self {
        let mailbox = Mailbox::default();
        let parts = ContextParts::new(mailbox.sender_producer());
        Self { parts, mailbox: Some(mailbox), term: term.clone() }
    }

    fn run(mut self, actor: A) -> ContextFut<A, Self> {
        let mailbox = self.mailbox.take().expect("an actor is run once");
        ContextFut::new(self, actor, mailbox)
    }
}

impl<A: Actor<Context = Self>> ActorContext for LeaderContext<A> {
    fn stop(&mut self) {
        self.parts.stop();
    }

    fn terminate(&mut self) {
        self.parts.terminate();
    }

    fn state(&self) -> ActorState {
        self.parts.state()
    }
}

impl<A: Actor<Context = Self>> AsyncContext<A> for LeaderContext<A> {
    fn address(&self) -> Addr<A> {
        self.parts.address()
    }

    fn spawn<F>(&mut self, future: F) -> SpawnHandle
    where
        F: ActorFuture<A, Output = ()> + 'static,
    {
        self.parts.spawn(future)
    }

    fn wait<F>(&mut self, future: F)
    where
        F: ActorFuture<A, Output = ()> + 'static,
    {
        self.parts.wait(future);
    }

    /// Asked between any two messages: this is where the mailbox stops at the end of the term.
    fn waiting(&self) -> bool {
        self.parts.waiting() || !self.term.may_finish()
    }

    fn cancel_future(&mut self, handle: SpawnHandle) -> bool {
        self.parts.cancel_future(handle)
    }
}

impl<A: Actor<Context = Self>> AsyncContextParts<A> for LeaderContext<A> {
    fn parts(&mut self) -> &mut ContextParts<A> {
        &mut self.parts
    }
}

impl<A, M> ToEnvelope<A, M> for LeaderContext<A>
where
    A: Actor<Context = Self> + Handler<M>,
    M: Message + Send + 'static,
    M::Result: Send,
{
    fn pack(message: M, answer: Option<tokio::sync::oneshot::Sender<M::Result>>) -> Envelope<A> {
        Envelope::new(message, answer)
    }
}

impl<A: Actor<Context = Self>> fmt::Debug for LeaderContext<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LeaderContext")
            .field("parts", &self.parts)
            .field("term", &self.term)
            .finish_non_exhaustive()
    }
}
