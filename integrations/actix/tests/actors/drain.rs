//! What a hand-over waits for, and what it does not.

use std::{future::pending, time::Duration};

use actix::{Actor, AsyncContext, AtomicResponse, Context, Handler, Message, WrapFuture};
use tenure::{Clock, TermEnd};
use tenure_actix::{LeaderAddr, LeaderSendError, LeaderSupervisor};
use tokio::{sync::oneshot, task::LocalSet};

use super::{Ask, Census, Log, Say, WhichTerm, Worker, on_stage, paused};

const HOUR: Duration = Duration::from_secs(3600);

fn worker(leadership: tenure::Leadership, log: &Log) -> LeaderAddr<Worker> {
    let (log, census) = (log.clone(), Census::default());
    LeaderSupervisor::new(leadership).start(move |term| Worker::new(term, &log, &census))
}

#[tokio::test(start_paused = true)]
async fn an_idle_actor_is_not_waited_for() {
    let log = Log::default();
    on_stage(async {
        let clock = Clock::tokio();
        let candidacy = paused().drain_timeout(HOUR).build().unwrap().spawn();
        let worker = worker(candidacy.leadership(), &log);
        worker.wait_leading().await.unwrap();
        worker.send(WhichTerm).await.unwrap();
        let before = clock.now();
        candidacy.resign().await;
        assert!(clock.now().saturating_since(before) < Duration::from_secs(1));
        assert_eq!(log.take(), ["started", "stopping while cancelled", "stopped", "dropped"]);
    })
    .await;
}

/// Handles no message before something has been loaded, which takes for ever.
struct Loading;

impl Actor for Loading {
    type Context = Context<Self>;

    fn started(&mut self, context: &mut Context<Self>) {
        context.wait(pending().into_actor(self));
    }
}

#[tokio::test(start_paused = true)]
async fn an_actor_that_waits_for_something_of_its_own_is_not_waited_for() {
    on_stage(async {
        let clock = Clock::tokio();
        let candidacy = paused().drain_timeout(HOUR).build().unwrap().spawn();
        let loading = LeaderSupervisor::new(candidacy.leadership()).start(|_| Loading);
        loading.wait_leading().await.unwrap();
        tokio::task::yield_now().await;
        let before = clock.now();
        candidacy.resign().await;
        assert!(clock.now().saturating_since(before) < Duration::from_secs(1));
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn messages_that_were_accepted_are_answered_before_the_term_ends() {
    let log = Log::default();
    on_stage(async {
        let candidacy = paused().drain_timeout(HOUR).build().unwrap().spawn();
        let worker = worker(candidacy.leadership(), &log);
        let term = worker.wait_leading().await.unwrap();
        let (first, first_asked) = oneshot::channel();
        let (second, second_asked) = oneshot::channel();
        let kept = worker.send(Ask(first_asked));
        // Also one that nobody waits for.
        worker.try_send(Ask(second_asked)).unwrap();
        log.says("asked").await;

        let resigned = candidacy.resign();
        term.cancelled().await;
        assert_eq!(
            worker.try_send(Say("too late")),
            Err(LeaderSendError::NotLeader { leader: None })
        );
        tokio::time::sleep(HOUR / 4).await;
        first.send("the first answer").unwrap();
        assert_eq!(kept.await, Ok("the first answer"));
        tokio::time::sleep(HOUR / 4).await;
        assert_eq!(term.end(), None, "a message without an answer is not waited for");
        log.take();
        second.send("the second answer").unwrap();
        resigned.await;
        assert_eq!(
            log.take(),
            ["handler dropped", "stopping while cancelled", "stopped", "dropped"]
        );
    })
    .await;
}

#[derive(Message)]
#[rtype(result = "()")]
struct Exclusive(oneshot::Receiver<()>);

impl Handler<Exclusive> for Worker {
    type Result = AtomicResponse<Self, ()>;

    fn handle(&mut self, exclusive: Exclusive, _: &mut Context<Self>) -> Self::Result {
        let work = async {
            let _ = exclusive.0.await;
        };
        AtomicResponse::new(Box::pin(work.into_actor(self)))
    }
}

#[tokio::test(start_paused = true)]
async fn messages_in_the_mailbox_are_waited_for_as_well() {
    let log = Log::default();
    on_stage(async {
        let candidacy = paused().drain_timeout(HOUR).build().unwrap().spawn();
        let worker = worker(candidacy.leadership(), &log);
        let term = worker.wait_leading().await.unwrap();
        let (done, doing) = oneshot::channel();
        let exclusive = worker.send(Exclusive(doing));
        let behind = worker.send(Say("behind"));
        tokio::task::yield_now().await;
        let resigned = candidacy.resign();
        term.cancelled().await;
        tokio::time::sleep(HOUR / 2).await;
        done.send(()).unwrap();
        assert_eq!((exclusive.await, behind.await), (Ok(()), Ok(())));
        resigned.await;
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_outlives_the_drain_is_cut() {
    let log = Log::default();
    on_stage(async {
        let candidacy = paused().build().unwrap().spawn();
        let worker = worker(candidacy.leadership(), &log);
        worker.wait_leading().await.unwrap();
        let cut = worker.send(Ask::in_vain());
        log.says("asked").await;
        log.take();
        candidacy.resign().await;
        let cut = cut.await.unwrap_err();
        assert_eq!(cut, LeaderSendError::TermEnded(TermEnd::Resigned));
        assert!(cut.outcome_is_unknown());
        log.says("handler dropped").await;
        assert_eq!(log.take(), ["stopping while ended", "stopped", "dropped", "handler dropped"]);
    })
    .await;
}

/// The supervisor gets to run only when the hand-over has begun.
#[tokio::test(start_paused = true)]
async fn messages_that_no_actor_will_see_do_not_hold_a_drain() {
    let (clock, log, stage) = (Clock::tokio(), Log::default(), LocalSet::new());
    let candidacy = paused().drain_timeout(HOUR).build().unwrap().spawn();
    let term = candidacy.leadership().leading().await.unwrap();
    let worker = {
        let _entered = stage.enter();
        worker(candidacy.leadership(), &log)
    };
    let unseen = worker.send(Say("never"));
    let before = clock.now();
    let resigned = candidacy.resign();
    term.cancelled().await;
    stage.run_until(resigned).await;
    assert!(clock.now().saturating_since(before) < Duration::from_secs(1));
    assert_eq!(unseen.await, Err(LeaderSendError::NotLeader { leader: None }));
    assert!(log.take().is_empty(), "an actor was started in a term that is cancelled");
}
