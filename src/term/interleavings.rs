//! A few threads meet in a term, in all ways in which they can: explored by loom, with `cargo xtask interleavings`.

use std::{
    future::pending,
    pin::pin,
    task::{Context, Waker},
};

use loom::{
    future::block_on,
    sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed},
    thread,
};

use super::{
    tests::{LASTS, term},
    *,
};
use crate::{clock::ManualClock, sync::explore};

/// What the leader alone may write to. All accesses are relaxed: whoever writes was told, and not by this, that the lease is
/// still here, and whoever hands it over that the writes are done.
#[derive(Default)]
pub(crate) struct Lease {
    is_handed_over: AtomicBool,
    writes: AtomicUsize,
}

impl Lease {
    pub(crate) fn write(&self) {
        assert!(!self.is_handed_over.load(Relaxed), "a write after the lease was handed over");
        self.writes.fetch_add(1, Relaxed);
    }

    /// Somebody else leads from here on. Returns how many writes he finds.
    pub(crate) fn hand_over(&self) -> usize {
        self.is_handed_over.store(true, Relaxed);
        self.writes.load(Relaxed)
    }

    pub(crate) fn writes(&self) -> usize {
        self.writes.load(Relaxed)
    }
}

/// A term, and what its elector has of it.
#[derive(Clone)]
struct Held {
    term: Term,
    lease: Arc<Lease>,
    hand: ManualClock,
    changed: Arc<Notify>,
}

fn held() -> Held {
    let (term, hand, changed) = term();
    Held { term, lease: Arc::default(), hand, changed }
}

impl Held {
    /// On a thread of its own.
    fn work(&self, work: impl FnOnce(&Self) + 'static) -> thread::JoinHandle<()> {
        let held = self.clone();
        thread::spawn(move || work(&held))
    }

    /// As an elector does, which sleeps until it is told.
    fn wait_until(&self, done: impl Fn(&Term) -> bool) {
        wait_until(&self.changed, || done(&self.term));
    }

    fn hand_over_voluntarily(&self) -> usize {
        self.term.cancel(TermEnd::Resigned);
        self.term.announce();
        self.wait_until(|term| term.in_flight() == 0 && term.guards() == 0);
        self.end(TermEnd::Resigned);
        self.lease.hand_over()
    }

    /// Somebody else has the lease. Whoever is told to stop is waited for all the same: that is what a guard is.
    fn hand_over_at_once(&self) -> usize {
        self.end(TermEnd::Lost);
        self.wait_until(|term| term.guards() == 0);
        self.lease.hand_over()
    }

    fn hand_over_at_the_deadline(&self) -> usize {
        self.hand.suspend(LASTS);
        assert_eq!(self.term.end(), Some(TermEnd::Expired));
        self.term.announce();
        self.wait_until(|term| term.guards() == 0);
        self.lease.hand_over()
    }

    fn end(&self, reason: TermEnd) {
        self.term.finish(reason);
        self.term.announce();
    }
}

pub(crate) fn wait_until(changed: &Notify, done: impl Fn() -> bool) {
    while !done() {
        block_on(changed.notified());
    }
}

/// All that was written was seen by who came next.
fn explore_hand_over(
    preemptions: Option<usize>,
    workers: usize,
    work: fn(&Held),
    hand_over: fn(&Held) -> usize,
) {
    explore(preemptions, move || {
        let held = held();
        let workers: Vec<_> = (0..workers).map(|_| held.work(work)).collect();
        let seen = hand_over(&held);
        workers.into_iter().for_each(|worker| worker.join().unwrap());
        assert_eq!(seen, held.lease.writes());
    });
}

fn guarded(held: &Held) {
    if let Some(guard) = held.term.guard() {
        held.lease.write();
        drop(guard);
    }
}

fn admitted(held: &Held) {
    if let Some(in_flight) = held.term.admit() {
        let mut wake = pin!(EndWake::default());
        let write = |_: &mut Context<'_>| {
            held.lease.write();
            Poll::Ready(())
        };
        let _ = in_flight.poll_with(wake.as_mut(), &mut Context::from_waker(Waker::noop()), write);
    }
}

fn begun(held: &Held) {
    if let Ok((in_flight, guard)) = InFlight::begin(&held.term) {
        held.lease.write();
        drop(guard);
        drop(in_flight);
    }
}

fn leader_only(held: &Held) {
    let _ = block_on(held.term.leader_only(async { held.lease.write() }));
}

#[test]
fn a_lease_is_not_handed_over_while_a_guard_is_held() {
    explore_hand_over(None, 1, guarded, Held::hand_over_at_once);
}

#[test]
fn a_lease_is_not_handed_over_while_one_of_two_guards_is_held() {
    explore_hand_over(Some(3), 2, guarded, Held::hand_over_at_once);
}

#[test]
fn a_lease_is_not_handed_over_at_the_deadline_while_a_guard_is_held() {
    explore_hand_over(None, 1, guarded, Held::hand_over_at_the_deadline);
}

#[test]
fn admitted_work_is_waited_for() {
    explore_hand_over(None, 1, admitted, Held::hand_over_voluntarily);
}

#[test]
fn a_poll_of_admitted_work_is_waited_for_also_when_nobody_drains() {
    explore_hand_over(None, 1, admitted, Held::hand_over_at_once);
}

#[test]
fn work_that_begins_where_it_is_admitted_is_waited_for() {
    explore_hand_over(None, 1, begun, Held::hand_over_voluntarily);
}

#[test]
fn the_first_poll_of_leader_only_work_is_refused_or_waited_for() {
    explore_hand_over(None, 1, leader_only, Held::hand_over_voluntarily);
    explore_hand_over(None, 1, leader_only, Held::hand_over_at_once);
    explore_hand_over(None, 1, leader_only, Held::hand_over_at_the_deadline);
}

/// What is cut writes once more when it is dropped.
fn cut(held: &Held) {
    struct WritesLast<'a>(&'a Lease);

    impl Drop for WritesLast<'_> {
        fn drop(&mut self) {
            self.0.write();
        }
    }

    let _ = block_on(held.term.leader_only(async {
        let _last = WritesLast(&held.lease);
        pending::<()>().await;
    }));
}

#[test]
fn what_is_cut_is_dropped_before_the_lease_is_handed_over() {
    explore_hand_over(Some(3), 1, cut, Held::hand_over_voluntarily);
}

/// Work in flight is seen or refused, whatever guards say.
#[test]
fn work_is_in_flight_when_its_term_was_cancelled_or_it_is_refused() {
    explore(None, || {
        let held = held();
        let worker = held.work(|held| {
            if let Some(in_flight) = held.term.admit() {
                held.lease.write();
                drop(in_flight);
            }
        });
        held.term.cancel(TermEnd::Shutdown);
        held.wait_until(|term| term.in_flight() == 0);
        let seen = held.lease.hand_over();
        worker.join().unwrap();
        assert_eq!(seen, held.lease.writes());
    });
}

#[test]
fn an_end_that_was_seen_is_not_taken_back_by_a_renewal() {
    explore(None, || {
        let held = held();
        let user = held.clone();
        // Time passes on the thread of who looks: loom overlooks orders in which a third one has to come in between.
        let user = thread::spawn(move || {
            user.hand.suspend(LASTS);
            user.term.end()
        });
        let is_extended = held.term.extend(held.term.cell().clock().now() + 2 * LASTS);
        let seen = user.join().unwrap();
        assert!(!(is_extended && seen.is_some()), "extended, and yet {seen:?}");
        assert_eq!(held.term.may_finish(), is_extended);
    });
}

#[test]
fn a_renewal_is_not_lost_on_who_looks_meanwhile() {
    explore(None, || {
        let held = held();
        let user = held.work(|held| {
            let _ = held.term.end();
            let _ = held.term.guard();
        });
        assert!(held.term.extend(held.term.cell().clock().now() + 2 * LASTS));
        held.hand.suspend(LASTS);
        assert!(held.term.is_live());
        user.join().unwrap();
        assert!(held.term.is_live());
    });
}

#[test]
fn everybody_is_told_the_same_reason() {
    explore(None, || {
        let held = held();
        let watchdog = held.clone();
        let watchdog = thread::spawn(move || {
            watchdog.hand.suspend(LASTS);
            watchdog.term.end()
        });
        held.term.cancel(TermEnd::Resigned);
        let told = held.term.finish(TermEnd::Shutdown);
        assert_eq!(watchdog.join().unwrap(), Some(told));
        assert_eq!(held.term.end(), Some(told));
    });
}

/// Whoever waits for ever is found by loom.
#[test]
fn who_waits_for_the_end_is_woken() {
    explore(None, || {
        let held = held();
        let waiting = held.work(|held| assert_eq!(block_on(held.term.ended()), TermEnd::Lost));
        held.end(TermEnd::Lost);
        waiting.join().unwrap();
    });
}

#[test]
fn who_waits_for_the_cancellation_is_woken() {
    explore(None, || {
        let held = held();
        let waiting = held.work(|held| block_on(held.term.cancelled()));
        held.term.cancel(TermEnd::Resigned);
        held.term.announce();
        waiting.join().unwrap();
    });
}

#[test]
fn work_that_pends_is_woken_to_be_cut() {
    explore(None, || {
        let held = held();
        let waiting = held.work(|held| {
            let cut = block_on(held.term.leader_only(pending::<()>()));
            assert_eq!(cut.unwrap_err().reason(), TermEnd::Resigned);
        });
        held.term.cancel(TermEnd::Resigned);
        held.term.announce();
        waiting.join().unwrap();
    });
}

#[test]
fn who_waits_in_another_task_than_before_is_woken() {
    explore(None, || {
        let held = held();
        let waiting = held.work(|held| {
            let mut ended = pin!(held.term.ended());
            let _ = ended.as_mut().poll(&mut Context::from_waker(Waker::noop()));
            block_on(ended);
        });
        held.end(TermEnd::Lost);
        waiting.join().unwrap();
    });
}

#[test]
fn a_token_fires_also_if_it_was_asked_for_meanwhile() {
    explore(None, || {
        let held = held();
        let user = held.clone();
        let user = thread::spawn(move || user.term.cancellation_token());
        held.term.cancel(TermEnd::Resigned);
        held.term.announce();
        assert!(user.join().unwrap().is_cancelled());
    });
}

#[test]
fn an_elector_is_told_when_its_term_becomes_ready() {
    explore(None, || {
        let clock = Clock::manual().0;
        let changed = Arc::new(Notify::new());
        let term = tests::term_on(&clock, 1, false, &changed);
        let user = term.clone();
        let user = thread::spawn(move || user.ready());
        wait_until(&changed, || term.is_ready());
        user.join().unwrap();
    });
}
