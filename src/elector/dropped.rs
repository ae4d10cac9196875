//! Everything that can be awaited, dropped after each of its polls: nothing is lost with it, nothing is left of it, and the
//! election goes on. Here are the waits and the requests; [`work`] is about work, and about the elector itself.

mod work;

use std::{future::poll_fn, pin::pin, sync::Mutex, task::Poll, time::Duration};

use futures::future::BoxFuture;
use tokio::{runtime::Builder, time::sleep};

use super::{
    tests::{Fleet, LEASE},
    *,
};
use crate::{
    Fence, Phase, Status, Term, TermEnd, Transition,
    lease::Lease,
    testing::{FlakyStore, Operation},
};

const MOMENT: Duration = Duration::from_millis(100);

/// Polls a future when it is woken, and drops it after so many polls; what it gave, if it was done by then.
async fn cut<F: Future>(work: F, most: usize) -> Option<F::Output> {
    let mut work = pin!(work);
    let mut left = most;
    poll_fn(|cx| {
        if left == 0 {
            return Poll::Ready(None);
        }
        left -= 1;
        match work.as_mut().poll(cx) {
            Poll::Ready(done) => Poll::Ready(Some(done)),
            Poll::Pending if left == 0 => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        }
    })
    .await
}

/// Plays a scene in which a future is dropped before its first poll, after its first one, after its second one, and so on,
/// until the scene says that it was done; each on a runtime and a clock of its own. Returns at how many points it was
/// dropped, and fails below the least number of them, since then there was little to see.
fn at_every_poll(least: usize, scene: impl AsyncFn(usize) -> bool) {
    let is_done = |most: &usize| {
        let runtime = Builder::new_current_thread().enable_time().start_paused(true).build();
        let runtime = runtime.unwrap();
        runtime.block_on(scene(*most))
    };
    let cuts = (0..1_000).find(is_done).expect("it is done at some time");
    println!("dropped at {cuts} points");
    assert!(cuts >= least, "dropped at {cuts} points, and not at {least}");
}

/// A wait that was not forgotten ends in time.
async fn within<F: Future>(limit: Duration, wait: F) -> F::Output {
    match select(pin!(wait), pin!(sleep(limit))).await {
        Either::Left((done, _)) => done,
        Either::Right(_) => panic!("still waiting after {limit:?}"),
    }
}

async fn lease(fleet: &Fleet) -> Option<Lease> {
    fleet.store.leaders().await.unwrap().pop().map(|(_, lease)| lease)
}

/// There is nothing that a hand-over has to wait for: the candidate stops at once, and another one leads.
async fn hands_over(fleet: &Fleet, candidacy: &Candidacy) {
    within(MOMENT, candidacy.shutdown()).await.unwrap();
    assert!(lease(fleet).await.is_none_or(|lease| lease.released), "it was not given back");
    let other = fleet.candidate();
    within(MOMENT, other.leadership().leading()).await.unwrap();
    other.shutdown().await.unwrap();
}

/// Leads for a moment and hands over, again and again.
async fn hand_over_forever(leadership: Leadership) {
    while let Ok(term) = leadership.leading().await {
        sleep(MOMENT).await;
        assert!(term.is_live());
        leadership.resign().await;
    }
}

fn numbers(terms: &[Term]) -> Vec<i64> {
    terms.iter().map(|term| term.fence().into()).collect()
}

#[test]
fn a_wait_to_lead_takes_no_term_with_it() {
    at_every_poll(5, async |most| {
        let fleet = Fleet::new();
        let first = fleet.candidate();
        first.leadership().leading().await.unwrap();
        let store = FlakyStore::new(fleet.store.clone());
        store.fail_next(Operation::Inspect, 2);
        let second = fleet.builder_on(store).build().unwrap().spawn();
        let leadership = second.leadership();
        tokio::spawn(async move {
            sleep(LEASE).await;
            first.shutdown().await.unwrap();
        });
        let given = cut(leadership.leading(), most).await.map(Result::unwrap);
        let term = within(LEASE * 2, leadership.leading()).await.unwrap();
        assert!(term.is_live() && given.as_ref().is_none_or(|given| *given == term));
        hands_over(&fleet, &second).await;
        given.is_some()
    });
}

/// What makes one status another one.
fn news(status: &Status) -> (Phase, Option<Fence>, Option<Fence>, bool) {
    (status.phase(), status.fence(), status.leader_fence(), status.last_error().is_some())
}

#[test]
fn a_change_is_not_seen_by_a_wait_that_was_dropped() {
    at_every_poll(8, async |most| {
        let fleet = Fleet::new();
        let candidacy = fleet.candidate();
        let leadership = candidacy.leadership();
        let mut watch = leadership.watch();
        let life = tokio::spawn(hand_over_forever(leadership.clone()));
        let seen = Mutex::new(news(&watch.borrow()));
        let done = cut(
            async {
                for _ in 0..12 {
                    watch.changed().await.unwrap();
                    *seen.lock().unwrap() = news(&watch.borrow());
                }
            },
            most,
        )
        .await;
        if *seen.lock().unwrap() != news(&watch.borrow()) {
            watch.changed().now_or_never().expect("it was not seen yet").unwrap();
        }
        // And the next one comes.
        within(LEASE, watch.changed()).await.unwrap();
        life.abort();
        hands_over(&fleet, &candidacy).await;
        done.is_some()
    });
}

#[test]
fn a_status_that_was_waited_for_is_found_by_the_next_wait() {
    at_every_poll(5, async |most| {
        let fleet = Fleet::new();
        let candidacy = fleet.candidate();
        let leadership = candidacy.leadership();
        let life = tokio::spawn(hand_over_forever(leadership.clone()));
        let mut watch = leadership.watch();
        let third = |status: &Status| status.fence().map(i64::from) == Some(3);
        let done = cut(watch.wait_for(third), most).await;
        if done.is_none() {
            assert!(within(LEASE * 3, watch.wait_for(third)).await.unwrap().is_leader());
        }
        life.abort();
        hands_over(&fleet, &candidacy).await;
        done.is_some()
    });
}

#[test]
fn a_wait_for_a_term_takes_none_with_it() {
    at_every_poll(5, async |most| {
        let fleet = Fleet::new();
        let candidacy = fleet.candidate();
        let leadership = candidacy.leadership();
        let life = tokio::spawn(hand_over_forever(leadership.clone()));
        let mut terms = leadership.terms();
        let mut given = Vec::new();
        let all = async {
            while given.len() < 3 {
                given.extend(terms.next().await);
            }
        };
        let done = cut(all, most).await;
        while given.len() < 3 {
            given.extend(within(LEASE * 2, terms.next()).await);
        }
        assert_eq!(numbers(&given), [1, 2, 3]);
        life.abort();
        hands_over(&fleet, &candidacy).await;
        done.is_some()
    });
}

#[test]
fn a_wait_for_a_transition_takes_none_with_it() {
    const MANY: usize = 9;
    at_every_poll(6, async |most| {
        let fleet = Fleet::new();
        let candidacy = fleet.candidate();
        let leadership = candidacy.leadership();
        let life = tokio::spawn(hand_over_forever(leadership.clone()));
        let mut undisturbed = leadership.transitions();
        let all = tokio::spawn(async move {
            let mut all = Vec::new();
            while all.len() < MANY {
                all.extend(undisturbed.next().await);
            }
            all
        });
        let mut transitions = leadership.transitions();
        let mut given = Vec::new();
        let read = async {
            while given.len() < MANY {
                given.extend(transitions.next().await);
            }
        };
        let done = cut(read, most).await;
        while given.len() < MANY {
            given.extend(within(LEASE * 2, transitions.next()).await);
        }
        assert_eq!(given, all.await.unwrap());
        assert!(matches!(given[0], Transition::Started(_)));
        life.abort();
        hands_over(&fleet, &candidacy).await;
        done.is_some()
    });
}

#[test]
fn a_resignation_is_carried_out_without_anybody_waiting_for_it() {
    at_every_poll(3, async |most| {
        let fleet = Fleet::new();
        let candidacy = fleet.candidate();
        let term = candidacy.leadership().leading().await.unwrap();
        let work = tokio::spawn(term.until_ended(sleep(MOMENT * 20)));
        tokio::task::yield_now().await;
        let done = cut(candidacy.resign(), most).await;
        assert_eq!(within(MOMENT * 21, term.ended()).await, TermEnd::Resigned);
        work.await.unwrap().expect("it had the time");
        let other = fleet.candidate();
        let next = within(MOMENT, other.leadership().leading()).await.unwrap();
        assert!(next.fence() > term.fence());
        other.shutdown().await.unwrap();
        // The pause is over at some time, and then it takes part again.
        within(LEASE, candidacy.leadership().leading()).await.unwrap();
        hands_over(&fleet, &candidacy).await;
        done.is_some()
    });
}

#[test]
fn a_shutdown_is_carried_out_without_anybody_waiting_for_it() {
    type ShutDown = fn(&Candidacy) -> BoxFuture<'static, Result<(), StopError>>;
    let ways: [ShutDown; 2] = [
        |candidacy| candidacy.shutdown_within(MOMENT * 30).boxed(),
        |candidacy| candidacy.shutdown().boxed(),
    ];
    for shut_down in ways {
        at_every_poll(2, async |most| {
            let fleet = Fleet::new();
            let candidacy = fleet.candidate();
            let term = candidacy.leadership().leading().await.unwrap();
            let work = tokio::spawn(term.until_ended(sleep(MOMENT * 20)));
            tokio::task::yield_now().await;
            let done = cut(shut_down(&candidacy), most).await;
            assert_eq!(within(MOMENT * 21, term.ended()).await, TermEnd::Shutdown);
            work.await.unwrap().expect("it had the time");
            within(MOMENT, candidacy.stopped()).await.unwrap();
            assert_eq!(candidacy.leadership().status().phase(), Phase::Stopped);
            hands_over(&fleet, &candidacy).await;
            done.is_some()
        });
    }
}
