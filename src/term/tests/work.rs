//! Work under a term: when it is polled, and what counts it.

use std::{
    cell::Cell,
    future::{pending, ready},
    panic::{AssertUnwindSafe, catch_unwind},
    pin::Pin,
    rc::Rc,
};

use super::*;

/// Counts how often it is polled, and says when it is dropped.
struct Work {
    polls: Rc<Cell<usize>>,
    dropped: Rc<Cell<bool>>,
}

fn work() -> (Work, Rc<Cell<usize>>, Rc<Cell<bool>>) {
    let (polls, dropped) = (Rc::default(), Rc::default());
    (Work { polls: Rc::clone(&polls), dropped: Rc::clone(&dropped) }, polls, dropped)
}

impl Future for Work {
    type Output = ();

    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        self.polls.set(self.polls.get() + 1);
        Poll::Pending
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        self.dropped.set(true);
    }
}

#[test]
fn parked_work_is_inert_after_the_end_and_holds_no_guard() {
    let (term, hand, _) = term();
    let (work, polls, dropped) = work();
    let mut parked = spawn(term.until_ended(work));
    assert!(parked.poll().is_pending());
    assert_eq!((term.guards(), term.in_flight()), (0, 1));
    hand.advance(LASTS);
    assert_eq!((term.guards(), term.in_flight()), (0, 1));
    assert!(!dropped.get());
    assert_eq!(parked.poll(), Poll::Ready(Err(TermEnded(TermEnd::Expired))));
    assert!(dropped.get(), "in the same poll");
    assert_eq!((term.guards(), term.in_flight()), (0, 0));
    assert_eq!(polls.get(), 1);
}

#[test]
fn work_is_never_polled_at_or_past_the_deadline() {
    let (term, hand, _) = term();
    let (work, polls, _) = work();
    let mut task = spawn(term.until_ended(work));
    for _ in 0..79 {
        hand.suspend(LASTS / 80);
        assert!(task.poll().is_pending());
    }
    hand.suspend(LASTS / 80);
    assert_eq!(task.poll(), Poll::Ready(Err(TermEnded(TermEnd::Expired))));
    assert_eq!(polls.get(), 79);
    let mut late = spawn(term.leader_only(async { unreachable!("the term is over") }));
    assert_eq!(late.poll(), Poll::Ready(Err(TermEnded(TermEnd::Expired))));
}

#[test]
fn work_is_guarded_while_it_is_polled_and_counted_from_its_first_poll_on() {
    let (term, _, _) = term();
    let watched = term.clone();
    let mut task = spawn(term.leader_only(async move { (watched.guards(), watched.in_flight()) }));
    assert_eq!((term.guards(), term.in_flight()), (0, 0));
    assert_eq!(task.poll(), Poll::Ready(Ok((1, 1))));
    assert_eq!((term.guards(), term.in_flight()), (0, 0));
    let mut task = spawn(term.leader_only(pending::<()>()));
    assert!(task.poll().is_pending());
    drop(task);
    assert_eq!((term.guards(), term.in_flight()), (0, 0));
}

#[test]
fn an_actor_is_polled_under_a_guard_and_not_counted() {
    let (term, hand, _) = term();
    let mut wake = pin!(EndWake::default());
    let mut task = spawn(());
    let poll = |wake: Pin<&mut EndWake>, cx: &mut Context<'_>| {
        term.poll_with(wake, cx, |_| {
            assert_eq!((term.guards(), term.in_flight()), (1, 0));
            Poll::<()>::Pending
        })
    };
    assert!(task.enter(|cx, _| poll(wake.as_mut(), cx)).is_pending());
    assert_eq!((term.guards(), term.in_flight()), (0, 0));
    hand.advance(LASTS);
    let ended = Poll::Ready(Err(TermEnded(TermEnd::Expired)));
    assert_eq!(task.enter(|cx, _| poll(wake.as_mut(), cx)), ended);
}

#[test]
fn a_panic_passes_through_and_gives_the_guard_back() {
    let (term, _, _) = term();
    let mut task = spawn(term.leader_only(async { panic!("of the work") }));
    let panic = catch_unwind(AssertUnwindSafe(|| {
        let _: Poll<Result<(), _>> = task.poll();
    }));
    assert_eq!(panic.unwrap_err().downcast_ref(), Some(&"of the work"));
    assert_eq!(term.guards(), 0);
    drop(task);
    assert_eq!(term.in_flight(), 0);
}

#[test]
fn work_wakes_the_elector_only_when_it_is_waited_for() {
    let (term, _, changed) = term();
    drop((term.guard(), term.admit()));
    assert!(!was_woken(&changed));
    let (guard, in_flight) = (term.guard().unwrap(), term.admit());
    term.cancel(TermEnd::Resigned);
    let clone = guard.clone();
    drop(guard);
    assert!(!was_woken(&changed), "there is another guard");
    assert_eq!(term.guards(), 1);
    drop(clone);
    assert!(was_woken(&changed));
    drop(in_flight);
    assert!(was_woken(&changed));
}

#[test]
fn work_needs_neither_a_runtime_nor_to_be_send() {
    let (term, _, _) = term();
    let shared = Rc::new(7);
    let done = futures::executor::block_on(term.leader_only(async move { *shared }));
    assert_eq!(done, Ok(7));
    assert_eq!(futures::executor::block_on(term.until_ended(ready(8))), Ok(8));
}
