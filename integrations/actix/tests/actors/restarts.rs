//! Actors that end before their term.

use std::{cell::Cell, rc::Rc, time::Duration};

use actix::{Actor, Context};
use tenure::Clock;
use tenure_actix::{LeaderSendError, LeaderSupervisor};

use super::{Ask, Break, Census, Log, Say, WhichTerm, Worker, on_stage, paused};

#[tokio::test(start_paused = true)]
async fn an_actor_that_panics_is_made_anew_and_handles_what_was_behind() {
    let (log, census) = (Log::default(), Census::default());
    on_stage(async {
        let candidacy = paused().build().unwrap().spawn();
        let worker = {
            let (log, census) = (log.clone(), census.clone());
            LeaderSupervisor::new(candidacy.leadership())
                .start(move |term| Worker::new(term, &log, &census))
        };
        let term = worker.wait_leading().await.unwrap();
        let lost = worker.send(Ask::in_vain());
        log.says("asked").await;
        let fatal = worker.send(Break::Panic);
        let behind = worker.send(WhichTerm);
        assert_eq!(lost.await, Err(LeaderSendError::Unanswered));
        assert_eq!(fatal.await, Err(LeaderSendError::Unanswered));
        assert_eq!(behind.await, Ok(term.fence()), "it is the same term");
        // Nobody knows in what state it was, so it says no goodbye.
        assert_eq!(log.take(), ["started", "asked", "dropped", "handler dropped", "started"]);
        assert_eq!(census.ever(), 2);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn an_actor_that_stops_by_itself_is_made_anew() {
    let (log, census) = (Log::default(), Census::default());
    on_stage(async {
        let candidacy = paused().build().unwrap().spawn();
        let worker = {
            let (log, census) = (log.clone(), census.clone());
            LeaderSupervisor::new(candidacy.leadership())
                .start(move |term| Worker::new(term, &log, &census))
        };
        worker.wait_leading().await.unwrap();
        assert_eq!(worker.send(Break::Stop).await, Ok(()));
        worker.send(Say("the second")).await.unwrap();
        assert_eq!(
            log.take(),
            ["started", "stopping while live", "stopped", "dropped", "started", "the second"]
        );
        candidacy.resign().await;
        // A hand-over while the next one is awaited starts none.
        worker.wait_leading().await.unwrap();
        assert_eq!(worker.send(Break::Stop).await, Ok(()));
        log.take();
        let unseen = worker.send(Say("never"));
        candidacy.resign().await;
        assert_eq!(unseen.await, Err(LeaderSendError::NotLeader { leader: None }));
        assert!(!log.take().contains(&"started".to_owned()));
        assert_eq!(census.alive(), 0);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn an_actor_that_may_veto_its_own_stop_goes_on() {
    let (log, census) = (Log::default(), Census::default());
    on_stage(async {
        let candidacy = paused().build().unwrap().spawn();
        let worker = {
            let (log, census) = (log.clone(), census.clone());
            LeaderSupervisor::new(candidacy.leadership())
                .start(move |term| Worker::stubborn(term, &log, &census))
        };
        worker.wait_leading().await.unwrap();
        worker.send(Break::Stop).await.unwrap();
        worker.send(Say("still here")).await.unwrap();
        assert_eq!(census.ever(), 1);
        candidacy.resign().await;
        assert_eq!(census.alive(), 0, "it can't veto the end of its term");
    })
    .await;
}

/// Stops as soon as it has started, or panics.
struct Fails {
    panics: bool,
    born: Rc<Cell<usize>>,
}

impl Actor for Fails {
    type Context = Context<Self>;

    fn started(&mut self, context: &mut Context<Self>) {
        self.born.set(self.born.get() + 1);
        assert!(!self.panics, "as it was told");
        actix::ActorContext::stop(context);
    }
}

#[tokio::test(start_paused = true)]
async fn the_delay_doubles_up_to_the_longest() {
    for panics in [false, true] {
        on_stage(async {
            let clock = Clock::tokio();
            let candidacy = paused().build().unwrap().spawn();
            candidacy.leadership().leading().await.unwrap();
            let born = Rc::new(Cell::new(0));
            let counted = born.clone();
            let _fails = LeaderSupervisor::new(candidacy.leadership())
                .restart_delay(Duration::from_secs(1), Duration::from_secs(4))
                .start(move |_| Fails { panics, born: counted.clone() });
            let mut births = Vec::new();
            let begin = clock.now();
            while births.len() < 6 {
                tokio::time::sleep(Duration::from_millis(10)).await;
                if born.get() > births.len() {
                    births.push(clock.now().saturating_since(begin).as_secs());
                }
            }
            // 1 s, 2 s, and then 4 s each time.
            assert_eq!(births, [0, 1, 3, 7, 11, 15]);
        })
        .await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_factory_that_panics_is_called_again() {
    let (log, census) = (Log::default(), Census::default());
    on_stage(async {
        let candidacy = paused().build().unwrap().spawn();
        let mut attempts = 0;
        let worker = LeaderSupervisor::new(candidacy.leadership()).start(move |term| {
            attempts += 1;
            assert!(attempts > 2, "not yet");
            Worker::new(term, &log, &census)
        });
        let term = worker.wait_leading().await.unwrap();
        assert_eq!(worker.send(WhichTerm).await, Ok(term.fence()));
    })
    .await;
}
