//! Two threads meet in a term: no guard is overlooked, and no wake-up is lost.

use std::{
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    thread,
};

use tokio_test::task::spawn;

use super::{
    tests::{term, was_woken},
    *,
};

/// Runs `left` and `right` at the same time on terms of their own, again and again, so that their steps meet in every
/// order. Neither may wait.
fn race<L: Send, R: Send>(
    left: impl Fn(&Race) -> L + Sync,
    right: impl Fn(&Race) -> R + Sync,
) -> impl Iterator<Item = (Race, L, R)> {
    const ROUNDS: usize = 20_000;
    let races: Vec<Race> = (0..ROUNDS).map(|_| Race::new()).collect();
    let arrived = AtomicUsize::new(0);
    let meet = |round: usize| {
        arrived.fetch_add(1, SeqCst);
        for spins in 1.. {
            if arrived.load(SeqCst) >= 2 * (round + 1) {
                break;
            }
            if spins % 1_000 == 0 {
                thread::yield_now();
            }
        }
    };
    let (lefts, rights) = thread::scope(|scope| {
        let lefts = scope.spawn(|| {
            let run = |(round, race): (usize, &Race)| {
                meet(round);
                // A different head start in each round.
                (0..round % 32).for_each(|_| std::hint::spin_loop());
                left(race)
            };
            races.iter().enumerate().map(run).collect::<Vec<L>>()
        });
        let run = |(round, race): (usize, &Race)| {
            meet(round);
            right(race)
        };
        let rights = races.iter().enumerate().map(run).collect::<Vec<R>>();
        (lefts.join().unwrap(), rights)
    });
    races.into_iter().zip(lefts).zip(rights).map(|((race, left), right)| (race, left, right))
}

struct Race {
    term: Term,
    guard: Mutex<Option<TermGuard>>,
    changed: Arc<Notify>,
}

impl Race {
    fn new() -> Self {
        let (term, _, changed) = term();
        let guard = Mutex::new(term.guard());
        Self { term, guard, changed }
    }
}

#[test]
fn no_wake_is_lost_between_registering_and_the_end() {
    let wait = |race: &Race| {
        let mut ended = spawn(race.term.ended());
        let is_over = ended.poll().is_ready();
        (is_over, ended)
    };
    let end = |race: &Race| {
        race.term.finish(TermEnd::Lost);
        race.term.announce();
    };
    for (_, (is_over, ended), ()) in race(wait, end) {
        assert!(is_over || ended.is_woken());
    }
}

#[test]
fn a_guard_is_either_refused_or_seen_by_who_ended_the_term() {
    let end = |race: &Race| {
        race.term.finish(TermEnd::Lost);
        race.term.guards()
    };
    for (_, guard, seen) in race(|race| race.term.guard(), end) {
        assert!(guard.is_none() || seen == 2, "beside the one that was held before");
    }
}

#[test]
fn work_is_either_refused_or_seen_by_who_cancelled_the_term() {
    let cancel = |race: &Race| {
        race.term.cancel(TermEnd::Resigned);
        race.term.in_flight()
    };
    for (_, in_flight, seen) in race(|race| race.term.admit(), cancel) {
        assert!(in_flight.is_none() || seen == 1);
    }
}

#[test]
fn the_last_guard_either_is_gone_or_wakes_the_elector_when_it_goes() {
    let end = |race: &Race| {
        race.term.finish(TermEnd::Lost);
        race.term.guards()
    };
    for (race, (), seen) in race(|race| drop(race.guard.lock().unwrap().take()), end) {
        assert!(seen == 0 || was_woken(&race.changed));
    }
}
