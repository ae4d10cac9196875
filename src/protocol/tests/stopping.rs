//! Shutdown from each phase: what is still done, and how long that takes at most.

use std::time::Duration;

use super::{
    candidate::{Candidate, ME},
    lease, ms, released, timing,
};
use crate::{
    lease::TermEnd,
    protocol::{Call, Change, Input, Levels, Phase, Reply},
};

const GUARDED: Levels = Levels { guards: 2, in_flight: 0 };

fn stopped(guards: usize) -> Change {
    Change::Stopped { guards }
}

/// Lets the store hang until the candidate has stopped, and says how long that took.
fn time_to_stop(candidate: &mut Candidate) -> Duration {
    let asked = candidate.now;
    candidate.give(Input::Shutdown);
    while candidate.phase() != Phase::Stopped {
        let wakes_in = candidate.wakes_in();
        candidate.advance(wakes_in);
    }
    candidate.now.saturating_since(asked)
}

#[test]
fn a_shutdown_drops_a_pending_look() {
    let mut candidate = Candidate::new(timing());
    let step = candidate.give(Input::Shutdown);
    assert!(step.abandon);
    assert_eq!(candidate.take_changes(), [stopped(0)]);
}

#[test]
fn a_shutdown_while_nothing_is_pending_stops_at_once() {
    let mut candidate = Candidate::new(timing());
    candidate.inspected(Some(lease("other", 4, 7)));
    candidate.give(Input::Shutdown);
    assert_eq!(candidate.take_changes(), [stopped(0)]);
}

#[test]
fn a_shutdown_awaits_a_pending_acquire_and_gives_back_what_it_won() {
    let mut candidate = Candidate::acquiring(timing());
    candidate.give(Input::Shutdown);
    candidate.won(lease(ME, 1, 1));
    assert!(candidate.is_releasing());
    candidate.won(released(lease(ME, 1, 2)));
    assert_eq!(candidate.take_changes(), [stopped(0)]);
}

#[test]
fn a_shutdown_whose_acquire_lost_stops() {
    let mut candidate = Candidate::acquiring(timing());
    candidate.give(Input::Shutdown);
    candidate.lost(Some(lease("other", 1, 1)));
    assert_eq!(candidate.take_changes(), [stopped(0)]);
}

#[test]
fn after_an_acquire_of_unknown_outcome_a_shutdown_looks_once_and_releases_what_is_its_own() {
    let mut candidate = Candidate::acquiring(timing());
    candidate.give(Input::Shutdown);
    candidate.reply(Reply::Failed);
    candidate.inspected(Some(lease(ME, 1, 1)));
    assert!(candidate.is_releasing());
    candidate.reply(Reply::Failed);
    assert_eq!(candidate.take_changes(), [stopped(0)]);
}

#[test]
fn a_shutdown_awaits_the_look_after_an_acquire_of_unknown_outcome() {
    let mut candidate = Candidate::acquiring(timing());
    candidate.reply(Reply::Failed);
    assert_eq!(candidate.advance_to_call(), &Call::Inspect);
    candidate.give(Input::Shutdown);
    candidate.inspected(Some(lease(ME, 1, 1)));
    assert!(candidate.is_releasing());
}

#[test]
fn the_look_of_a_shutdown_is_one_look() {
    let answers = [
        Reply::Failed,
        Reply::Inspected(None),
        Reply::Inspected(Some(lease("other", 1, 1))),
        Reply::Inspected(Some(released(lease("other", 1, 1)))),
    ];
    for answer in answers {
        let mut candidate = Candidate::acquiring(timing());
        candidate.reply(Reply::Failed);
        candidate.give(Input::Shutdown);
        assert_eq!(candidate.asked(), Some(&Call::Inspect));
        candidate.reply(answer.clone());
        assert_eq!(candidate.take_changes(), [stopped(0)], "{answer:?}");
    }
}

#[test]
fn a_leader_without_work_stops_after_its_release_whatever_that_answers() {
    let answers = [
        Reply::Failed,
        Reply::Released(crate::store::Outcome::Won(released(lease(ME, 1, 2)))),
        Reply::Released(crate::store::Outcome::Lost(None)),
    ];
    for answer in answers {
        let mut candidate = Candidate::leading(timing());
        candidate.give(Input::Shutdown);
        let end = TermEnd::Shutdown;
        assert_eq!(candidate.take_changes(), [Change::Cancelled(end), Change::Ended(end)]);
        assert!(candidate.is_releasing());
        candidate.reply(answer);
        assert_eq!(candidate.take_changes(), [stopped(0)]);
    }
}

#[test]
fn guards_that_stay_are_counted_and_never_released_over() {
    let mut candidate = Candidate::leading(timing());
    candidate.levels = GUARDED;
    let took = time_to_stop(&mut candidate);
    let changes = candidate.take_changes();
    assert_eq!(changes.last(), Some(&stopped(2)));
    assert!(took >= timing().drain_timeout(), "stopped after {took:?}");
    assert!(took <= timing().shutdown_bound(), "stopped after {took:?}");
}

#[test]
fn a_guard_that_goes_just_after_the_drain_does_not_cost_the_release() {
    let mut candidate = Candidate::leading(timing());
    candidate.levels = GUARDED;
    candidate.give(Input::Shutdown);
    candidate.advance_to_call();
    candidate.won(lease(ME, 1, 2));
    candidate.advance(ms(5_001));
    assert_eq!(candidate.phase(), Phase::Relinquishing);
    candidate.levels = Levels::default();
    candidate.give(Input::Wake);
    assert!(candidate.is_releasing());
}

#[test]
fn one_that_waits_for_guards_of_an_expired_term_stops_within_the_drain_timeout() {
    let mut candidate = Candidate::leading(timing());
    candidate.levels = GUARDED;
    candidate.sleep(ms(60_000));
    candidate.give(Input::Wake);
    candidate.advance(ms(1_000));
    assert_eq!(time_to_stop(&mut candidate), timing().drain_timeout());
    assert_eq!(candidate.take_changes().last(), Some(&stopped(2)));
}

#[test]
fn a_shutdown_is_bounded_from_every_phase_while_the_store_hangs() {
    let at = |build: fn() -> Candidate, wait: u64| {
        let mut candidate = build();
        candidate.advance(ms(wait));
        candidate
    };
    let leading = || Candidate::leading(timing());
    let working = || {
        let mut candidate = Candidate::leading(timing());
        candidate.levels = Levels { guards: 0, in_flight: 1 };
        candidate
    };
    let resigned = || {
        let mut candidate = Candidate::leading(timing());
        candidate.levels = GUARDED;
        candidate.give(Input::Resign);
        candidate
    };
    let builds: [fn() -> Candidate; 6] = [
        || Candidate::new(timing()),
        || Candidate::observer(timing()),
        || Candidate::acquiring(timing()),
        leading,
        working,
        resigned,
    ];
    for build in builds {
        for wait in (0..40_000).step_by(250) {
            let took = time_to_stop(&mut at(build, wait));
            assert!(took <= timing().shutdown_bound(), "took {took:?} after {wait} ms");
        }
    }
}

#[test]
fn nothing_happens_after_the_end() {
    let mut candidate = Candidate::new(timing());
    candidate.give(Input::Shutdown);
    let before = candidate.protocol.clone();
    candidate.take_changes();
    candidate.sleep(ms(100_000));
    for input in [Input::Wake, Input::Hint, Input::Eligible(true), Input::Shutdown, Input::Over] {
        candidate.give(input);
    }
    candidate.give(Input::Resign);
    assert_eq!(candidate.take_changes(), []);
    assert_eq!((candidate.phase(), candidate.asked()), (Phase::Stopped, None));
    assert_eq!(before.phase(), Phase::Stopped);
}

#[test]
fn whoever_has_stopped_keeps_no_instant_that_matters_and_has_no_other_phase_at_another_time() {
    let mut candidate = Candidate::new(timing());
    candidate.give(Input::Shutdown);
    let moved = candidate.protocol.clone().rebased(Duration::from_secs(3_600));
    assert_eq!(moved.phase(), Phase::Stopped);
    candidate.protocol = moved;
    assert_eq!(candidate.give(Input::Wake).wake, None);
}
