//! What may be claimed, by whose word, and what is put where a record has vanished.

use std::time::Duration;

use super::{
    candidate::{Candidate, ME},
    fence, judging_by, lease, ms, released, timing, unheld, with_ttl,
};
use crate::{
    protocol::{Call, Expiry, Input, Reply},
    store::{Observed, When},
};

const D: Duration = Duration::from_secs(15);

/// A candidate that has just seen `other` hold a lease of 15 s, and looks again all the time without seeing any change,
/// until it has watched for at least `watched`, less what it takes to look once more. `ttl` is what the store says then.
fn watching(expiry: Expiry, watched: Duration, ttl: Option<Duration>) -> Candidate {
    let mut candidate = Candidate::new(judging_by(expiry));
    let first_seen = candidate.now;
    candidate.inspected(Some(lease("other", 4, 7)));
    while candidate.now.saturating_since(first_seen) < watched {
        candidate.advance_to_call();
        let is_last = candidate.now.saturating_since(first_seen) >= watched;
        let shown = if is_last { ttl } else { Some(D) };
        candidate.inspected(Some(with_ttl(lease("other", 4, 7), shown)));
    }
    candidate
}

fn claim(candidate: &Candidate) -> Option<When> {
    match candidate.asked() {
        Some(Call::Acquire(request)) => Some(request.when),
        _ => None,
    }
}

#[test]
fn an_election_without_a_record_is_claimed_by_one_who_never_saw_any() {
    let candidate = Candidate::acquiring(timing());
    let request = candidate.acquire();
    assert_eq!((&request.observed, request.floor), (&None, None));
    assert_eq!(request.duration, D);
}

#[test]
fn a_released_lease_is_claimed_as_it_was_observed() {
    let mut candidate = Candidate::new(timing());
    candidate.inspected(Some(released(lease("other", 4, 7))));
    let request = candidate.acquire();
    assert_eq!(request.observed, Some(Observed::new(fence(4), 7.into())));
    assert_eq!((request.when, request.floor), (When::Unchanged, Some(fence(4))));
}

#[test]
fn a_lease_of_its_own_is_claimed_as_a_new_term_and_never_extended() {
    for ttl in [None, Some(Duration::ZERO), Some(D)] {
        let mut candidate = Candidate::new(timing());
        candidate.inspected(Some(with_ttl(lease(ME, 4, 7), ttl)));
        let request = candidate.acquire();
        assert_eq!(request.observed, Some(Observed::new(fence(4), 7.into())));
        assert_eq!(request.floor, Some(fence(4)), "the new fence is above the old one");
    }
}

#[test]
fn a_lease_that_somebody_holds_is_left_alone() {
    for expiry in [Expiry::Either, Expiry::Observed, Expiry::Both] {
        for ttl in [None, Some(ms(1)), Some(D)] {
            let mut candidate = Candidate::new(judging_by(expiry));
            candidate.inspected(Some(with_ttl(lease("other", 4, 7), ttl)));
            assert_eq!(candidate.asked(), None);
        }
    }
}

#[test]
fn either_believes_the_clock_of_the_store_at_once() {
    let candidate = watching(Expiry::Either, ms(1), Some(Duration::ZERO));
    assert_eq!(claim(&candidate), Some(When::Expired));
}

#[test]
fn either_repairs_a_store_clock_that_was_set_back_by_watching() {
    assert_eq!(claim(&watching(Expiry::Either, ms(11_000), Some(D))), None);
    assert_eq!(claim(&watching(Expiry::Either, D, Some(D))), Some(When::Unchanged));
}

#[test]
fn observed_believes_its_own_eyes_alone() {
    assert_eq!(claim(&watching(Expiry::Observed, ms(11_000), Some(Duration::ZERO))), None);
    assert_eq!(claim(&watching(Expiry::Observed, D, Some(D))), Some(When::Unchanged));
    assert_eq!(claim(&watching(Expiry::Observed, D, None)), Some(When::Unchanged));
}

#[test]
fn both_wants_both_or_has_watched_twice_as_long() {
    assert_eq!(claim(&watching(Expiry::Both, ms(11_000), Some(Duration::ZERO))), None);
    assert_eq!(claim(&watching(Expiry::Both, D, Some(ms(1)))), None);
    assert_eq!(claim(&watching(Expiry::Both, D, Some(Duration::ZERO))), Some(When::Expired));
    assert_eq!(claim(&watching(Expiry::Both, 2 * D, Some(D))), Some(When::Unchanged));
}

#[test]
fn watching_starts_anew_with_each_version() {
    let mut candidate = Candidate::new(judging_by(Expiry::Observed));
    for version in 1..20 {
        candidate.inspected(Some(lease("other", 4, version)));
        candidate.advance_to_call();
    }
    candidate.inspected(Some(lease("other", 4, 20)));
    assert_eq!(candidate.asked(), None);
}

#[test]
fn watching_counts_from_the_reply_not_from_the_look() {
    let mut candidate = Candidate::new(judging_by(Expiry::Observed));
    candidate.advance(ms(2_000));
    candidate.inspected(Some(lease("other", 4, 7)));
    let first_seen = candidate.now;
    loop {
        candidate.advance_to_call();
        candidate.inspected(Some(lease("other", 4, 7)));
        let watched = candidate.now.saturating_since(first_seen);
        assert_eq!(claim(&candidate).is_some(), watched >= D, "watched for {watched:?}");
        if watched >= D {
            return;
        }
    }
}

#[test]
fn the_watch_is_over_the_duration_in_the_record() {
    let mut longer = lease("other", 4, 7);
    longer.duration = ms(40_000);
    let mut candidate = Candidate::new(judging_by(Expiry::Observed));
    let first_seen = candidate.now;
    while claim(&candidate).is_none() {
        candidate.inspected(Some(longer.clone()));
        if claim(&candidate).is_none() {
            candidate.advance_to_call();
        }
    }
    let watched = candidate.now.saturating_since(first_seen);
    assert!(watched >= ms(40_000), "watched for {watched:?}");
}

#[test]
fn a_look_comes_when_the_lease_can_have_expired_not_a_period_later() {
    let mut candidate = Candidate::new(timing());
    candidate.inspected(Some(with_ttl(lease("other", 4, 7), ms(700))));
    assert_eq!(candidate.wakes_in(), ms(703));
}

#[test]
fn where_a_record_has_vanished_one_is_placed_and_not_claimed() {
    let mut longest = lease("other", 4, 7);
    longest.duration = ms(40_000);
    let mut candidate = Candidate::new(timing());
    for seen in [longest, lease("other", 5, 8)] {
        candidate.inspected(Some(seen));
        candidate.advance_to_call();
    }
    candidate.inspected(None);
    let Some(Call::Place(request)) = candidate.asked() else { panic!("{:?}", candidate.asked()) };
    assert_eq!((request.duration, request.floor), (ms(40_000), Some(fence(5))));
}

#[test]
fn a_placed_record_is_claimed_when_it_has_expired() {
    let mut candidate = Candidate::new(timing());
    candidate.inspected(Some(lease("other", 4, 7)));
    candidate.advance_to_call();
    candidate.inspected(None);
    candidate.reply(Reply::Placed(unheld(lease("nobody", 4, 8))));
    assert_eq!(candidate.asked(), None);
    candidate.advance_to_call();
    candidate.inspected(Some(with_ttl(unheld(lease("nobody", 4, 8)), ms(12_000))));
    assert_eq!(candidate.asked(), None);
    candidate.advance_to_call();
    candidate.inspected(Some(with_ttl(unheld(lease("nobody", 4, 8)), Duration::ZERO)));
    assert_eq!(candidate.acquire().floor, Some(fence(4)));
}

#[test]
fn absence_is_not_claimable_either_for_one_whose_acquire_lost() {
    let mut candidate = Candidate::acquiring(timing());
    candidate.lost(Some(lease("other", 1, 1)));
    candidate.advance_to_call();
    candidate.inspected(None);
    assert!(matches!(candidate.asked(), Some(Call::Place(_))), "{:?}", candidate.asked());
}

#[test]
fn a_leader_whose_record_was_deleted_places_one_before_it_leads_again() {
    let mut candidate = Candidate::leading(timing());
    candidate.advance_to_call();
    candidate.lost(None);
    candidate.inspected(None);
    assert!(matches!(candidate.asked(), Some(Call::Place(_))), "{:?}", candidate.asked());
}

#[test]
fn a_lease_that_shows_another_holder_was_not_won() {
    for shown in [lease("other", 1, 1), unheld(lease(ME, 1, 1)), released(lease(ME, 1, 1))] {
        let mut candidate = Candidate::acquiring(timing());
        candidate.won(shown.clone());
        assert_eq!(candidate.take_changes(), [], "{shown:?}");
        candidate.advance_to_call();
        assert_eq!(candidate.asked(), Some(&Call::Inspect), "what became of it is to be seen");
    }
}

#[test]
fn a_record_that_is_back_with_a_lower_fence_does_not_lower_the_floor() {
    let mut candidate = Candidate::new(timing());
    candidate.inspected(Some(lease("other", 90, 7)));
    candidate.advance_to_call();
    candidate.inspected(Some(released(lease("other", 3, 99))));
    let request = candidate.acquire();
    assert_eq!(request.observed, Some(Observed::new(fence(3), 99.into())));
    assert_eq!(request.floor, Some(fence(90)));
}

#[test]
fn an_observer_writes_nothing_whatever_it_finds() {
    let found = [
        None,
        Some(released(lease("other", 4, 7))),
        Some(with_ttl(lease("other", 4, 7), Duration::ZERO)),
        Some(with_ttl(unheld(lease("nobody", 4, 8)), Duration::ZERO)),
        None,
    ];
    let mut observer = Candidate::observer(timing());
    for record in found.into_iter().cycle().take(50) {
        observer.inspected(record);
        assert_eq!(observer.asked(), None);
        assert!(observer.wakes_in() >= ms(2_400), "looks as often as any follower");
        observer.advance_to_call();
    }
}

#[test]
fn an_observer_that_becomes_eligible_looks_at_once_and_claims() {
    let mut candidate = Candidate::observer(timing());
    candidate.inspected(None);
    candidate.advance(ms(100));
    candidate.give(Input::Eligible(true));
    candidate.inspected(None);
    assert_eq!(claim(&candidate), Some(When::Unchanged));
}

#[test]
fn one_that_pauses_places_a_record_but_claims_none() {
    let mut candidate = Candidate::new(timing());
    candidate.give(Input::Resign);
    candidate.inspected(Some(released(lease("other", 4, 7))));
    assert_eq!(candidate.asked(), None);
    candidate.advance_to_call();
    candidate.inspected(None);
    assert!(matches!(candidate.asked(), Some(Call::Place(_))), "{:?}", candidate.asked());
}
