//! Starts an actor in each term, and ends it with the term.

use std::{
    any::type_name,
    cell::RefCell,
    future::{Future, poll_fn},
    pin::{Pin, pin},
    rc::Rc,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use actix::{Actor, ActorFuture, AsyncContext, dev::ContextFut};
use futures::{StreamExt, stream::FuturesUnordered};
use tenure::{EndWake, InFlight, Leadership, Term, Transition};
use tokio::{sync::mpsc, time::sleep};
use tracing::warn;

use crate::{
    LeaderAddr, SupervisedContext,
    addr::Never,
    instance::{Gone, Instance},
    letter::Unanswered,
    postbox::{Letters, Postbox},
};

/// Starts an actor at the start of each term, and ends it with the term. [The crate's page](crate) says what happens when.
///
/// ```
/// use actix::{Actor, Context, Handler, Message};
/// use tenure::{Elector, MemoryStore, Term};
/// use tenure_actix::{LeaderAddr, LeaderSupervisor};
///
/// struct Scheduler {
///     term: Term,
/// }
///
/// impl Actor for Scheduler {
///     type Context = Context<Self>;
/// }
///
/// #[derive(Message)]
/// #[rtype(result = "String")]
/// struct Schedule(&'static str);
///
/// impl Handler<Schedule> for Scheduler {
///     type Result = String;
///
///     fn handle(&mut self, job: Schedule, _: &mut Context<Self>) -> String {
///         format!("{} is scheduled in term {}", job.0, self.term.fence())
///     }
/// }
///
/// # actix::System::new().block_on(async {
/// let elector = Elector::builder("scheduler", MemoryStore::new()).build()?;
/// let scheduler: LeaderAddr<Scheduler> =
///     LeaderSupervisor::new(elector.leadership()).start(|term| Scheduler { term });
/// let candidacy = elector.spawn();
///
/// scheduler.wait_leading().await?;
/// assert_eq!(scheduler.send(Schedule("cleaning")).await?, "cleaning is scheduled in term 1");
///
/// candidacy.shutdown().await?;
/// assert!(scheduler.send(Schedule("cleaning")).await.is_err());
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
#[must_use = "it supervises nothing until it is started"]
pub struct LeaderSupervisor {
    leadership: Leadership,
    mailbox_capacity: usize,
    restart_delay: Duration,
    longest_restart_delay: Duration,
}

impl LeaderSupervisor {
    /// Supervises an actor in the terms of `leadership`.
    pub fn new(leadership: Leadership) -> Self {
        Self {
            leadership,
            mailbox_capacity: 16,
            restart_delay: Duration::from_millis(100),
            longest_restart_delay: Duration::from_secs(5),
        }
    }

    /// How many messages wait for the actor at most; one more is refused. Defaults to 16; zero counts as one.
    pub fn mailbox_capacity(mut self, messages: usize) -> Self {
        self.mailbox_capacity = messages.max(1);
        self
    }

    /// How long to wait before an actor that stopped by itself, or panicked, is made anew within a term. Doubled each
    /// time, up to the longest delay; begins anew with each term, and when an actor has lived as long as the longest
    /// delay. Defaults to 100 ms and 5 s.
    pub fn restart_delay(mut self, first: Duration, longest: Duration) -> Self {
        (self.restart_delay, self.longest_restart_delay) = (first, longest.max(first));
        self
    }

    /// Supervises in a task of the current arbiter, or of the current `LocalSet` on a plain tokio runtime with timers,
    /// and gives the actor's address. The task ends when the elector has stopped, or when the last clone of the address is
    /// dropped.
    ///
    /// `make` is called at the start of each term, when this candidate is *elected*: before messages are accepted, if the
    /// elector was built with `ready_when_told()`. Then it is for the actor to say [`Term::ready`]. It is called again
    /// for each restart.
    ///
    /// # Panics
    /// Outside of an arbiter and a `LocalSet`.
    #[track_caller]
    #[must_use = "the actor is gone when its last address is dropped"]
    pub fn start<A, F>(self, make: F) -> LeaderAddr<A>
    where
        A: Actor,
        A::Context: SupervisedContext<A>,
        F: FnMut(Term) -> A + 'static,
    {
        let (address, supervised) = self.supervise(make);
        tokio::task::spawn_local(supervised);
        address
    }

    /// Supervises an actor that nobody writes to, in the caller's task, until the elector has stopped. Otherwise it is
    /// [`start`](Self::start). Dropping the future ends the actor.
    ///
    /// The future is to be polled within an arbiter or a `LocalSet`, too.
    pub fn run<A, F>(self, make: F) -> impl Future<Output = ()> + use<A, F>
    where
        A: Actor,
        A::Context: SupervisedContext<A>,
        F: FnMut(Term) -> A + 'static,
    {
        let (address, supervised) = self.supervise(make);
        async move {
            supervised.await;
            drop(address);
        }
    }

    fn supervise<A, F>(self, make: F) -> (LeaderAddr<A>, impl Future<Output = ()> + use<A, F>)
    where
        A: Actor,
        A::Context: SupervisedContext<A>,
        F: FnMut(Term) -> A + 'static,
    {
        let postbox = Arc::new(Postbox::new(self.leadership.clone(), self.mailbox_capacity));
        let (open, address_open) = mpsc::channel(1);
        let address = LeaderAddr::new(postbox.clone(), open);
        // From here on, so that a task that is dropped before it ever ran refuses as well.
        let office = OpenPostbox(postbox);
        let supervisor = Supervisor { make, settings: self, address_open };
        (address, supervisor.run(office))
    }
}

/// Closes the postbox when the supervisor is gone, for whatever reason.
struct OpenPostbox<A: Actor>(Arc<Postbox<A>>);

impl<A: Actor> Drop for OpenPostbox<A> {
    fn drop(&mut self) {
        self.0.close();
    }
}

struct Supervisor<F> {
    make: F,
    settings: LeaderSupervisor,
    /// Ends when nobody can write any more.
    address_open: mpsc::Receiver<Never>,
}

/// Why an actor is no more.
enum Over {
    /// The term, or the last address, is gone, and all messages are answered.
    Drained,
    /// The term ended before that.
    Ended,
    Gone(Gone),
}

impl<F> Supervisor<F> {
    async fn run<A>(mut self, postbox: OpenPostbox<A>)
    where
        A: Actor,
        A::Context: SupervisedContext<A>,
        F: FnMut(Term) -> A,
    {
        let mut transitions = self.settings.leadership.transitions();
        loop {
            let transition = tokio::select! {
                biased;
                // First, since a message may wait whose sender has dropped the address since.
                transition = transitions.next() => transition,
                _ = self.address_open.recv() => return,
            };
            match transition {
                Some(Transition::Started(term)) => {
                    if let Some(letters) = postbox.0.collect(&term) {
                        self.lead(&term, letters).await;
                    }
                }
                Some(_) => {}
                None => return,
            }
        }
    }

    /// One term: an actor, and a new one whenever it is gone before its time. They share the mailbox: what the one has not
    /// seen is handled by the next.
    async fn lead<A>(&mut self, term: &Term, letters: Letters<A>)
    where
        A: Actor,
        A::Context: SupervisedContext<A>,
        F: FnMut(Term) -> A,
    {
        let letters = Rc::new(RefCell::new(letters));
        // So that a hand-over waits for the actor's goodbye. It never waits long for an idle one, which goes at once.
        let Some(presence) = term.admit() else { return };
        let mut delay = self.settings.restart_delay;
        loop {
            let gone = match self.live(&presence, &letters, &mut delay).await {
                Over::Gone(gone) => gone,
                Over::Drained | Over::Ended => return,
            };
            let (election, fence, actor) = (term.election(), term.fence(), type_name::<A>());
            let how = match gone {
                Gone::Stopped => "stopped by itself",
                Gone::Panicked => "panicked",
            };
            warn!(target: "tenure", %election, %fence, actor, ?delay, "a leader-only actor {how}, starting a new one");
            tokio::select! {
                biased;
                () = term.cancelled() => return,
                _ = self.address_open.recv() => return,
                () = sleep(delay) => {}
            }
            delay = delay.saturating_mul(2).min(self.settings.longest_restart_delay);
        }
    }

    /// One actor, for as long as it lives.
    async fn live<A>(
        &mut self,
        presence: &InFlight,
        letters: &Rc<RefCell<Letters<A>>>,
        delay: &mut Duration,
    ) -> Over
    where
        A: Actor,
        A::Context: SupervisedContext<A>,
        F: FnMut(Term) -> A,
    {
        let term = presence.term();
        let unanswered = Rc::new(RefCell::new(FuturesUnordered::new()));
        let inbox =
            Inbox { term: term.clone(), letters: letters.clone(), unanswered: unanswered.clone() };
        let make = &mut self.make;
        let mut instance = Instance::new(|| start(make, inbox));
        let mut wake = pin!(EndWake::default());
        let mut cancelled = pin!(term.cancelled());
        let mut settled = pin!(sleep(self.settings.longest_restart_delay));
        let mut young = true;
        poll_fn(|cx| {
            if young && settled.as_mut().poll(cx).is_ready() {
                young = false;
                *delay = self.settings.restart_delay;
            }
            let turn = presence.poll_with(wake.as_mut(), cx, |cx| {
                if let Poll::Ready(gone) = instance.poll(cx) {
                    return Poll::Ready(Over::Gone(gone));
                }
                let answered = pass_on_answers(&mut unanswered.borrow_mut(), cx);
                let leaving = cancelled.as_mut().poll(cx).is_ready()
                    || self.address_open.poll_recv(cx).is_ready();
                if leaving && answered && close(&mut letters.borrow_mut()) {
                    return Poll::Ready(Over::Drained);
                }
                Poll::Pending
            });
            turn.map(|over| over.unwrap_or(Over::Ended))
        })
        .await
    }
}

/// Makes an actor that reads `inbox`. The first thing that it does in its life is to start.
fn start<A>(make: &mut impl FnMut(Term) -> A, inbox: Inbox<A>) -> ContextFut<A, A::Context>
where
    A: Actor,
    A::Context: SupervisedContext<A>,
{
    let mut context = A::Context::of(&inbox.term);
    let actor = make(inbox.term.clone());
    context.spawn(inbox);
    context.run(actor)
}

/// Whether there is none left to wait for.
fn pass_on_answers(unanswered: &mut FuturesUnordered<Unanswered>, cx: &mut Context<'_>) -> bool {
    loop {
        match unanswered.poll_next_unpin(cx) {
            Poll::Ready(Some(())) => {}
            Poll::Ready(None) => return true,
            Poll::Pending => return false,
        }
    }
}

/// Accepts no more letters. Whether all have been opened.
fn close<A: Actor>(letters: &mut Letters<A>) -> bool {
    letters.close();
    letters.is_empty()
}

/// Opens letters within the actor's context. actix's own mailbox would neither ask the term between two messages nor
/// tell when they are answered.
struct Inbox<A: Actor> {
    term: Term,
    letters: Rc<RefCell<Letters<A>>>,
    unanswered: Rc<RefCell<FuturesUnordered<Unanswered>>>,
}

impl<A> ActorFuture<A> for Inbox<A>
where
    A: Actor,
    A::Context: AsyncContext<A>,
{
    type Output = ();

    fn poll(
        self: Pin<&mut Self>,
        actor: &mut A,
        context: &mut A::Context,
        cx: &mut Context<'_>,
    ) -> Poll<()> {
        // As actix's does: not while the actor waits or stops. It polls this again afterwards.
        while !context.waiting() && self.term.may_finish() {
            let Poll::Ready(Some(letter)) = self.letters.borrow_mut().poll_recv(cx) else { break };
            let unanswered = letter.open(actor, context);
            self.unanswered.borrow_mut().extend(unanswered);
        }
        // Also when no more letters come: an actor without anything to wait for would stop by itself.
        Poll::Pending
    }
}
