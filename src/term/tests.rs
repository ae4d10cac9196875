//! A term from the outside: what it admits, what it cuts, and whom it wakes.

use std::{
    future::{pending, poll_fn, ready},
    pin::pin,
    task::Waker,
};

use tokio_test::task::spawn;

use super::*;
use crate::clock::ManualClock;

mod work;

pub(super) const LASTS: Duration = Duration::from_secs(10);

/// A ready term that lasts ten seconds, the hand that moves its clock, and what wakes its elector.
pub(crate) fn term() -> (Term, ManualClock, Arc<Notify>) {
    let (clock, hand) = Clock::manual();
    let changed = Arc::new(Notify::new());
    (term_on(&clock, 1, true, &changed), hand, changed)
}

pub(crate) fn telemetry() -> Telemetry {
    let (election, identity) = ("billing".parse().unwrap(), "web-1".parse().unwrap());
    Telemetry::new(election, identity, true)
}

pub(crate) fn term_on(clock: &Clock, fence: u64, ready: bool, changed: &Arc<Notify>) -> Term {
    Term::start(TermParts {
        telemetry: telemetry(),
        fence: Fence::try_from(fence).unwrap(),
        deadline: clock.now() + LASTS,
        ready,
        clock: clock.clone(),
        changed: Arc::clone(changed),
    })
}

/// Whether the elector was woken since it was last asked.
pub(super) fn was_woken(changed: &Notify) -> bool {
    spawn(changed.notified()).poll().is_ready()
}

#[test]
fn a_term_ends_at_its_deadline_and_not_before() {
    let (term, hand, _) = term();
    hand.advance(LASTS - Duration::from_nanos(64));
    assert!(term.is_live() && term.may_finish());
    assert_eq!(term.end(), None);
    hand.advance(Duration::from_nanos(64));
    assert!(!term.is_live() && !term.may_finish());
    assert_eq!(term.end(), Some(TermEnd::Expired));
    assert_eq!(term.remaining(), Duration::ZERO);
}

#[test]
fn a_deadline_is_never_rounded_up() {
    for nanos in 0..200 {
        let (clock, hand) = Clock::manual();
        let changed = Arc::new(Notify::new());
        let term = term_on(&clock, 1, true, &changed);
        let lasts = Duration::from_nanos(1_000 + nanos);
        assert!(term.extend(clock.now() + lasts));
        assert!(term.remaining() <= lasts && term.remaining() + Duration::from_nanos(64) > lasts);
        hand.advance(lasts);
        assert!(!term.is_live(), "{nanos}");
    }
}

#[test]
fn a_suspended_machine_finds_its_term_over_at_the_first_look() {
    let (term, hand, _) = term();
    hand.suspend(LASTS);
    assert!(!term.is_live());
}

#[test]
fn an_end_is_sticky() {
    let (term, hand, _) = term();
    hand.advance(LASTS);
    assert_eq!(term.end(), Some(TermEnd::Expired));
    assert!(!term.extend(Instant::from_nanos(u64::MAX)));
    assert_eq!(term.finish(TermEnd::Lost), TermEnd::Expired);
    term.cancel(TermEnd::Resigned);
    assert_eq!(term.end(), Some(TermEnd::Expired));
    assert!(!term.may_finish());
}

#[test]
fn a_renewal_after_the_deadline_revives_nothing_though_nobody_had_looked() {
    let (term, hand, _) = term();
    hand.advance(LASTS);
    assert!(!term.extend(Instant::from_nanos(u64::MAX)));
    assert_eq!(term.end(), Some(TermEnd::Expired));
}

#[test]
fn a_renewal_replaces_the_deadline_by_an_earlier_one_too() {
    let (clock, hand) = Clock::manual();
    let term = term_on(&clock, 1, true, &Arc::default());
    assert!(term.extend(clock.now() + Duration::from_secs(30)));
    hand.advance(Duration::from_secs(20));
    assert!(term.is_live());
    assert!(term.extend(clock.now() + Duration::from_secs(1)));
    hand.advance(Duration::from_secs(1));
    assert!(!term.is_live());
}

#[test]
fn a_cancelled_term_admits_nothing_and_lets_finish_what_was_admitted() {
    let (term, hand, _) = term();
    let mut cut = spawn(term.leader_only(pending::<()>()));
    let mut finishing = spawn(term.until_ended(pending::<()>()));
    let in_flight = term.admit().unwrap();
    assert!(cut.poll().is_pending() && finishing.poll().is_pending());
    term.cancel(TermEnd::Resigned);
    term.announce();
    assert!(!term.is_live() && term.may_finish());
    assert!(term.admit().is_none());
    assert!(term.guard().is_some(), "for work that was admitted");
    assert!(cut.is_woken() && !finishing.is_woken());
    assert_eq!(cut.poll(), Poll::Ready(Err(TermEnded(TermEnd::Resigned))));
    assert!(finishing.poll().is_pending());
    assert!(term.extend(Instant::from_nanos(u64::MAX)), "it is renewed while it drains");
    hand.advance(LASTS);
    assert!(term.may_finish());
    term.cancel(TermEnd::Shutdown);
    assert_eq!(term.finish(TermEnd::Shutdown), TermEnd::Shutdown);
    term.announce();
    assert!(finishing.is_woken());
    assert_eq!(finishing.poll(), Poll::Ready(Err(TermEnded(TermEnd::Shutdown))));
    assert!(term.guard().is_none());
    drop(in_flight);
}

#[test]
fn a_late_announcement_finds_whoever_waits() {
    let (term, _, _) = term();
    let (mut cancelled, mut ended) = (spawn(term.cancelled()), spawn(term.ended()));
    assert!(cancelled.poll().is_pending() && ended.poll().is_pending());
    assert_eq!(term.finish(TermEnd::Lost), TermEnd::Lost);
    assert!(!cancelled.is_woken() && !ended.is_woken());
    term.announce();
    assert!(cancelled.is_woken() && ended.is_woken());
    assert!(cancelled.poll().is_ready());
    assert_eq!(ended.poll(), Poll::Ready(TermEnd::Lost));
    assert_eq!(spawn(term.ended()).poll(), Poll::Ready(TermEnd::Lost), "also who comes later");
    assert_eq!(ended.poll(), Poll::Ready(TermEnd::Lost), "and who asks again");
}

#[test]
fn the_task_that_polled_last_is_woken() {
    let (term, _, _) = term();
    let mut ended = Box::pin(term.ended());
    let (mut first, mut last) = (spawn(()), spawn(()));
    assert!(first.enter(|cx, _| ended.as_mut().poll(cx)).is_pending());
    assert!(last.enter(|cx, _| ended.as_mut().poll(cx)).is_pending());
    term.finish(TermEnd::Lost);
    term.announce();
    assert!(!first.is_woken() && last.is_woken());
}

#[test]
fn an_end_wake_that_is_used_for_another_term_is_registered_there() {
    let ((before, _, _), (after, _, _)) = (term(), term());
    let mut wake = pin!(EndWake::default());
    let mut task = spawn(());
    for term in [&before, &after] {
        let poll = |_: &mut Context<'_>| Poll::<()>::Pending;
        assert!(task.enter(|cx, _| term.poll_with(wake.as_mut(), cx, poll)).is_pending());
    }
    after.finish(TermEnd::Lost);
    after.announce();
    assert!(task.is_woken());
}

#[test]
fn becoming_ready_wakes_the_elector_once_and_says_nothing_about_the_lease() {
    let (clock, changed) = (Clock::manual().0, Arc::default());
    let term = term_on(&clock, 1, false, &changed);
    assert!(term.is_live() && !term.is_ready());
    term.ready();
    assert!(term.is_ready() && was_woken(&changed));
    term.ready();
    assert!(!was_woken(&changed));
    assert_eq!(term.end(), None);
}

#[test]
fn a_token_fires_at_cancelled_and_can_not_cancel_the_term() {
    let (term, _, _) = term();
    let (mine, other) = (term.cancellation_token(), term.cancellation_token());
    mine.cancel();
    assert!(term.is_live() && !other.is_cancelled());
    term.cancel(TermEnd::Resigned);
    assert!(term.cancellation_token().is_cancelled(), "also before it is announced");
    term.announce();
    assert!(other.is_cancelled() && term.may_finish());
}

#[test]
fn terms_are_equal_if_they_are_clones_and_cost_a_word() {
    let ((one, _, _), (other, _, _)) = (term(), term());
    assert_eq!(one, one.clone());
    assert_ne!(one, other);
    assert_eq!(size_of::<Option<Term>>(), size_of::<usize>());
    assert_eq!(size_of::<Option<InFlight>>(), size_of::<usize>());
    fn is_owned<T: Send + Sync + 'static>(_: T) {}
    is_owned((one.cancelled(), one.ended(), one.guard(), one.leader_only(ready(()))));
}

#[test]
fn whatever_belongs_to_a_term_shows_which_one_it_is() {
    let (term, _, _) = term();
    let of_term = format!("{term:?}");
    for part in ["billing", "web-1", "fence: ", "remaining: 10s", "end: None"] {
        assert!(of_term.contains(part), "{of_term} lacks {part}");
    }
    let (guard, in_flight) = (term.guard().unwrap(), term.admit().unwrap());
    assert_eq!(format!("{guard:?}"), format!("TermGuard({of_term})"));
    assert_eq!(format!("{in_flight:?}"), format!("InFlight({of_term})"));
    let work = format!("{:?}", term.until_ended(ready(())));
    assert_eq!(work, format!("LeaderOnly {{ term: Some({of_term}), until: Ended, .. }}"));
    assert_eq!(format!("{:?}", Overrun::call(|_| {})), "Call");
}

#[tokio::test]
async fn an_exhausted_budget_does_not_hide_the_end() {
    let (term, hand, _) = term();
    let mut ended = Box::pin(term.ended());
    let mut work = Box::pin(term.leader_only(pending::<()>()));
    let mut timer = Box::pin(tokio::time::sleep(Duration::ZERO));
    poll_fn(|cx| {
        assert!(ended.as_mut().poll(cx).is_pending() && work.as_mut().poll(cx).is_pending());
        while pin!(tokio::task::consume_budget()).poll(cx).is_ready() {}
        assert!(timer.as_mut().poll(cx).is_pending(), "a timer is fooled");
        hand.advance(LASTS);
        assert_eq!(ended.as_mut().poll(cx), Poll::Ready(TermEnd::Expired));
        assert_eq!(work.as_mut().poll(cx), Poll::Ready(Err(TermEnded(TermEnd::Expired))));
        Poll::Ready(())
    })
    .await;
}

#[tokio::test]
async fn spawned_work_is_cut_at_cancelled() {
    let (term, _, _) = term();
    let task = term.spawn(pending::<()>());
    let done = term.spawn(async { 7 });
    assert_eq!(done.await.unwrap(), Ok(7));
    term.cancel(TermEnd::Shutdown);
    term.announce();
    assert_eq!(task.await.unwrap(), Err(TermEnded(TermEnd::Shutdown)));
}

#[test]
fn blocking_code_takes_its_guard_when_it_starts_and_not_while_it_is_queued() {
    let runtime =
        tokio::runtime::Builder::new_current_thread().max_blocking_threads(1).build().unwrap();
    let (term, _, _) = term();
    let (began, begun) = std::sync::mpsc::channel();
    let (go, gate) = std::sync::mpsc::channel::<()>();
    runtime.block_on(async {
        let running = term.spawn_blocking(move |guard| {
            began.send(guard.term().guards()).unwrap();
            gate.recv().unwrap();
            guard.term().may_finish()
        });
        assert_eq!(begun.recv(), Ok(1));
        let queued = term.spawn_blocking(|_| unreachable!("the term is over"));
        assert_eq!(term.guards(), 1);
        term.finish(TermEnd::Lost);
        go.send(()).unwrap();
        assert_eq!(running.await.unwrap(), Ok(false));
        assert_eq!(queued.await.unwrap(), Err::<(), _>(TermEnded(TermEnd::Lost)));
    });
    assert_eq!(term.guards(), 0);
}

#[test]
fn a_waker_is_not_registered_before_the_work_pends() {
    let (term, _, _) = term();
    let mut cx = Context::from_waker(Waker::noop());
    let mut wake = pin!(EndWake::default());
    let in_flight = term.admit().unwrap();
    let done = in_flight.poll_with(wake.as_mut(), &mut cx, |_| Poll::Ready(7));
    assert_eq!(done, Poll::Ready(Ok(7)));
    assert_eq!(format!("{wake:?}"), "EndWake { registered: false }");
}
