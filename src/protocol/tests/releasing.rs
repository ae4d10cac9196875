//! Relinquishing: the term is over, the lease is not yet given back.

use super::{
    candidate::{Candidate, ME},
    lease, ms, released, timing, with_ttl,
};
use crate::{
    lease::TermEnd,
    protocol::{Call, Change, Input, Levels, Phase, Reply},
};

/// Expired with a guard held; the renewals were failing.
fn held_back() -> Candidate {
    let mut candidate = Candidate::leading(timing());
    candidate.levels = Levels { guards: 1, in_flight: 3 };
    candidate.sleep(ms(13_500));
    candidate.give(Input::Wake);
    assert_eq!(candidate.take_changes(), [Change::Ended(TermEnd::Expired)]);
    candidate
}

#[test]
fn an_expired_lease_is_released_once_guards_are_gone_whatever_is_in_flight() {
    let mut candidate = held_back();
    candidate.advance(ms(3_000));
    assert_eq!((candidate.phase(), candidate.asked()), (Phase::Relinquishing, None));
    candidate.levels.guards = 0;
    candidate.give(Input::Wake);
    assert!(candidate.is_releasing());
}

#[test]
fn guards_that_stay_are_reported_once_a_lease_and_nothing_else_happens() {
    let mut candidate = held_back();
    candidate.advance(ms(15_000 * 3 + 1));
    assert_eq!(candidate.take_changes(), [Change::StillHeld { guards: 1 }; 3]);
    assert_eq!((candidate.phase(), candidate.asked()), (Phase::Relinquishing, None));
}

#[test]
fn no_new_term_starts_while_a_guard_of_the_old_one_is_held() {
    let mut candidate = Candidate::leading(timing());
    candidate.levels.guards = 1;
    candidate.advance_to_call();
    candidate.lost(None);
    candidate.give(Input::Hint);
    candidate.give(Input::Eligible(true));
    candidate.advance(ms(100_000));
    assert_eq!((candidate.phase(), candidate.asked()), (Phase::Relinquishing, None));
    candidate.levels.guards = 0;
    candidate.give(Input::Wake);
    assert_eq!(candidate.asked(), Some(&Call::Inspect), "a lost lease is not released");
}

#[test]
fn after_a_release_it_follows_at_once() {
    let mut candidate = Candidate::leading(timing());
    candidate.advance(ms(1_000));
    candidate.give(Input::Eligible(false));
    candidate.won(released(lease(ME, 1, 2)));
    assert_eq!((candidate.phase(), candidate.asked()), (Phase::Following, Some(&Call::Inspect)));
}

#[test]
fn after_a_release_that_found_nothing_it_looks_a_moment_later() {
    for found in [None, Some(lease("other", 2, 2))] {
        let mut candidate = Candidate::leading(timing());
        candidate.advance(ms(1_000));
        candidate.give(Input::Resign);
        candidate.lost(found);
        assert_eq!((candidate.phase(), candidate.asked()), (Phase::Following, None));
        assert_eq!(candidate.wakes_in(), ms(20));
    }
}

#[test]
fn a_failed_release_is_followed_by_a_look_that_finds_what_is_left_to_release() {
    let mut candidate = Candidate::leading(timing());
    candidate.give(Input::Resign);
    candidate.reply(Reply::Failed);
    assert_eq!(candidate.phase(), Phase::Following);
    assert_eq!(candidate.wakes_in(), timing().retry_delay());
    candidate.advance_to_call();
    candidate.inspected(Some(lease(ME, 1, 1)));
    assert!(candidate.is_releasing());
}

#[test]
fn an_outstanding_renewal_is_awaited_before_the_release() {
    let mut candidate = Candidate::leading(timing());
    candidate.advance_to_call();
    candidate.give(Input::Resign);
    assert_eq!(candidate.take_changes().last(), Some(&Change::Ended(TermEnd::Resigned)));
    assert!(candidate.is_renewing());
    candidate.won(lease(ME, 1, 2));
    assert_eq!(candidate.take_changes(), [], "a confirmation revives no term");
    assert!(candidate.is_releasing());
}

#[test]
fn a_renewal_that_hangs_delays_the_release_by_no_more_than_its_timeout() {
    let mut candidate = Candidate::leading(timing());
    candidate.advance_to_call();
    let sent = candidate.now;
    candidate.give(Input::Resign);
    candidate.advance_to_call();
    assert!(candidate.is_releasing());
    assert_eq!(candidate.now.saturating_since(sent), timing().operation_timeout());
}

#[test]
fn an_awaited_renewal_that_lost_leaves_nothing_to_release() {
    let mut candidate = Candidate::leading(timing());
    candidate.advance_to_call();
    candidate.give(Input::Resign);
    candidate.lost(Some(lease("other", 2, 2)));
    assert_eq!((candidate.phase(), candidate.asked()), (Phase::Following, Some(&Call::Inspect)));
}

#[test]
fn a_candidate_that_never_releases_leaves_its_lease_to_run_out() {
    for end in [Input::Resign, Input::Eligible(false)] {
        let mut candidate = Candidate::leading(timing());
        candidate.protocol = candidate.protocol.without_release();
        candidate.advance(ms(1_000));
        candidate.give(end);
        let ours = with_ttl(lease(ME, 1, 2), Some(ms(10_000)));
        assert_eq!(
            (candidate.phase(), candidate.asked()),
            (Phase::Following, Some(&Call::Inspect))
        );
        candidate.inspected(Some(ours));
        assert_eq!((candidate.phase(), candidate.asked()), (Phase::Following, None));
    }

    let mut candidate = Candidate::leading(timing());
    candidate.protocol = candidate.protocol.without_release();
    candidate.give(Input::Shutdown);
    assert_eq!(candidate.take_changes().last(), Some(&Change::Stopped { guards: 0 }));
}

#[test]
fn what_the_answer_to_a_release_shows_is_below_its_next_term() {
    let mut candidate = held_back();
    candidate.levels.guards = 0;
    candidate.give(Input::Wake);
    assert!(candidate.is_releasing());
    candidate.lost(Some(lease("rival", 9, 9)));
    candidate.advance_to_call();
    // The store has come back as it was before.
    candidate.inspected(Some(released(lease(ME, 1, 2))));
    assert_eq!(candidate.acquire().floor, Some(9_i64.try_into().unwrap()));
}
