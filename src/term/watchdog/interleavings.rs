//! The watchdog's thread, an elector and time meet in all ways in which they can: explored by loom, with
//! `cargo xtask interleavings`. Who sleeps although there is something to be done sleeps for ever there, which loom finds.

use loom::{
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
    thread,
};

use super::*;
use crate::{
    clock::ManualClock,
    sync::explore,
    term::{
        Moment,
        tests::{LASTS, term},
    },
};

const MARGIN: Duration = Duration::from_secs(1);

/// A watchdog without a thread, a term that it may watch, and what it said.
#[derive(Clone)]
struct Watching {
    watchdog: Arc<Watchdog>,
    entry: Arc<Entry>,
    term: Term,
    hand: ManualClock,
    published: Arc<AtomicUsize>,
    overran: Arc<AtomicUsize>,
}

impl Watching {
    fn new() -> Self {
        let (term, hand, _) = term();
        let (published, overran) = <(Arc<AtomicUsize>, Arc<AtomicUsize>)>::default();
        let (publish, overrun) = (published.clone(), overran.clone());
        let watched = term.clone();
        let orders = Orders {
            publish: Box::new(move || {
                // A failure in here would be contained, like any.
                let is_over = watched.cell().marked(Moment::Ended).is_some();
                publish.fetch_add(if is_over { 1 } else { 1_000 }, Relaxed);
            }),
            announce: Box::new(Term::announce),
            margin: MARGIN,
            overrun: Overrun::Report,
            overran: Box::new(move |guards| {
                overrun.fetch_add(guards, Relaxed);
            }),
        };
        let entry = Arc::new(Entry {
            term: Arc::downgrade(&term.0),
            orders,
            is_announced: AtomicBool::new(false),
        });
        let watchdog = Watchdog { alarm: Alarm::new().unwrap(), watched: Mutex::default() };
        Self { watchdog: Arc::new(watchdog), entry, term, hand, published, overran }
    }

    /// What `watch` does with a clock for which a thread can wait.
    fn watch(&self) -> Watch {
        let (watchdog, entry) = (self.watchdog.clone(), self.entry.clone());
        let id = watchdog.add(entry.clone());
        Watch { watcher: Watcher::Thread { watchdog, id }, entry }
    }

    /// The watchdog's thread, until there is nothing left that it would have to do.
    fn run_until(&self, done: impl Fn(&Self) -> bool + 'static) -> thread::JoinHandle<()> {
        let watching = self.clone();
        thread::spawn(move || {
            loop {
                let next = watching.watchdog.attend();
                if done(&watching) {
                    return;
                }
                watching.watchdog.alarm.wait(next).unwrap();
            }
        })
    }

    fn pass(&self, time: Duration) {
        self.hand.suspend(time);
        self.watchdog.alarm.pass(self.term.cell().clock().now());
    }

    fn has_published(&self) -> bool {
        self.published.load(Relaxed) > 0
    }

    fn assert_published_once(&self) {
        assert_eq!(self.published.load(Relaxed), 1, "thousands: of a term that is not over");
        assert_eq!(self.term.end(), Some(TermEnd::Expired));
    }
}

#[test]
fn a_term_that_is_watched_from_now_on_ends_on_time() {
    explore(None, || {
        let watching = Watching::new();
        let thread = watching.run_until(Watching::has_published);
        let watch = watching.watch();
        watching.pass(LASTS);
        thread.join().unwrap();
        watching.assert_published_once();
        drop(watch);
    });
}

/// The watchdog sleeps without a limit when the first is done.
#[test]
fn a_term_that_is_watched_after_another_ends_on_time_too() {
    explore(Some(3), || {
        let first = Watching::new();
        let _first_watch = first.watch();
        first.pass(LASTS);
        while first.watchdog.attend() == Some(Instant::ORIGIN) {}
        first.assert_published_once();

        let second = Watching { watchdog: first.watchdog.clone(), ..Watching::new() };
        let thread = second.run_until(Watching::has_published);
        assert!(second.term.extend(second.term.deadline() + 2 * LASTS));
        let watch = second.watch();
        second.pass(3 * LASTS);
        thread.join().unwrap();
        second.assert_published_once();
        drop(watch);
    });
}

#[test]
fn a_deadline_that_becomes_earlier_is_not_slept_through() {
    explore(None, || {
        let watching = Watching::new();
        let watch = watching.watch();
        let thread = watching.run_until(Watching::has_published);
        assert!(watching.term.extend(watching.term.cell().clock().now() + LASTS / 2));
        watch.earlier();
        watching.pass(LASTS / 2);
        thread.join().unwrap();
        watching.assert_published_once();
    });
}

#[test]
fn a_renewal_that_needs_no_call_is_found_when_the_old_deadline_passes() {
    explore(Some(3), || {
        let watching = Watching::new();
        let _watch = watching.watch();
        let thread = watching.run_until(Watching::has_published);
        let time = watching.clone();
        let time = thread::spawn(move || time.pass(LASTS));
        let later = watching.term.cell().clock().now() + 2 * LASTS;
        let is_extended = watching.term.extend(later);
        time.join().unwrap();
        if is_extended {
            assert!(watching.term.may_finish());
            watching.pass(2 * LASTS);
        }
        thread.join().unwrap();
        watching.assert_published_once();
    });
}

/// Whether the elector or the watchdog ends the term, and in whatever order they say so: work that goes on beyond the
/// lease is found, once.
#[test]
fn a_guard_that_is_held_beyond_the_lease_is_found_whoever_ended_the_term() {
    explore(Some(3), || {
        let watching = Watching::new();
        let guard = watching.term.guard().unwrap();
        let watch = watching.watch();
        let thread = watching.run_until(|watching| watching.overran.load(Relaxed) > 0);
        watching.term.finish(TermEnd::Resigned);
        watching.term.announce();
        watch.ended();
        watching.pass(LASTS + MARGIN);
        thread.join().unwrap();
        assert_eq!(watching.overran.load(Relaxed), 1);
        drop((guard, watch));
    });
}

#[test]
fn a_guard_that_is_held_beyond_a_lease_that_ran_out_is_found() {
    explore(Some(3), || {
        let watching = Watching::new();
        let guard = watching.term.guard().unwrap();
        let watch = watching.watch();
        let thread = watching.run_until(|watching| watching.overran.load(Relaxed) > 0);
        watching.pass(LASTS);
        watching.pass(MARGIN);
        thread.join().unwrap();
        watching.assert_published_once();
        assert_eq!(watching.overran.load(Relaxed), 1);
        drop((guard, watch));
    });
}

#[test]
fn a_guard_that_is_held_when_the_lease_is_lost_is_found_at_once() {
    explore(Some(3), || {
        let watching = Watching::new();
        let guard = watching.term.guard().unwrap();
        let watch = watching.watch();
        let thread = watching.run_until(|watching| watching.overran.load(Relaxed) > 0);
        watching.term.finish(TermEnd::Lost);
        watching.term.announce();
        watch.ended();
        thread.join().unwrap();
        assert_eq!(watching.overran.load(Relaxed), 1);
        drop((guard, watch));
    });
}

#[test]
fn who_waits_for_the_end_is_told_by_the_watchdog() {
    explore(Some(3), || {
        let watching = Watching::new();
        let _watch = watching.watch();
        let thread = watching.run_until(Watching::has_published);
        let term = watching.term.clone();
        let waiting = thread::spawn(move || loom::future::block_on(term.ended()));
        watching.pass(LASTS);
        assert_eq!(waiting.join().unwrap(), TermEnd::Expired);
        thread.join().unwrap();
    });
}

#[test]
fn a_watch_that_was_dropped_publishes_nothing_that_had_not_begun() {
    explore(None, || {
        let watching = Watching::new();
        let watch = watching.watch();
        let watchdog = watching.watchdog.clone();
        let thread = thread::spawn(move || {
            watchdog.attend();
        });
        drop(watch);
        thread.join().unwrap();
        watching.pass(LASTS);
        watching.watchdog.attend();
        assert_eq!(watching.published.load(Relaxed), 0);
        assert!(watching.watchdog.lock().entries.is_empty());
    });
}
