//! Elections, actors and callers on runtimes of their own.

use std::{thread, time::Duration};

use actix::{Actor, Arbiter, AsyncContext, Context, Handler, MessageResult, System, WrapFuture};
use tenure::{Elector, Leadership, MemoryStore, Term};
use tenure_actix::{LeaderAddr, LeaderSendError, LeaderSupervisor};
use tokio::{runtime::Builder, task::LocalSet};

use super::{Census, LEASE, Log, WhichTerm, Worker, on_stage, paused};

fn elector() -> Elector {
    Elector::builder("actix", MemoryStore::new()).lease_duration(LEASE).build().unwrap()
}

/// Supervises a worker on a thread with a runtime of its own, until the elector has stopped.
fn supervise_elsewhere(leadership: Leadership) -> (thread::JoinHandle<()>, LeaderAddr<Worker>) {
    let (give, take) = std::sync::mpsc::channel();
    let thread = thread::spawn(move || {
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        let until = leadership.watch();
        LocalSet::new().block_on(&runtime, async {
            let (log, census) = (Log::default(), Census::default());
            let supervisor = LeaderSupervisor::new(leadership);
            give.send(supervisor.start(move |term| Worker::new(term, &log, &census))).unwrap();
            let mut until = until;
            while until.borrow().phase() != tenure::Phase::Stopped {
                if until.changed().await.is_err() {
                    break;
                }
            }
        });
    });
    (thread, take.recv().unwrap())
}

async fn answers_and_ends(worker: LeaderAddr<Worker>, term: &Term) {
    let (other, fence) = (worker.clone(), term.fence());
    assert_eq!(worker.send(WhichTerm).await, Ok(fence));
    // From a runtime that has nothing to do with any of it, and from none.
    let (give, take) = tokio::sync::oneshot::channel();
    thread::spawn(move || give.send(futures::executor::block_on(other.send(WhichTerm))));
    assert_eq!(take.await.unwrap(), Ok(fence));
}

#[test]
fn the_election_lives_on_its_own_thread() {
    let candidacy = elector().spawn();
    let (thread, worker) = supervise_elsewhere(candidacy.leadership());
    futures::executor::block_on(async {
        let term = worker.wait_leading().await.unwrap();
        answers_and_ends(worker.clone(), &term).await;
        candidacy.shutdown().await.unwrap();
        assert!(matches!(
            worker.send(WhichTerm).await,
            Err(LeaderSendError::NotLeader { leader: None })
        ));
    });
    thread.join().unwrap();
}

#[test]
fn the_election_lives_on_a_multi_thread_runtime() {
    let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let elector = elector();
    let (thread, worker) = supervise_elsewhere(elector.leadership());
    runtime.block_on(async {
        let (stop, stopping) = tokio::sync::oneshot::channel::<()>();
        let running = tokio::spawn(elector.run(async {
            let _ = stopping.await;
        }));
        let term = worker.wait_leading().await.unwrap();
        answers_and_ends(worker, &term).await;
        drop(stop);
        running.await.unwrap().unwrap();
    });
    thread.join().unwrap();
}

#[test]
fn election_and_actor_live_on_one_arbiter() {
    System::new().block_on(async {
        let elector = elector();
        let (log, census) = (Log::default(), Census::default());
        let worker = LeaderSupervisor::new(elector.leadership())
            .start(move |term| Worker::new(term, &log, &census));
        let (stop, stopping) = tokio::sync::oneshot::channel::<()>();
        let running = actix::spawn(elector.run(async {
            let _ = stopping.await;
        }));
        let term = worker.wait_leading().await.unwrap();
        answers_and_ends(worker, &term).await;
        drop(stop);
        running.await.unwrap().unwrap();
    });
}

#[test]
fn an_arbiter_of_its_own_that_stops_takes_the_supervisor_along() {
    System::new().block_on(async {
        let candidacy = elector().spawn();
        let leadership = candidacy.leadership();
        let arbiter = Arbiter::new();
        let (give, take) = tokio::sync::oneshot::channel();
        arbiter.spawn(async move {
            let (log, census) = (Log::default(), Census::default());
            let worker = LeaderSupervisor::new(leadership)
                .start(move |term| Worker::new(term, &log, &census));
            let _ = give.send(worker);
        });
        let worker = take.await.unwrap();
        let term = worker.wait_leading().await.unwrap();
        assert_eq!(worker.send(WhichTerm).await, Ok(term.fence()));
        arbiter.stop();
        arbiter.join().unwrap();
        assert_eq!(worker.send(WhichTerm).await, Err(LeaderSendError::SupervisorGone));
        candidacy.shutdown().await.unwrap();
    });
}

/// Outlives its caller's patience: the actor's thread is held up, and the term ends meanwhile.
#[test]
fn callers_elsewhere_are_told_in_time_although_the_actor_is_held_up() {
    struct Blocks;
    impl Actor for Blocks {
        type Context = Context<Self>;
    }
    impl Handler<WhichTerm> for Blocks {
        type Result = MessageResult<WhichTerm>;
        fn handle(&mut self, _: WhichTerm, _: &mut Context<Self>) -> Self::Result {
            thread::sleep(Duration::from_secs(3));
            MessageResult(tenure::Fence::try_from(1_u64).unwrap())
        }
    }
    let elector = Elector::builder("actix", MemoryStore::new())
        .lease_duration(LEASE)
        .drain_timeout(Duration::from_millis(100))
        .build()
        .unwrap();
    let candidacy = elector.spawn();
    let (give, take) = std::sync::mpsc::channel();
    let leadership = candidacy.leadership();
    let actors = thread::spawn(move || {
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        LocalSet::new().block_on(&runtime, async {
            let stopped = leadership.terms();
            give.send(LeaderSupervisor::new(leadership).start(|_| Blocks)).unwrap();
            let mut stopped = stopped;
            while stopped.next().await.is_some() {}
        });
    });
    let blocks: LeaderAddr<Blocks> = take.recv().unwrap();
    futures::executor::block_on(async {
        let term = blocks.wait_leading().await.unwrap();
        let (seen, unseen) = (blocks.send(WhichTerm), blocks.send(WhichTerm));
        thread::sleep(Duration::from_millis(200));
        let shutdown = candidacy.shutdown();
        assert!(matches!(seen.await, Err(LeaderSendError::TermEnded(_))));
        assert!(matches!(unseen.await, Err(LeaderSendError::NotLeader { .. })));
        assert!(!term.may_finish());
        // The handler is blocked under a guard, so the lease is not given back.
        let _ = shutdown.await;
    });
    actors.join().unwrap();
}

/// Loads something, and only then lets its candidate lead.
struct Loads(Term);

impl Actor for Loads {
    type Context = Context<Self>;

    fn started(&mut self, context: &mut Context<Self>) {
        let term = self.0.clone();
        let load = async move {
            tokio::time::sleep(Duration::from_secs(2)).await;
            term.ready();
        };
        context.wait(load.into_actor(self));
    }
}

impl Handler<WhichTerm> for Loads {
    type Result = MessageResult<WhichTerm>;

    fn handle(&mut self, _: WhichTerm, _: &mut Context<Self>) -> Self::Result {
        MessageResult(self.0.fence())
    }
}

#[tokio::test(start_paused = true)]
async fn an_actor_may_say_itself_when_it_is_ready() {
    on_stage(async {
        let candidacy = paused().ready_when_told().build().unwrap().spawn();
        let leadership = candidacy.leadership();
        let loads = LeaderSupervisor::new(leadership.clone()).start(Loads);
        let elected = leadership.terms().next().await.unwrap();
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert!(elected.is_live() && !elected.is_ready());
        assert_eq!(loads.send(WhichTerm).await, Err(LeaderSendError::NotLeader { leader: None }));
        let ready = loads.wait_leading().await.unwrap();
        assert_eq!(loads.send(WhichTerm).await, Ok(ready.fence()));
        assert_eq!(ready, elected);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn an_actor_that_nobody_writes_to_lives_as_long_as_its_supervisor_is_polled() {
    let (log, census) = (Log::default(), Census::default());
    let supervised = |leadership| {
        let (log, census) = (log.clone(), census.clone());
        LeaderSupervisor::new(leadership).run(move |term| Worker::new(term, &log, &census))
    };
    on_stage(async {
        let candidacy = paused().build().unwrap().spawn();
        let supervisor = actix::spawn(supervised(candidacy.leadership()));
        log.says("started").await;
        // Far longer than it would take to notice that there is no address.
        tokio::time::sleep(LEASE).await;
        assert_eq!(census.alive(), 1);
        supervisor.abort();
        assert!(supervisor.await.unwrap_err().is_cancelled());
        assert_eq!(log.take(), ["started", "stopping while live", "stopped", "dropped"]);

        let supervisor = actix::spawn(supervised(candidacy.leadership()));
        log.says("started").await;
        candidacy.shutdown().await.unwrap();
        supervisor.await.unwrap();
        assert_eq!(log.take(), ["started", "stopping while cancelled", "stopped", "dropped"]);
    })
    .await;
}
