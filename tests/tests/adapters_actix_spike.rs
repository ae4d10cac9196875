//! `Leadership` and `Term` serve a supervisor of actix actors: one actor per term, in a `LocalSet` of its own, polled
//! under the term's rule and gone with it, together with whatever it spawned.

use std::{
    future::{pending, poll_fn},
    pin::{Pin, pin},
    time::Duration,
};

use actix::{
    Actor, ActorContext, Addr, AsyncContext, Context, Handler, MailboxError, Message,
    ResponseFuture, dev::ContextFut,
};
use tenure::{Elector, EndWake, Fence, Leadership, MemoryStore, Term};
use tokio::{
    sync::{oneshot, watch},
    task::LocalSet,
};

/// Runs an actor of `make` in each term, and publishes its address meanwhile. Returns when the elector has stopped.
async fn supervise<A: Actor<Context = Context<A>>>(
    leadership: Leadership,
    make: impl Fn(Term) -> A,
    address: watch::Sender<Option<Addr<A>>>,
) {
    let mut terms = leadership.terms();
    while let Some(term) = terms.next().await {
        let context = Context::new();
        let current = context.address();
        let mut actor = context.into_future(make(term.clone()));
        address.send_replace(Some(current));
        run_until_ended(&term, &mut actor).await;
        address.send_replace(None);
        // Otherwise its drop would poll it once more, for a term that is over.
        actor.ctx().terminate();
    }
}

/// Whatever the actor spawns lands in the innermost `LocalSet`: polled under the same rule, dropped with it.
async fn run_until_ended<A: Actor<Context = Context<A>>>(
    term: &Term,
    actor: &mut ContextFut<A, Context<A>>,
) {
    let set = LocalSet::new();
    let mut work = pin!(set.run_until(Pin::new(actor)));
    let mut wake = pin!(EndWake::default());
    // Not counted as in flight: an actor between two messages is nothing that a hand-over should wait for.
    let _ = poll_fn(|cx| term.poll_with(wake.as_mut(), cx, |cx| work.as_mut().poll(cx))).await;
}

struct Reporter(Term);

impl Actor for Reporter {
    type Context = Context<Self>;
}

#[derive(Message)]
#[rtype(result = "Fence")]
struct WhichTerm;

impl Handler<WhichTerm> for Reporter {
    type Result = actix::MessageResult<WhichTerm>;

    fn handle(&mut self, _: WhichTerm, _: &mut Context<Self>) -> Self::Result {
        actix::MessageResult(self.0.fence())
    }
}

/// Work that never comes to an end, and shows when it is dropped.
#[derive(Message)]
#[rtype(result = "()")]
struct Hang {
    _shows_when_dropped: oneshot::Sender<()>,
}

impl Handler<Hang> for Reporter {
    type Result = ResponseFuture<()>;

    fn handle(&mut self, hang: Hang, _: &mut Context<Self>) -> Self::Result {
        Box::pin(async move {
            let _held = hang;
            pending().await
        })
    }
}

#[tokio::test]
async fn each_term_has_an_actor_of_its_own_that_ends_with_it() {
    let elector = Elector::builder("actix", MemoryStore::new())
        .lease_duration(Duration::from_secs(3))
        .build()
        .unwrap();
    let leadership = elector.leadership();
    let candidacy = elector.spawn();
    let (address, mut published) = watch::channel(None);
    let supervisor = supervise(leadership.clone(), Reporter, address);

    let user = async {
        let first = published.wait_for(Option::is_some).await.unwrap().clone().unwrap();
        let first_fence = first.send(WhichTerm).await.unwrap();
        let (held, dropped) = oneshot::channel();
        let hanging = first.send(Hang { _shows_when_dropped: held });
        // Is handled after it, so that the one before has been handled by then.
        let hanging = tokio::task::spawn(hanging);
        assert_eq!(first.send(WhichTerm).await.unwrap(), first_fence);

        leadership.resign().await;
        assert!(dropped.await.is_err(), "the response future outlives its actor");
        assert_eq!(hanging.await.unwrap(), Err(MailboxError::Closed));
        published.wait_for(Option::is_none).await.unwrap();
        assert_eq!(first.send(WhichTerm).await, Err(MailboxError::Closed));

        let second = published.wait_for(Option::is_some).await.unwrap().clone().unwrap();
        assert!(second.send(WhichTerm).await.unwrap() > first_fence);
        candidacy.shutdown().await.unwrap();
    };
    tokio::join!(supervisor, user);
}
