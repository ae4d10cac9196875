//! Leading and draining: what extends a term, and what ends it.

use std::time::Duration;

use super::{
    candidate::{Candidate, ME},
    fence, lease, ms, timing, with_ttl,
};
use crate::{
    lease::TermEnd,
    protocol::{Call, Change, Input, Levels, Phase, Reply, Step},
};

const BUSY: Levels = Levels { guards: 0, in_flight: 1 };

fn draining(input: Input) -> Candidate {
    let mut candidate = Candidate::leading(timing());
    candidate.levels = BUSY;
    candidate.give(input);
    assert_eq!(candidate.phase(), Phase::Draining);
    candidate
}

#[test]
fn a_leader_renews_from_send_to_send() {
    let mut candidate = Candidate::leading(timing());
    let mut sent = Vec::new();
    for version in 2..5 {
        candidate.advance_to_call();
        sent.push(candidate.now);
        candidate.advance(ms(700));
        candidate.won(lease(ME, 1, version));
    }
    assert_eq!(sent[1].saturating_since(sent[0]), ms(5_000));
    assert_eq!(sent[2].saturating_since(sent[1]), ms(5_000));
}

#[test]
fn a_renewal_names_the_term_and_the_duration_and_its_deadline_counts_from_the_send() {
    let mut candidate = Candidate::leading(timing());
    let Call::Renew(request) = candidate.advance_to_call() else { panic!("expected a renewal") };
    assert_eq!((request.fence, request.duration), (fence(1), ms(15_000)));
    let sent = candidate.now;
    candidate.advance(ms(2_500));
    candidate.won(lease(ME, 1, 2));
    assert_eq!(candidate.take_changes(), [Change::Extended { deadline: sent + ms(13_500) }]);
}

#[test]
fn a_confirmation_can_also_bring_the_deadline_nearer() {
    let mut candidate = Candidate::leading(timing());
    candidate.advance_to_call();
    candidate.won(with_ttl(lease(ME, 1, 2), ms(4_000)));
    assert_eq!(candidate.remaining(), Some(ms(2_500)));

    let mut candidate = Candidate::leading(timing());
    candidate.advance_to_call();
    candidate.won(with_ttl(lease(ME, 1, 2), ms(1_500)));
    assert_eq!(candidate.take_changes().last(), Some(&Change::Ended(TermEnd::Expired)));
}

#[test]
fn a_failed_renewal_ends_nothing_and_is_repeated_until_the_deadline() {
    let mut candidate = Candidate::leading(timing());
    let won = candidate.now;
    let mut renewals = 0;
    while candidate.phase() == Phase::Leading {
        candidate.advance_to_call();
        if candidate.is_renewing() {
            assert_eq!(candidate.phase(), Phase::Leading);
            renewals += 1;
            candidate.reply(Reply::Failed);
        }
    }
    assert_eq!(renewals, 7, "at 5 s, and every 1.25 s before 13.5 s");
    assert_eq!(candidate.now.saturating_since(won), ms(13_500));
    assert_eq!(candidate.take_changes(), [Change::Ended(TermEnd::Expired)]);
}

#[test]
fn a_hanging_renewal_does_not_keep_a_term_from_ending() {
    let mut candidate = Candidate::leading(timing());
    let won = candidate.now;
    while candidate.protocol.term().is_some() {
        let wakes_in = candidate.wakes_in();
        candidate.advance(wakes_in);
    }
    assert_eq!(candidate.now.saturating_since(won), ms(13_500));
    assert_eq!(candidate.take_changes(), [Change::Ended(TermEnd::Expired)]);
}

#[test]
fn the_clock_decides_before_a_confirmation_is_looked_at() {
    let mut candidate = Candidate::leading(timing());
    candidate.advance_to_call();
    candidate.sleep(ms(8_500));
    candidate.won(lease(ME, 1, 2));
    assert_eq!(candidate.take_changes(), [Change::Ended(TermEnd::Expired)]);
    assert!(candidate.is_releasing());
}

#[test]
fn a_confirmation_just_before_the_old_deadline_counts() {
    let mut candidate = Candidate::leading(timing());
    candidate.advance_to_call();
    candidate.sleep(ms(8_499));
    candidate.won(lease(ME, 1, 2));
    assert_eq!(candidate.remaining(), Some(ms(5_001)));
}

#[test]
fn whatever_comes_at_the_deadline_finds_the_term_over() {
    let inputs = [Input::Wake, Input::Hint, Input::Resign, Input::Shutdown, Input::Eligible(false)];
    for input in inputs {
        let mut candidate = Candidate::leading(timing());
        candidate.levels = BUSY;
        candidate.sleep(ms(13_500));
        candidate.give(input.clone());
        let changes = candidate.take_changes();
        assert_eq!(changes[0], Change::Ended(TermEnd::Expired), "{input:?}");
    }
}

#[test]
fn a_term_is_over_when_somebody_else_has_seen_its_deadline_pass() {
    for mut candidate in [Candidate::leading(timing()), draining(Input::Resign)] {
        candidate.take_changes();
        candidate.give(Input::Over);
        assert_eq!(candidate.take_changes(), [Change::Ended(TermEnd::Expired)]);
        assert!(candidate.is_releasing());
    }
}

#[test]
fn proof_ends_a_term_at_once_and_leaves_nothing_to_release() {
    let proofs = [None, Some(lease("other", 2, 2)), Some(lease(ME, 1, 1))];
    for proof in proofs {
        let mut candidate = Candidate::leading(timing());
        candidate.advance_to_call();
        candidate.lost(proof.clone());
        assert_eq!(candidate.take_changes(), [Change::Ended(TermEnd::Lost)], "{proof:?}");
        assert_eq!(candidate.asked(), Some(&Call::Inspect), "follows at once");
    }
}

#[test]
fn a_renewal_of_another_term_is_no_confirmation() {
    for renewed in [lease(ME, 2, 2), lease("other", 1, 2), super::released(lease(ME, 1, 2))] {
        let mut candidate = Candidate::leading(timing());
        candidate.advance_to_call();
        candidate.won(renewed.clone());
        assert_eq!(candidate.take_changes(), [Change::Ended(TermEnd::Lost)], "{renewed:?}");
    }
}

#[test]
fn hints_do_not_concern_a_leader() {
    let mut candidate = Candidate::leading(timing());
    let before = candidate.protocol.clone();
    candidate.give(Input::Hint);
    assert_eq!(candidate.protocol, before);
}

#[test]
fn a_voluntary_end_cancels_first_and_renews_while_work_is_out() {
    for levels in [BUSY, Levels { guards: 1, in_flight: 0 }] {
        let mut candidate = Candidate::leading(timing());
        candidate.levels = levels;
        candidate.give(Input::Resign);
        assert_eq!(candidate.take_changes(), [Change::Cancelled(TermEnd::Resigned)]);
        candidate.advance_to_call();
        assert!(candidate.is_renewing());
        candidate.won(lease(ME, 1, 2));
        assert!(matches!(candidate.take_changes()[..], [Change::Extended { .. }]));
        candidate.levels = Levels::default();
        candidate.give(Input::Wake);
        assert_eq!(candidate.take_changes(), [Change::Ended(TermEnd::Resigned)]);
        assert!(candidate.is_releasing());
    }
}

#[test]
fn a_voluntary_end_without_work_cancels_ends_and_releases_at_once() {
    let mut candidate = Candidate::leading(timing());
    candidate.give(Input::Resign);
    let end = TermEnd::Resigned;
    assert_eq!(candidate.take_changes(), [Change::Cancelled(end), Change::Ended(end)]);
    assert!(candidate.is_releasing());
}

#[test]
fn work_that_began_before_the_end_was_public_is_waited_for() {
    let mut candidate = Candidate::leading(timing());
    let step = candidate.step(Input::Resign);
    assert_eq!((step.changes, step.call), (vec![Change::Cancelled(TermEnd::Resigned)], None));
    candidate.levels = BUSY;
    candidate.give(Input::Wake);
    assert_eq!((candidate.phase(), candidate.asked()), (Phase::Draining, None));
}

#[test]
fn a_guard_that_was_taken_before_the_end_was_public_is_not_released_over() {
    let ends: [fn(&mut Candidate) -> Step; 3] = [
        |candidate| {
            let _cancelled = candidate.step(Input::Shutdown);
            candidate.step(Input::Wake)
        },
        |candidate| {
            candidate.sleep(ms(13_500));
            candidate.step(Input::Wake)
        },
        |candidate| candidate.step(Input::Over),
    ];
    for end in ends {
        let mut candidate = Candidate::leading(timing());
        let step = end(&mut candidate);
        assert!(matches!(step.changes[..], [Change::Ended(_)]) && step.recount, "{step:?}");
        candidate.levels = Levels { guards: 1, in_flight: 0 };
        candidate.give(Input::Wake);
        assert_eq!((candidate.phase(), candidate.asked()), (Phase::Relinquishing, None));
    }
}

#[test]
fn a_drain_takes_no_longer_than_its_timeout() {
    let mut candidate = draining(Input::Resign);
    let resigned = candidate.now;
    candidate.take_changes();
    while candidate.phase() == Phase::Draining {
        candidate.advance_to_call();
        if candidate.is_renewing() {
            candidate.won(lease(ME, 1, 2));
        }
    }
    assert_eq!(candidate.now.saturating_since(resigned), timing().drain_timeout());
    assert!(candidate.is_releasing(), "work in flight is inert by now: {:?}", candidate.asked());
}

#[test]
fn a_drain_ends_at_the_deadline_or_by_proof_like_any_term() {
    let mut candidate = draining(Input::Shutdown);
    candidate.sleep(ms(13_500));
    candidate.give(Input::Wake);
    assert_eq!(candidate.take_changes()[1], Change::Ended(TermEnd::Expired));

    let mut candidate = draining(Input::Resign);
    candidate.advance_to_call();
    candidate.lost(None);
    assert_eq!(candidate.take_changes()[1], Change::Ended(TermEnd::Lost));
}

#[test]
fn a_shutdown_takes_over_from_a_resignation_with_what_is_left_of_its_time() {
    let mut candidate = draining(Input::Resign);
    candidate.advance(ms(4_000));
    candidate.give(Input::Shutdown);
    candidate.give(Input::Resign);
    candidate.advance(ms(6_000));
    let changes = candidate.take_changes();
    let expected = [Change::Cancelled(TermEnd::Resigned), Change::Ended(TermEnd::Shutdown)];
    assert_eq!(changes, expected);
}

#[test]
fn a_shutdown_may_give_work_less_time_and_never_more() {
    let within = |drain| Input::ShutdownWithin { drain };
    let cases = [
        (vec![within(ms(2_000))], ms(2_000)),
        (vec![within(Duration::MAX)], timing().drain_timeout()),
        (vec![Input::Shutdown, within(ms(2_000))], ms(2_000)),
        (vec![within(ms(2_000)), Input::Shutdown, within(ms(5_000))], ms(2_000)),
        (vec![Input::Resign, within(ms(2_000))], ms(2_000)),
        (vec![within(Duration::ZERO)], Duration::ZERO),
    ];
    for (inputs, expected) in cases {
        let mut candidate = Candidate::leading(timing());
        candidate.levels.in_flight = 1;
        let asked = candidate.now;
        for input in &inputs {
            candidate.give(input.clone());
        }
        while candidate.phase() == Phase::Draining {
            let wakes_in = candidate.wakes_in();
            candidate.advance(wakes_in);
            if candidate.is_renewing() {
                candidate.won(lease(ME, 1, 2));
            }
        }
        assert_eq!(candidate.now.saturating_since(asked), expected, "{inputs:?}");
        let expected = Change::Ended(TermEnd::Shutdown);
        assert_eq!(candidate.take_changes().last(), Some(&expected), "{inputs:?}");
    }
}

#[test]
fn becoming_ineligible_is_a_resignation_without_a_pause() {
    let mut candidate = Candidate::leading(timing());
    candidate.advance(ms(1_000));
    candidate.give(Input::Eligible(false));
    assert_eq!(candidate.take_changes().last(), Some(&Change::Ended(TermEnd::Resigned)));
    candidate.give(Input::Eligible(true));
    candidate.won(super::released(lease(ME, 1, 2)));
    candidate.inspected(Some(super::released(lease(ME, 1, 2))));
    assert_eq!(candidate.acquire().floor, Some(fence(1)), "contends again at once");
}

#[test]
fn the_pause_after_a_resignation_counts_from_following_again() {
    let mut candidate = Candidate::leading(timing());
    candidate.levels = Levels { guards: 1, in_flight: 0 };
    candidate.give(Input::Resign);
    candidate.advance(ms(60_000));
    candidate.levels = Levels::default();
    candidate.give(Input::Wake);
    candidate.won(super::released(lease(ME, 1, 2)));
    let follows = candidate.now;
    loop {
        candidate.inspected(Some(super::released(lease(ME, 1, 2))));
        if candidate.call.is_some() {
            break;
        }
        candidate.advance_to_call();
    }
    assert_eq!(candidate.now.saturating_since(follows), timing().resign_pause());
}
