//! What callers are told.

use actix::{Actor, AsyncContext, Context, WrapFuture};
use tenure::{Leadership, TermEnd};
use tenure_actix::{LeaderAddr, LeaderRecipient, LeaderSendError, LeaderSupervisor};
use tokio::task::LocalSet;

use super::{Ask, Census, LEASE, Log, Say, WhichTerm, Worker, by_hand, on_stage, paused};

fn worker(leadership: Leadership, log: &Log) -> LeaderAddr<Worker> {
    let (log, census) = (log.clone(), Census::default());
    LeaderSupervisor::new(leadership).start(move |term| Worker::new(term, &log, &census))
}

const NOT_LEADER: LeaderSendError = LeaderSendError::NotLeader { leader: None };

#[tokio::test]
async fn messages_are_refused_before_the_supervisor_has_noticed_the_end() {
    let log = Log::default();
    on_stage(async {
        let (elector, hand) = by_hand();
        let candidacy = elector.build().unwrap().spawn();
        let worker = worker(candidacy.leadership(), &log);
        worker.wait_leading().await.unwrap();
        worker.send(WhichTerm).await.unwrap();

        // Nobody is woken, and nobody else runs before the next await.
        hand.suspend(LEASE);
        assert_eq!(worker.try_send(Say("after the end")), Err(NOT_LEADER));
        let refused = worker.send(WhichTerm);
        assert_eq!(refused.await, Err(NOT_LEADER));
    })
    .await;
}

#[tokio::test]
async fn messages_are_accepted_before_the_supervisor_has_noticed_the_start() {
    let log = Log::default();
    on_stage(async {
        let (elector, _hand) = by_hand();
        let candidacy = elector.build().unwrap().spawn();
        let leadership = candidacy.leadership();
        let term = leadership.leading().await.unwrap();
        let worker = worker(leadership, &log);
        // Its supervisor has never run.
        assert_eq!(worker.send(WhichTerm).await, Ok(term.fence()));
    })
    .await;
}

#[tokio::test]
async fn a_message_that_no_handler_has_seen_may_be_sent_again() {
    let log = Log::default();
    on_stage(async {
        let (elector, hand) = by_hand();
        let candidacy = elector.build().unwrap().spawn();
        let worker = worker(candidacy.leadership(), &log);
        worker.wait_leading().await.unwrap();
        let seen = worker.send(Ask::in_vain());
        log.says("asked").await;
        let unseen = worker.send(Say("never"));
        hand.advance(LEASE);
        assert_eq!(seen.await, Err(LeaderSendError::TermEnded(TermEnd::Expired)));
        let unseen = unseen.await.unwrap_err();
        assert_eq!(unseen, NOT_LEADER);
        assert!(!unseen.outcome_is_unknown());
        assert!(!log.take().contains(&"never".to_owned()));
    })
    .await;
}

#[tokio::test]
async fn an_answer_that_was_given_in_time_counts_also_if_it_is_read_later() {
    let log = Log::default();
    on_stage(async {
        let (elector, hand) = by_hand();
        let candidacy = elector.build().unwrap().spawn();
        let worker = worker(candidacy.leadership(), &log);
        let term = worker.wait_leading().await.unwrap();
        let answer = worker.send(WhichTerm);
        worker.send(Say("behind it")).await.unwrap();
        hand.advance(LEASE);
        term.ended().await;
        assert_eq!(answer.await, Ok(term.fence()));
    })
    .await;
}

/// Handles nothing.
struct Busy;

impl Actor for Busy {
    type Context = Context<Self>;

    fn started(&mut self, context: &mut Context<Self>) {
        context.wait(std::future::pending().into_actor(self));
    }
}

impl actix::Handler<Say> for Busy {
    type Result = ();

    fn handle(&mut self, _: Say, _: &mut Context<Self>) {
        unreachable!("it waits");
    }
}

#[tokio::test(start_paused = true)]
async fn a_mailbox_holds_what_it_was_told_to_hold() {
    on_stage(async {
        let candidacy = paused().build().unwrap().spawn();
        let busy =
            LeaderSupervisor::new(candidacy.leadership()).mailbox_capacity(3).start(|_| Busy);
        busy.wait_leading().await.unwrap();
        for _ in 0..2 {
            busy.clone().try_send(Say("waits")).unwrap();
        }
        let third = busy.send(Say("waits"));
        assert_eq!(busy.try_send(Say("too many")), Err(LeaderSendError::MailboxFull));
        assert_eq!(busy.send(Say("too many")).await, Err(LeaderSendError::MailboxFull));
        // Dropped, as its own documentation says.
        busy.do_send(Say("too many"));
        drop(third);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_message_whose_answer_is_dropped_is_taken_back() {
    let log = Log::default();
    on_stage(async {
        let candidacy = paused().build().unwrap().spawn();
        let worker = worker(candidacy.leadership(), &log);
        worker.wait_leading().await.unwrap();
        drop(worker.send(Say("taken back")));
        worker.send(Say("kept")).await.unwrap();
        assert_eq!(log.take(), ["started", "kept"]);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_recipient_does_what_its_address_does() {
    let log = Log::default();
    on_stage(async {
        let candidacy = paused().build().unwrap().spawn();
        let recipient: LeaderRecipient<Say> = worker(candidacy.leadership(), &log).recipient();
        assert_eq!(recipient.send(Say("too early")).await, Err(NOT_LEADER));
        recipient.leadership().leading().await.unwrap();
        recipient.send(Say("one")).await.unwrap();
        recipient.try_send(Say("two")).unwrap();
        recipient.clone().do_send(Say("three"));
        log.says("three").await;
        assert_eq!(log.take(), ["started", "one", "two", "three"]);
        // The last address: the actor goes with it.
        drop(recipient);
        log.says("dropped").await;
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn who_leads_instead_is_told() {
    let log = Log::default();
    on_stage(async {
        let clock = tenure::Clock::tokio();
        let store = tenure::MemoryStore::with_clock(clock.clone());
        let contender = |payload| {
            let builder = tenure::Elector::builder("actix", store.clone()).clock(clock.clone());
            builder.lease_duration(LEASE).payload(payload).build().unwrap()
        };
        let leader = contender("http://10.0.0.7").spawn();
        leader.leadership().leading().await.unwrap();
        let standby = contender("").spawn();
        let mut watch = standby.leadership().watch();
        watch.wait_for(|status| status.leader().is_some()).await.unwrap();
        let refused = worker(standby.leadership(), &log).send(WhichTerm).await.unwrap_err();
        let LeaderSendError::NotLeader { leader: Some(instead) } = &refused else {
            panic!("{refused:?}")
        };
        assert_eq!(instead.payload().as_str(), Some("http://10.0.0.7"));
        assert!(refused.to_string().contains("does, with fence"), "{refused}");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_dropped_address_lets_accepted_messages_be_handled_and_ends_the_actor() {
    let (log, census) = (Log::default(), Census::default());
    on_stage(async {
        let candidacy = paused().build().unwrap().spawn();
        let worker = {
            let (log, census) = (log.clone(), census.clone());
            LeaderSupervisor::new(candidacy.leadership())
                .start(move |term| Worker::new(term, &log, &census))
        };
        let term = worker.wait_leading().await.unwrap();
        worker.do_send(Say("the last word"));
        drop(worker);
        log.says("dropped").await;
        let life = ["started", "the last word", "stopping while live", "stopped", "dropped"];
        assert_eq!(log.take(), life);
        assert!(term.is_live(), "that nobody writes to an actor ends no term");
        assert_eq!(census.alive(), 0);
    })
    .await;
}

#[tokio::test]
async fn a_supervisor_whose_runtime_is_gone_is_reported() {
    let (elector, _hand) = by_hand();
    let log = Log::default();
    let candidacy = elector.build().unwrap().spawn();
    let stage = LocalSet::new();
    let worker = stage
        .run_until(async {
            let worker = worker(candidacy.leadership(), &log);
            worker.wait_leading().await.unwrap();
            worker.send(WhichTerm).await.unwrap();
            worker
        })
        .await;
    let (seen, unseen) = stage
        .run_until(async {
            let seen = worker.send(Ask::in_vain());
            log.says("asked").await;
            (seen, worker.send(Say("never")))
        })
        .await;
    drop(stage);
    assert_eq!(
        log.take(),
        ["started", "asked", "stopping while live", "stopped", "dropped", "handler dropped"]
    );
    assert_eq!(seen.await, Err(LeaderSendError::Unanswered));
    assert_eq!(unseen.await, Err(LeaderSendError::SupervisorGone));
    assert_eq!(worker.send(WhichTerm).await, Err(LeaderSendError::SupervisorGone));
}
