//! The watchdog on its thread, and as a task where time is a test's.

use std::{
    future::Future,
    pin::pin,
    sync::{
        atomic::{AtomicUsize, Ordering},
        mpsc::{Receiver, channel},
    },
    task::{Context, Wake, Waker},
};

use futures::FutureExt;

use super::*;
use crate::{
    lease::TermEnd,
    term::{
        Moment,
        tests::{term, term_on},
    },
};

const SOON: Duration = Duration::from_millis(30);
const LIMIT: Duration = Duration::from_secs(20);
const MARGIN: Duration = Duration::from_millis(20);

fn real_term(lasts: Duration) -> (Term, Instant) {
    let clock = Clock::system();
    let term = term_on(&clock, 1, true, &Arc::default());
    let deadline = clock.now() + lasts;
    assert!(term.extend(deadline));
    (term, deadline)
}

fn orders(publish: impl Fn() + Send + Sync + 'static) -> Orders {
    Orders {
        publish: Box::new(publish),
        announce: Box::new(Term::announce),
        margin: MARGIN,
        overrun: Overrun::Report,
        overran: Box::new(|_| {}),
    }
}

/// Says how many guards are held beyond the lease, and on which thread the last act happens.
fn overrun(term: &Term) -> (Watch, Receiver<(usize, String)>) {
    let (act, acted) = channel();
    let said = Arc::new(AtomicUsize::new(0));
    let says = said.clone();
    let last_act = move |overran: &Overran| {
        assert_eq!(said.load(Ordering::SeqCst), overran.guards, "it is said first");
        let thread = thread::current().name().unwrap_or_default().to_owned();
        act.send((overran.guards, thread)).unwrap();
    };
    let orders = Orders {
        overran: Box::new(move |guards| says.store(guards, Ordering::SeqCst)),
        overrun: Overrun::call(last_act),
        ..orders(|| {})
    };
    (watch(term, orders).unwrap(), acted)
}

fn watched(term: &Term) -> (Watch, Receiver<Instant>) {
    let (publish, published) = channel();
    let watch = watch(term, orders(move || publish.send(Clock::system().now()).unwrap())).unwrap();
    (watch, published)
}

#[tokio::test]
async fn a_term_ends_on_time_while_the_runtime_is_blocked() {
    let (term, deadline) = real_term(SOON);
    let waiting = term.spawn(std::future::pending::<()>());
    let (_watch, published) = watched(&term);
    // Blocks the only thread that this runtime has.
    let at = published.recv_timeout(LIMIT).unwrap();
    assert!(at + Duration::from_micros(1) >= deadline);
    assert_eq!(term.finish(TermEnd::Lost), TermEnd::Expired);
    assert_eq!(waiting.await.unwrap().unwrap_err().reason(), TermEnd::Expired);
}

#[test]
fn a_renewal_needs_no_call_unless_the_deadline_becomes_earlier() {
    let (later, deadline) = real_term(SOON);
    let (_watch, published) = watched(&later);
    assert!(later.extend(deadline + SOON));
    assert!(published.recv_timeout(LIMIT).unwrap() + Duration::from_micros(1) >= deadline + SOON);

    let (earlier, _) = real_term(Duration::from_secs(3600));
    let (watch, published) = watched(&earlier);
    // One that has not gone to sleep yet would find it by itself.
    thread::sleep(Duration::from_millis(200));
    assert!(earlier.extend(Clock::system().now() + SOON));
    watch.earlier();
    published.recv_timeout(LIMIT).unwrap();
    assert_eq!(earlier.end(), Some(TermEnd::Expired));
}

#[test]
fn a_watch_that_was_dropped_publishes_nothing() {
    let (first, _) = real_term(Duration::from_secs(3600));
    let (first_watch, first_published) = watched(&first);
    drop(first_watch);
    assert!(first.extend(Clock::system().now()));
    let (second, _) = real_term(SOON);
    let (_watch, published) = watched(&second);
    published.recv_timeout(LIMIT).unwrap();
    assert!(first_published.recv().is_err(), "its closure is gone");
}

/// A watch by a watchdog without a thread: nothing that other tests do wakes it.
fn watched_by(watchdog: &Arc<Watchdog>, term: &Term) -> Watch {
    let (term, orders) = (Arc::downgrade(&term.0), orders(|| {}));
    let entry = Arc::new(Entry { term, orders, is_announced: AtomicBool::new(false) });
    let id = watchdog.add(entry.clone());
    Watch { watcher: Watcher::Thread { watchdog: watchdog.clone(), id }, entry }
}

/// Fails unless the thread was woken, and would wait for `deadline` next.
fn assert_poked(watchdog: &Watchdog, deadline: Instant) {
    assert_eq!(watchdog.lock().armed, Some(deadline));
    let late = Clock::system().now() + LIMIT;
    watchdog.alarm.wait(Some(late)).unwrap();
    assert!(Clock::system().now() < late, "nobody woke the thread");
}

#[test]
fn the_thread_is_woken_by_whatever_lies_before_what_it_waits_for_and_by_nothing_else() {
    let watchdog = Arc::new(Watchdog { alarm: Alarm::new().unwrap(), watched: Mutex::default() });
    let ((one, at), (other, _)) = (real_term(LIMIT * 100), real_term(LIMIT * 200));
    let watch = watched_by(&watchdog, &one);
    let armed = one.deadline();
    assert_poked(&watchdog, armed);
    let later = watched_by(&watchdog, &other);
    assert_eq!(watchdog.lock().entries.len(), 2, "each has a number of its own");
    assert!(one.extend(at + LIMIT));
    watch.earlier();
    assert_eq!(watchdog.lock().armed, Some(armed), "it will look then");

    assert!(one.extend(at - LIMIT));
    watch.earlier();
    assert_poked(&watchdog, one.deadline());
    other.finish(TermEnd::Resigned);
    later.ended();
    assert_poked(&watchdog, Instant::ORIGIN);
    assert_eq!(watchdog.attend(), Some(one.deadline()));
    assert_eq!(watchdog.lock().entries.len(), 1, "what is over needs no watch");
    drop(watch);
    assert!(watchdog.lock().entries.is_empty());
}

#[tokio::test]
async fn the_end_is_marked_then_published_then_announced_and_then_the_elector_is_woken() {
    let changed = Arc::new(Notify::new());
    let term = term_on(&Clock::system(), 1, true, &changed);
    let token = term.cancellation_token();
    let (publish, published) = channel();
    let (seen, announced) = (term.clone(), token.clone());
    let see = move || (seen.cell().marked(Moment::Ended), announced.is_cancelled());
    let watch = watch(&term, orders(move || publish.send(see()).unwrap())).unwrap();
    assert!(term.extend(Clock::system().now() + SOON));
    watch.earlier();
    assert_eq!(published.recv_timeout(LIMIT), Ok((Some(TermEnd::Expired), false)));
    tokio::select! {
        () = changed.notified() => {}
        () = tokio::time::sleep(LIMIT) => panic!("the elector was not woken"),
    }
    assert!(token.is_cancelled());
}

#[test]
fn panics_of_others_do_not_end_the_watchdog() {
    struct Panics;

    impl Wake for Panics {
        fn wake(self: Arc<Self>) {
            panic!("of a waker, on purpose");
        }
    }

    let (first, _) = real_term(SOON);
    let mut ended = pin!(first.ended());
    let waker = Waker::from(Arc::new(Panics));
    assert!(ended.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    let _first = watch(&first, orders(|| panic!("of a publication, on purpose"))).unwrap();
    let (second, _) = real_term(2 * SOON);
    let (_watch, published) = watched(&second);
    published.recv_timeout(LIMIT).unwrap();
    assert_eq!(first.finish(TermEnd::Lost), TermEnd::Expired);
}

#[test]
fn a_hundred_terms_leave_nothing_behind() {
    let (first, _) = real_term(Duration::from_secs(3600));
    for _ in 0..100 {
        let (watch, _published) = watched(&first);
        drop(watch);
    }
    assert_eq!(Arc::weak_count(&first.0), 0);
}

#[tokio::test]
async fn with_a_virtual_clock_a_task_ends_the_term() {
    let (term, hand, changed) = term();
    let published = Arc::new(AtomicUsize::new(0));
    let counter = published.clone();
    let _watch = watch(&term, orders(move || _ = counter.fetch_add(1, Ordering::SeqCst))).unwrap();
    tokio::task::yield_now().await;
    hand.advance(Duration::from_secs(10));
    changed.notified().await;
    assert_eq!(published.load(Ordering::SeqCst), 1);
    assert!(term.cancelled().now_or_never().is_some());
}

#[tokio::test(start_paused = true)]
async fn with_paused_time_a_task_ends_the_term() {
    let changed = Arc::new(Notify::new());
    let term = term_on(&Clock::tokio(), 1, true, &changed);
    let _watch = watch(&term, orders(|| {})).unwrap();
    assert_eq!(term.ended().await, TermEnd::Expired);
    changed.notified().await;
}

#[test]
fn a_virtual_clock_without_a_runtime_is_an_error() {
    let (term, _, _) = term();
    assert!(watch(&term, orders(|| {})).is_err());
    ensure_started(&Clock::system()).unwrap();
}

#[test]
fn guards_that_are_held_beyond_the_lease_are_acted_upon_by_the_watchdog() {
    let (term, deadline) = real_term(SOON);
    let guards = [term.guard().unwrap(), term.guard().unwrap()];
    let (watch, acted) = overrun(&term);
    assert_eq!(acted.recv_timeout(LIMIT).unwrap(), (2, "tenure-watchdog".to_owned()));
    assert!(Clock::system().now() + Duration::from_micros(1) >= deadline + MARGIN);
    drop((watch, guards));
    assert!(acted.recv().is_err(), "it happens once");
}

#[test]
fn guards_outlive_whoever_had_their_term_watched() {
    let (term, _) = real_term(Duration::from_secs(3600));
    let guard = term.guard().unwrap();
    let (watch, acted) = overrun(&term);
    assert!(term.extend(Clock::system().now() + SOON));
    term.finish(TermEnd::Shutdown);
    watch.ended();
    drop(watch);
    assert_eq!(acted.recv_timeout(LIMIT).unwrap().0, 1);
    drop(guard);
}

#[test]
fn what_is_lost_is_overrun_at_once() {
    let (term, _) = real_term(Duration::from_secs(3600));
    let _guard = term.guard().unwrap();
    let (watch, acted) = overrun(&term);
    assert_eq!(term.finish(TermEnd::Lost), TermEnd::Lost);
    watch.ended();
    assert_eq!(acted.recv_timeout(LIMIT).unwrap().0, 1);
}

#[test]
fn guards_that_are_gone_before_the_lease_is_are_nobodys_business() {
    let (term, _) = real_term(SOON);
    let guard = term.guard().unwrap();
    let (watch, acted) = overrun(&term);
    term.finish(TermEnd::Resigned);
    drop((guard, watch));
    // Its closure goes when there is nothing left to watch.
    assert!(acted.recv_timeout(LIMIT).is_err());
    assert_eq!(term.guards(), 0);
}

#[tokio::test(start_paused = true)]
async fn with_paused_time_a_task_acts_upon_guards() {
    let term = term_on(&Clock::tokio(), 1, true, &Arc::default());
    let _guard = term.guard().unwrap();
    let (_watch, acted) = overrun(&term);
    tokio::time::sleep(term.remaining() + MARGIN + Duration::from_millis(2)).await;
    assert_eq!(acted.try_recv().unwrap().0, 1);
}

#[test]
fn a_watchdog_whose_alarm_fails_does_not_take_the_processor_for_itself() {
    let clock = Clock::system();
    let before = clock.now();
    rest(io::ErrorKind::Other.into());
    assert!(clock.now() >= before + WITHOUT_ALARM);
}
