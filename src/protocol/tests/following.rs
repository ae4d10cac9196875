//! Following: how a term is won, or is not.

use std::time::Duration;

use super::{
    candidate::{Candidate, ME},
    fence, lease, ms, released, timing, with_ttl,
};
use crate::protocol::{Call, Change, Input, Phase, Reply, Timing};

#[test]
fn it_looks_as_soon_as_it_is_there() {
    assert_eq!(Candidate::new(timing()).asked(), Some(&Call::Inspect));
}

#[test]
fn it_looks_every_retry_period_jittered() {
    let mut candidate = Candidate::new(timing());
    let mut waits = Vec::new();
    for numerator in [0, 1 << 14, 1 << 15, u16::MAX] {
        candidate.jitter = super::Jitter::new(numerator);
        candidate.inspected(Some(lease("other", 4, 7)));
        waits.push(candidate.wakes_in());
        candidate.advance_to_call();
    }
    assert_eq!(waits[..3], [ms(2_400), ms(2_700), ms(3_000)]);
    assert!(waits[3] > ms(3_599) && waits[3] < ms(3_600), "{waits:?}");
}

#[test]
fn a_term_that_is_won_lasts_from_the_send_to_the_lease_less_the_margin() {
    let mut candidate = Candidate::acquiring(timing());
    let sent = candidate.now;
    candidate.advance(ms(2_000));
    candidate.won(lease(ME, 1, 1));
    let deadline = sent + ms(13_500);
    assert_eq!(candidate.take_changes(), [Change::Started { fence: fence(1), deadline }]);
    assert_eq!(candidate.phase(), Phase::Leading);
}

#[test]
fn a_term_lasts_no_longer_than_the_store_says() {
    let mut candidate = Candidate::acquiring(timing());
    candidate.won(with_ttl(lease(ME, 1, 1), ms(6_000)));
    assert_eq!(candidate.remaining(), Some(ms(4_500)));

    let mut candidate = Candidate::acquiring(timing());
    candidate.won(with_ttl(lease(ME, 1, 1), ms(60_000)));
    assert_eq!(candidate.remaining(), Some(ms(13_500)));
}

#[test]
fn an_acquire_that_is_won_too_late_starts_nothing_and_is_given_back() {
    let mut candidate = Candidate::acquiring(timing());
    candidate.sleep(ms(13_500));
    candidate.won(lease(ME, 1, 1));
    assert_eq!(candidate.take_changes(), []);
    assert_eq!(candidate.phase(), Phase::Relinquishing);
    assert!(candidate.is_releasing());
}

#[test]
fn an_acquire_that_is_won_just_in_time_starts_a_term() {
    let mut candidate = Candidate::acquiring(timing());
    candidate.sleep(ms(13_500) - Duration::from_nanos(1));
    candidate.won(lease(ME, 1, 1));
    assert_eq!(candidate.remaining(), Some(Duration::from_nanos(1)));
}

#[test]
fn an_acquire_that_is_won_while_it_does_not_contend_is_given_back() {
    for input in [Input::Resign, Input::Eligible(false), Input::Shutdown] {
        let mut candidate = Candidate::acquiring(timing());
        candidate.give(input.clone());
        assert!(candidate.call.is_some(), "{input:?}: the acquire is awaited");
        candidate.won(lease(ME, 1, 1));
        assert_eq!(candidate.take_changes(), [], "{input:?}");
        assert!(candidate.is_releasing(), "{input:?}");
    }
}

#[test]
fn an_unused_lease_is_not_given_back_over_a_guard_nor_reported_before_a_lease_has_passed() {
    let mut candidate = Candidate::acquiring(timing());
    candidate.give(Input::Resign);
    candidate.levels.guards = 1;
    candidate.won(lease(ME, 1, 1));
    assert_eq!(candidate.asked(), None);
    assert_eq!(candidate.take_changes(), []);
    candidate.levels.guards = 0;
    candidate.give(Input::Wake);
    assert!(candidate.is_releasing());
}

#[test]
fn a_fence_that_is_not_above_all_seen_starts_nothing() {
    let mut candidate = Candidate::new(timing());
    candidate.inspected(Some(released(lease("other", 4, 7))));
    candidate.won(lease(ME, 4, 8));
    assert_eq!(candidate.take_changes(), []);
    assert!(candidate.is_releasing());
}

#[test]
fn losing_an_acquire_starts_nothing() {
    let mut candidate = Candidate::acquiring(timing());
    candidate.lost(Some(lease("other", 1, 1)));
    assert_eq!((candidate.phase(), candidate.take_changes()), (Phase::Following, vec![]));
    assert_eq!(candidate.wakes_in(), ms(3_000));
}

#[test]
fn after_a_lost_acquire_of_a_free_lease_it_looks_again_soon() {
    let free = [None, Some(released(lease("other", 1, 1))), Some(lease(ME, 1, 1))];
    for record in free {
        let mut candidate = Candidate::acquiring(timing());
        candidate.lost(record.clone());
        assert_eq!(candidate.wakes_in(), ms(20), "{record:?}");
    }
}

#[test]
fn an_acquire_of_unknown_outcome_is_followed_by_a_look_and_never_by_a_term_of_its_fence() {
    let mut candidate = Candidate::acquiring(timing());
    candidate.reply(Reply::Failed);
    assert_eq!(candidate.wakes_in(), timing().retry_delay());
    candidate.advance_to_call();
    candidate.inspected(Some(lease(ME, 1, 1)));
    assert_eq!(candidate.acquire().floor, Some(fence(1)));
    candidate.won(lease(ME, 2, 2));
    assert!(matches!(candidate.take_changes()[..], [Change::Started { .. }]));
}

#[test]
fn a_failed_look_is_repeated_after_a_retry_period() {
    let mut candidate = Candidate::new(timing());
    candidate.reply(Reply::Failed);
    assert_eq!(candidate.wakes_in(), ms(3_000));
}

#[test]
fn a_call_that_has_had_its_time_is_abandoned() {
    let mut candidate = Candidate::new(timing());
    assert_eq!(candidate.wakes_in(), timing().operation_timeout());
    candidate.advance(ms(2_999));
    assert!(candidate.call.is_some());
    candidate.advance(ms(1));
    assert_eq!(candidate.asked(), None);
}

#[test]
fn a_reply_that_nobody_waits_for_changes_nothing() {
    let mut candidate = Candidate::new(timing());
    candidate.inspected(Some(lease("other", 4, 7)));
    let before = candidate.protocol.clone();
    candidate.give(Input::Reply(Reply::Inspected(None)));
    assert_eq!(candidate.protocol, before);
}

#[test]
fn a_reply_of_the_wrong_kind_counts_as_a_failure() {
    let mut candidate = Candidate::acquiring(timing());
    candidate.reply(Reply::Inspected(None));
    assert_eq!(candidate.wakes_in(), timing().retry_delay());
    assert_eq!(candidate.phase(), Phase::Following);
}

#[test]
fn resigning_while_following_is_the_pause_alone() {
    // Also one that ends between two looks, which come every 3 s.
    for pause in [timing().resign_pause(), ms(7_000)] {
        let mut candidate = Candidate::new(Timing::builder().resign_pause(pause).build().unwrap());
        candidate.give(Input::Resign);
        assert_eq!(candidate.take_changes(), []);
        let resigned = candidate.now;
        loop {
            candidate.inspected(Some(released(lease("other", 4, 7))));
            if candidate.call.is_some() {
                break;
            }
            candidate.advance_to_call();
        }
        assert_eq!(candidate.now.saturating_since(resigned), pause);
    }
}

#[test]
fn to_hear_what_it_knows_already_makes_nobody_look_earlier() {
    for (mut candidate, eligible) in
        [(Candidate::new(timing()), true), (Candidate::observer(timing()), false)]
    {
        candidate.inspected(Some(lease("other", 4, 7)));
        candidate.advance(ms(500));
        candidate.give(Input::Eligible(eligible));
        assert_eq!((candidate.asked(), candidate.wakes_in()), (None, ms(2_500)), "{eligible}");
    }
}

#[test]
fn becoming_eligible_does_not_clear_the_pause() {
    let mut candidate = Candidate::new(timing());
    candidate.give(Input::Resign);
    candidate.give(Input::Eligible(false));
    candidate.give(Input::Eligible(true));
    candidate.inspected(None);
    assert_eq!(candidate.asked(), None);
}

#[test]
fn a_lease_of_its_own_that_it_does_not_want_is_given_back_unless_it_has_expired() {
    let mut candidate = Candidate::new(timing());
    candidate.give(Input::Eligible(false));
    candidate.inspected(Some(with_ttl(lease(ME, 4, 7), Duration::ZERO)));
    assert_eq!(candidate.asked(), None);
    candidate.advance_to_call();
    candidate.inspected(Some(with_ttl(lease(ME, 4, 7), ms(9_000))));
    assert!(candidate.is_releasing());
}
