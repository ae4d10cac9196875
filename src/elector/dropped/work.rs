//! Work under a term, and the elector itself, dropped after each of their polls.

use std::{
    pin::pin,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use futures::future::{BoxFuture, select};
use tokio::time::sleep;

use super::{MOMENT, at_every_poll, cut, hands_over, lease, within};
use crate::{
    Leadership, Phase, Term, TermEnd,
    elector::tests::{Fleet, LEASE},
    testing::FlakyStore,
};

/// How much work there is that was begun and not dropped.
#[derive(Clone, Default)]
struct Running(Arc<AtomicUsize>);

impl Running {
    fn count(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }

    /// Work under a guard, for so many moments.
    async fn work(self, term: Term, moments: usize) {
        struct Done(Running);
        impl Drop for Done {
            fn drop(&mut self) {
                self.0.0.fetch_sub(1, Ordering::Relaxed);
            }
        }
        self.0.fetch_add(1, Ordering::Relaxed);
        let _done = Done(self);
        let _guard = term.guard();
        for _ in 0..moments {
            sleep(MOMENT).await;
        }
    }

    #[track_caller]
    fn is_gone_from(&self, term: &Term) {
        assert_eq!((self.count(), term.in_flight(), term.guards()), (0, 0, 0));
    }
}

#[test]
fn work_of_each_term_is_gone_with_the_future_and_the_next_future_goes_on() {
    at_every_poll(12, async |most| {
        let fleet = Fleet::new();
        let candidacy = Arc::new(fleet.candidate());
        let leadership = candidacy.leadership();
        let (leads, stops) = (leadership.clone(), Arc::clone(&candidacy));
        let life = tokio::spawn(async move {
            for _ in 0..2 {
                leads.leading().await.unwrap();
                sleep(MOMENT * 4 + MOMENT / 2).await;
                leads.resign().await;
            }
            stops.shutdown().await.unwrap();
        });
        let (running, of) = (Running::default(), Mutex::new(None));
        let work = |term: Term| {
            *of.lock().unwrap() = Some(term.clone());
            running.clone().work(term, usize::MAX)
        };
        let done = cut(leadership.each_term(work), most).await;
        if let Some(term) = &*of.lock().unwrap() {
            running.is_gone_from(term);
        }
        life.abort();
        if done.is_none() {
            let next = pin!(leadership.each_term(work));
            let begins = async {
                while running.count() == 0 {
                    sleep(MOMENT / 10).await;
                }
            };
            within(LEASE, select(next, pin!(begins))).await;
        }
        hands_over(&fleet, &candidacy).await;
        done.is_some()
    });
}

type Begin = fn(Leadership, Term, Running) -> BoxFuture<'static, bool>;

/// The ways to run work under a term; each says whether the work came to its end.
const WAYS: [(&str, Begin); 5] = [
    ("Leadership::leader_only", |leadership, term, running| {
        Box::pin(async move { leadership.leader_only(running.work(term, 9)).await.is_ok() })
    }),
    ("Leadership::leader_only_with", |leadership, _, running| {
        Box::pin(
            async move { leadership.leader_only_with(|term| running.work(term, 9)).await.is_ok() },
        )
    }),
    ("Term::leader_only", |_, term, running| {
        Box::pin(async move { term.leader_only(running.work(term.clone(), 9)).await.is_ok() })
    }),
    ("Term::until_ended", |_, term, running| {
        Box::pin(async move { term.until_ended(running.work(term.clone(), 9)).await.is_ok() })
    }),
    ("Term::spawn", |_, term, running| {
        Box::pin(async move {
            let work = term.spawn(running.work(term.clone(), 9));
            // Whoever drops the handle leaves the work to its term.
            let _abort = AbortOnDrop(work.abort_handle());
            work.await.unwrap().is_ok()
        })
    }),
];

struct AbortOnDrop(tokio::task::AbortHandle);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

#[test]
fn work_that_was_dropped_is_not_waited_for() {
    for (way, begin) in WAYS {
        println!("{way}");
        at_every_poll(if way == "Term::spawn" { 2 } else { 10 }, async |most| {
            let fleet = Fleet::new();
            let candidacy = fleet.candidate();
            let leadership = candidacy.leadership();
            let term = leadership.leading().await.unwrap();
            let running = Running::default();
            let done = cut(begin(leadership, term.clone(), running.clone()), most).await;
            tokio::task::yield_now().await; // what was aborted is dropped by its runtime
            running.is_gone_from(&term);
            hands_over(&fleet, &candidacy).await;
            done == Some(true)
        });
    }
}

#[test]
fn a_hand_over_that_waits_for_work_goes_on_when_the_work_is_dropped() {
    at_every_poll(10, async |most| {
        let fleet = Fleet::new();
        let candidacy = fleet.candidate();
        let term = candidacy.leadership().leading().await.unwrap();
        let running = Running::default();
        let work = term.until_ended(running.clone().work(term.clone(), 9));
        let resigned = tokio::spawn(candidacy.resign());
        let done = cut(work, most).await;
        running.is_gone_from(&term);
        within(MOMENT, resigned).await.unwrap();
        assert_eq!(term.end(), Some(TermEnd::Resigned));
        hands_over(&fleet, &candidacy).await;
        done.is_some()
    });
}

#[test]
fn an_elector_that_was_dropped_ends_its_term_at_once_and_leaves_the_lease_to_run_out() {
    let asked_after = LEASE * 4;
    at_every_poll(25, async |most| {
        let fleet = Fleet::new();
        let begun = fleet.clock.now();
        let store = FlakyStore::new(fleet.store.clone());
        store.delay(MOMENT / 5);
        let elector = fleet.builder_on(store).build().unwrap();
        let leadership = elector.leadership();
        let (running, of) = (Running::default(), Arc::new(Mutex::new(None::<Term>)));
        let worker = tokio::spawn({
            let (leadership, running, of) = (leadership.clone(), running.clone(), of.clone());
            async move {
                let work = |term: Term| {
                    *of.lock().unwrap() = Some(term.clone());
                    running.clone().work(term, usize::MAX)
                };
                leadership.each_term(work).await;
            }
        });
        let done = cut(elector.run(sleep(asked_after)), most).await;
        assert_eq!(leadership.status().phase(), Phase::Stopped);
        assert!(!leadership.is_leader() && leadership.term().is_none());
        let term = of.lock().unwrap().clone();
        assert!(term.as_ref().is_none_or(|term| term.end() == Some(TermEnd::Shutdown)));
        within(MOMENT, worker).await.unwrap();
        if let Some(term) = &term {
            running.is_gone_from(term);
        }
        let left = lease(&fleet).await;
        let was_asked = fleet.clock.now().saturating_since(begun) >= asked_after;
        assert!(was_asked || left.as_ref().is_none_or(|lease| !lease.released));
        let waits = left.filter(|lease| !lease.released).and_then(|lease| lease.ttl);
        let (other, before) = (fleet.candidate(), fleet.clock.now());
        let next = within(LEASE + MOMENT, other.leadership().leading()).await.unwrap();
        assert!(fleet.clock.now().saturating_since(before) >= waits.unwrap_or_default());
        assert!(term.is_none_or(|term| term.fence() < next.fence()));
        other.shutdown().await.unwrap();
        done.is_some()
    });
}
