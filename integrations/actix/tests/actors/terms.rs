//! An actor for each term, and nothing of it afterwards.

use std::{rc::Rc, thread, time::Duration};

use actix::{Actor, Addr, AsyncContext, Context, Handler, Message};
use tenure::{Elector, MemoryStore, TermEnd};
use tenure_actix::{LeaderContext, LeaderSendError, LeaderSupervisor};
use tokio::sync::oneshot;

use super::{Ask, Census, LEASE, Log, Say, WhichTerm, Worker, by_hand, on_stage, paused};

#[tokio::test(start_paused = true)]
async fn each_term_has_a_value_of_its_own_that_ends_with_it() {
    let (log, census) = (Log::default(), Census::default());
    on_stage(async {
        let candidacy = paused().build().unwrap().spawn();
        let worker = {
            let (log, census) = (log.clone(), census.clone());
            LeaderSupervisor::new(candidacy.leadership())
                .start(move |term| Worker::new(term, &log, &census))
        };
        let first = worker.wait_leading().await.unwrap();
        assert_eq!(worker.send(WhichTerm).await, Ok(first.fence()));

        candidacy.resign().await;
        let life = ["started", "stopping while cancelled", "stopped", "dropped"];
        assert_eq!(log.take(), life);
        assert_eq!(worker.send(WhichTerm).await, Err(LeaderSendError::NotLeader { leader: None }));

        let second = worker.wait_leading().await.unwrap();
        assert!(second.fence() > first.fence());
        assert_eq!(worker.send(WhichTerm).await, Ok(second.fence()));
        candidacy.shutdown().await.unwrap();
        assert_eq!(log.take(), life);
        assert_eq!(census.ever(), 2);
    })
    .await;
}

/// The supervisor's thread is held up while one term ends and the next begins.
#[tokio::test]
async fn epoch_jump_without_gap_restarts_actor() {
    let (log, census) = (Log::default(), Census::default());
    on_stage(async {
        let elector = Elector::builder("actix", MemoryStore::new())
            .lease_duration(LEASE)
            .drain_timeout(Duration::from_millis(100))
            .build()
            .unwrap();
        let candidacy = elector.spawn();
        let worker = {
            let (log, census) = (log.clone(), census.clone());
            LeaderSupervisor::new(candidacy.leadership())
                .start(move |term| Worker::new(term, &log, &census))
        };
        let first = worker.wait_leading().await.unwrap();
        assert_eq!(worker.send(WhichTerm).await, Ok(first.fence()));

        // Nobody says goodbye, so the term ends after its drain; and the next one begins.
        drop(candidacy.resign());
        let second = loop {
            match worker.leadership().term() {
                Some(term) if term.fence() > first.fence() => break term,
                _ => thread::sleep(Duration::from_millis(1)),
            }
        };
        let answer = worker.send(WhichTerm);
        assert_eq!(answer.await, Ok(second.fence()), "the actor of the old term has answered");
        assert_eq!(census.ever(), 2);
    })
    .await;
}

#[tokio::test]
async fn response_future_dies_with_term() {
    let (log, census) = (Log::default(), Census::default());
    on_stage(async {
        let (elector, hand) = by_hand();
        let candidacy = elector.build().unwrap().spawn();
        let worker = {
            let log = log.clone();
            LeaderSupervisor::new(candidacy.leadership())
                .start(move |term| Worker::new(term, &log, &census))
        };
        worker.wait_leading().await.unwrap();
        let answer = worker.send(Ask::in_vain());
        log.says("asked").await;
        log.take();

        hand.advance(LEASE);
        assert_eq!(answer.await, Err(LeaderSendError::TermEnded(TermEnd::Expired)));
        log.says("handler dropped").await;
        // Whatever the next term brings.
        let end = ["stopping while ended", "stopped", "dropped", "handler dropped"];
        assert_eq!(log.take()[..4], end);
    })
    .await;
}

/// Sends itself as many messages as it is told, of which the second is handled when the term ends.
struct Backlog {
    log: Log,
}

#[derive(Message)]
#[rtype(result = "()")]
enum Item {
    Queue(Box<dyn Fn() + Send>),
    One,
    EndTheTerm(Box<dyn Fn() + Send>),
}

impl Actor for Backlog {
    type Context = LeaderContext<Self>;
}

impl Handler<Item> for Backlog {
    type Result = ();

    fn handle(&mut self, item: Item, context: &mut LeaderContext<Self>) {
        match item {
            Item::Queue(end) => {
                let own = context.address();
                own.do_send(Item::One);
                own.do_send(Item::EndTheTerm(end));
                (0..8).for_each(|_| own.do_send(Item::One));
            }
            Item::One => self.log.say("handled"),
            Item::EndTheTerm(end) => {
                end();
                self.log.say("handled");
            }
        }
    }
}

#[tokio::test]
async fn a_strict_actor_stops_between_two_messages_to_itself() {
    let log = Log::default();
    on_stage(async {
        let (elector, hand) = by_hand();
        let candidacy = elector.build().unwrap().spawn();
        let backlog = {
            let log = log.clone();
            LeaderSupervisor::new(candidacy.leadership())
                .start(move |_| Backlog { log: log.clone() })
        };
        let term = backlog.wait_leading().await.unwrap();
        backlog.do_send(Item::Queue(Box::new(move || hand.advance(LEASE))));
        assert_eq!(term.ended().await, TermEnd::Expired);
        drop(candidacy);
        drop(backlog);
        tokio::task::yield_now().await;
        assert_eq!(log.take().len(), 2, "messages were handled after the end of their term");
    })
    .await;
}

#[tokio::test]
async fn any_actor_stops_between_two_messages_of_others() {
    let (log, census) = (Log::default(), Census::default());
    on_stage(async {
        let (elector, hand) = by_hand();
        let candidacy = elector.build().unwrap().spawn();
        let ending = {
            let log = log.clone();
            LeaderSupervisor::new(candidacy.leadership()).start(move |term| Ending {
                hand: hand.clone(),
                worker: Worker::new(term, &log, &census),
            })
        };
        ending.wait_leading().await.unwrap();
        let answers: Vec<_> = (0..10).map(|_| ending.send(Say("handled"))).collect();
        let answers = futures::future::join_all(answers).await;
        assert_eq!(answers[0], Ok(()), "it was handled, and in time");
        let unseen = Err(LeaderSendError::NotLeader { leader: None });
        assert!(answers[1..].iter().all(|answer| *answer == unseen), "{answers:?}");
        assert_eq!(log.take().iter().filter(|said| *said == "handled").count(), 1);
    })
    .await;
}

/// Its term ends during each message.
struct Ending {
    hand: tenure::ManualClock,
    worker: Worker,
}

impl Actor for Ending {
    type Context = Context<Self>;
}

impl Handler<Say> for Ending {
    type Result = ();

    fn handle(&mut self, say: Say, _: &mut Context<Self>) {
        self.worker.log.say(say.0);
        self.hand.suspend(LEASE);
    }
}

/// Answers `stopping` with `Continue`, after which actix handles what is queued. Gives its own address away.
struct Stubborn {
    worker: Worker,
    address: Option<oneshot::Sender<Addr<Self>>>,
}

impl Actor for Stubborn {
    type Context = Context<Self>;

    fn started(&mut self, context: &mut Context<Self>) {
        let _ = self.address.take().map(|address| address.send(context.address()));
    }

    fn stopping(&mut self, _: &mut Context<Self>) -> actix::Running {
        self.worker.log.say("vetoed");
        actix::Running::Continue
    }
}

impl Handler<Say> for Stubborn {
    type Result = ();

    fn handle(&mut self, say: Say, _: &mut Context<Self>) {
        self.worker.log.say(say.0);
    }
}

#[tokio::test]
async fn veto_in_stopping_drains_nothing() {
    let (log, census) = (Log::default(), Census::default());
    on_stage(async {
        let (elector, hand) = by_hand();
        let candidacy = elector.build().unwrap().spawn();
        let (give, address) = oneshot::channel();
        let mut give = Some(give);
        let _stubborn = {
            let log = log.clone();
            LeaderSupervisor::new(candidacy.leadership()).start(move |term| Stubborn {
                worker: Worker::new(term, &log, &census),
                address: give.take(),
            })
        };
        let address = address.await.unwrap();
        address.send(Say("while it leads")).await.unwrap();
        hand.advance(LEASE);
        // Nobody else has run since.
        (0..3).for_each(|_| address.do_send(Say("drained")));
        log.says("dropped").await;
        assert_eq!(log.take()[..3], ["while it leads", "vetoed", "dropped"]);
    })
    .await;
}

/// Spawns whatever an actor can spawn.
struct Spawner {
    weight: Rc<()>,
    _worker: Worker,
}

impl Actor for Spawner {
    type Context = Context<Self>;

    fn started(&mut self, context: &mut Context<Self>) {
        let holds = |weight: &Rc<()>| {
            let weight = weight.clone();
            async move {
                std::future::pending::<()>().await;
                drop(weight);
            }
        };
        actix::spawn(holds(&self.weight));
        context.spawn(actix::fut::wrap_future::<_, Self>(holds(&self.weight)));
        context.run_interval(Duration::from_millis(10), |_, _| {});
        Child(self.weight.clone()).start();
        let addr = context.address();
        actix::spawn(async move {
            // Holds the actor's own address, which keeps other actors alive.
            std::future::pending::<()>().await;
            drop(addr);
        });
    }
}

struct Child(#[allow(dead_code)] Rc<()>);

impl Actor for Child {
    type Context = Context<Self>;

    fn started(&mut self, context: &mut Context<Self>) {
        context.run_interval(Duration::from_millis(10), |_, _| {});
    }
}

#[tokio::test(start_paused = true)]
async fn a_hundred_terms_leave_nothing_behind() {
    let (log, census, weight) = (Log::default(), Census::default(), Rc::new(()));
    on_stage(async {
        let candidacy = paused().build().unwrap().spawn();
        let spawner = {
            let (log, census, weight) = (log.clone(), census.clone(), weight.clone());
            LeaderSupervisor::new(candidacy.leadership()).start(move |term| Spawner {
                weight: weight.clone(),
                _worker: Worker::new(term, &log, &census),
            })
        };
        for term in 1..=100 {
            let leading = spawner.wait_leading().await.unwrap();
            tokio::time::sleep(Duration::from_millis(100)).await;
            assert!(leading.is_live());
            assert_eq!((census.alive(), census.ever()), (1, term));
            // The actor's, its child's, and one of each future.
            assert_eq!(Rc::strong_count(&weight), 2 + 4);
            candidacy.resign().await;
            assert_eq!(census.alive(), 0);
            assert_eq!(Rc::strong_count(&weight), 2, "the supervisor's and the test's");
        }
        candidacy.shutdown().await.unwrap();
        tokio::task::yield_now().await;
        assert_eq!(Rc::strong_count(&weight), 1, "the supervisor outlives its elector");
    })
    .await;
}
