//! One value of the actor, from its making to its drop, with all that it spawns.

use std::{
    future::{Future, pending, poll_fn},
    mem,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::{Pin, pin},
    task::{Context, Poll, Waker},
};

use actix::{Actor, ActorContext, AsyncContext, dev::ContextFut, fut::wrap_future};
use tokio::task::LocalSet;

use crate::SupervisedContext;

/// How an actor came to its end by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Gone {
    Stopped,
    Panicked,
}

/// An actor and the tasks of its own that it polls: whatever the actor spawns, also the handlers that actix spawns on
/// the arbiter, lands in the innermost `LocalSet`, and so is polled with it and gone with it.
///
/// Its drop lets an actor that was started and lives say goodbye (`stopping`, `stopped`), and nothing else.
pub(crate) struct Instance<A, S>
where
    A: Actor,
    A::Context: SupervisedContext<A>,
{
    life: Life<A, S>,
    tasks: LocalSet,
}

enum Life<A, S>
where
    A: Actor,
    A::Context: SupervisedContext<A>,
{
    New(S),
    Alive(ContextFut<A, A::Context>),
    Gone,
}

impl<A, S> Instance<A, S>
where
    A: Actor,
    A::Context: SupervisedContext<A>,
    S: FnOnce() -> ContextFut<A, A::Context>,
{
    /// Made at the first poll: `start` is the user's code, and may spawn as well.
    pub(crate) fn new(start: S) -> Self {
        Self { life: Life::New(start), tasks: LocalSet::new() }
    }

    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Gone> {
        let Self { life, tasks } = self;
        let turn = || pin!(tasks.run_until(poll_fn(|cx| life.poll(cx)))).poll(cx);
        let gone = match catch_unwind(AssertUnwindSafe(turn)) {
            Ok(Poll::Pending) => return Poll::Pending,
            Ok(Poll::Ready(())) => Gone::Stopped,
            Err(_) => Gone::Panicked,
        };
        // It has said goodbye, or nobody knows what state it is in.
        self.discard(false);
        Poll::Ready(gone)
    }
}

impl<A, S> Life<A, S>
where
    A: Actor,
    A::Context: SupervisedContext<A>,
    S: FnOnce() -> ContextFut<A, A::Context>,
{
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        *self = match mem::replace(self, Self::Gone) {
            Self::New(start) => Self::Alive(start()),
            life => life,
        };
        match self {
            Self::Alive(actor) => Pin::new(actor).poll(cx),
            Self::New(_) | Self::Gone => Poll::Ready(()),
        }
    }
}

impl<A, S> Instance<A, S>
where
    A: Actor,
    A::Context: SupervisedContext<A>,
{
    /// Drops the actor. None of what panics meanwhile gets out: the supervisor lives on.
    fn discard(&mut self, goodbye: bool) {
        let life = mem::replace(&mut self.life, Life::Gone);
        // What is spawned now belongs to the actor as well, and goes with the other tasks.
        let _entered = self.tasks.enter();
        let _ = catch_unwind(AssertUnwindSafe(|| match life {
            Life::Alive(actor) => end(actor, goodbye),
            Life::New(start) => drop(start),
            Life::Gone => {}
        }));
    }
}

impl<A, S> Drop for Instance<A, S>
where
    A: Actor,
    A::Context: SupervisedContext<A>,
{
    fn drop(&mut self) {
        self.discard(true);
    }
}

fn end<A>(mut actor: ContextFut<A, A::Context>, goodbye: bool)
where
    A: Actor,
    A::Context: SupervisedContext<A>,
{
    if goodbye {
        let _ = catch_unwind(AssertUnwindSafe(|| {
            // An actor that answers `stopping` with `Continue` would go on within the same poll, and handle whatever is
            // queued. It waits for this instead.
            actor.ctx().wait(wrap_future(pending()));
            actor.ctx().stop();
            let _ = Pin::new(&mut actor).poll(&mut Context::from_waker(Waker::noop()));
        }));
    }
    // Otherwise its drop would poll it once more.
    actor.ctx().terminate();
}
