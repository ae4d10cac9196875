//! Leader-only actors: what the actor, its callers and the election see of each other. In virtual time, but where two
//! threads have to meet.

#![allow(clippy::unwrap_used)] // helpers of tests are tests

mod drain;
mod messages;
mod restarts;
mod runtimes;
mod terms;

use std::{
    future::{Future, pending},
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use actix::{
    Actor, ActorContext, Context, Handler, Message, MessageResult, ResponseFuture, Running,
};
use tenure::{Clock, Elector, ElectorBuilder, Fence, ManualClock, MemoryStore, Term};
use tokio::{sync::oneshot, task::LocalSet};

const LEASE: Duration = Duration::from_secs(3);

/// Where actors can be started.
async fn on_stage<F: Future>(play: F) -> F::Output {
    LocalSet::new().run_until(play).await
}

/// On tokio's paused clock.
fn paused() -> ElectorBuilder {
    let clock = Clock::tokio();
    let store = MemoryStore::with_clock(clock.clone());
    Elector::builder("actix", store).clock(clock).lease_duration(LEASE)
}

/// On a clock that stands still until it is moved, so that nobody renews when it is.
fn by_hand() -> (ElectorBuilder, ManualClock) {
    let (clock, hand) = Clock::manual();
    let store = MemoryStore::with_clock(clock.clone());
    (Elector::builder("actix", store).clock(clock).lease_duration(LEASE), hand)
}

/// What happened, in order.
#[derive(Clone, Debug, Default)]
struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    fn say(&self, what: impl Into<String>) {
        self.0.lock().unwrap().push(what.into());
    }

    fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap())
    }

    fn so_far(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }

    /// Waits until `what` was said.
    async fn says(&self, what: &str) {
        while !self.so_far().iter().any(|said| said == what) {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
}

/// How many values of an actor live, and how many have ever lived.
#[derive(Clone, Debug, Default)]
struct Census(Arc<(AtomicUsize, AtomicUsize)>);

impl Census {
    fn alive(&self) -> usize {
        self.0.0.load(Ordering::SeqCst)
    }

    fn ever(&self) -> usize {
        self.0.1.load(Ordering::SeqCst)
    }

    fn birth(&self) -> Citizen {
        let before = self.0.0.fetch_add(1, Ordering::SeqCst);
        assert_eq!(before, 0, "two values of one actor are alive at once");
        self.0.1.fetch_add(1, Ordering::SeqCst);
        Citizen(self.clone())
    }
}

struct Citizen(Census);

impl Drop for Citizen {
    fn drop(&mut self) {
        self.0.0.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// An actor that tells all that happens to it.
struct Worker {
    term: Term,
    log: Log,
    stops: bool,
    _citizen: Citizen,
}

impl Worker {
    fn new(term: Term, log: &Log, census: &Census) -> Self {
        Self { term, log: log.clone(), stops: true, _citizen: census.birth() }
    }

    /// Refuses to stop.
    fn stubborn(term: Term, log: &Log, census: &Census) -> Self {
        let mut worker = Self::new(term, log, census);
        worker.stops = false;
        worker
    }
}

impl Actor for Worker {
    type Context = Context<Self>;

    fn started(&mut self, _: &mut Context<Self>) {
        self.log.say("started");
    }

    fn stopping(&mut self, _: &mut Context<Self>) -> Running {
        let when = match (self.term.is_live(), self.term.may_finish()) {
            (true, _) => "live",
            (false, true) => "cancelled",
            (false, false) => "ended",
        };
        self.log.say(format!("stopping while {when}"));
        if self.stops { Running::Stop } else { Running::Continue }
    }

    fn stopped(&mut self, _: &mut Context<Self>) {
        self.log.say("stopped");
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.log.say("dropped");
    }
}

#[derive(Message)]
#[rtype(result = "Fence")]
struct WhichTerm;

impl Handler<WhichTerm> for Worker {
    type Result = MessageResult<WhichTerm>;

    fn handle(&mut self, _: WhichTerm, _: &mut Context<Self>) -> Self::Result {
        MessageResult(self.term.fence())
    }
}

/// Is logged when it is handled.
#[derive(Message)]
#[rtype(result = "()")]
struct Say(&'static str);

impl Handler<Say> for Worker {
    type Result = ();

    fn handle(&mut self, say: Say, _: &mut Context<Self>) {
        self.log.say(say.0);
    }
}

/// Is answered, from a future that actix spawns on the arbiter, when the sender is used. Its drop is logged.
#[derive(Message)]
#[rtype(result = "&'static str")]
struct Ask(oneshot::Receiver<&'static str>);

impl Ask {
    /// One that is never answered.
    fn in_vain() -> Self {
        let (sender, answer) = oneshot::channel();
        std::mem::forget(sender);
        Self(answer)
    }
}

impl Handler<Ask> for Worker {
    type Result = ResponseFuture<&'static str>;

    fn handle(&mut self, ask: Ask, _: &mut Context<Self>) -> Self::Result {
        struct Shows(Log);
        impl Drop for Shows {
            fn drop(&mut self) {
                self.0.say("handler dropped");
            }
        }
        self.log.say("asked");
        let shows = Shows(self.log.clone());
        Box::pin(async move {
            let _shows = shows;
            match ask.0.await {
                Ok(answer) => answer,
                Err(_) => pending().await,
            }
        })
    }
}

#[derive(Message)]
#[rtype(result = "()")]
enum Break {
    Stop,
    Panic,
}

impl Handler<Break> for Worker {
    type Result = ();

    fn handle(&mut self, how: Break, context: &mut Context<Self>) {
        match how {
            Break::Stop => context.stop(),
            Break::Panic => panic!("as it was told"),
        }
    }
}
