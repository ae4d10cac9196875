//! Hints are coalesced, and no answer of a store makes a candidate ask in a hot loop.

use std::time::Duration;

use super::{
    candidate::{Candidate, ME},
    database::Skew,
    lease, ms, released, timing,
    world::{Answer, Fate, World},
};
use crate::{
    protocol::{Call, Input, Levels, Timing},
    store::Outcome,
};

fn followed() -> Candidate {
    let mut candidate = Candidate::new(timing());
    candidate.inspected(Some(lease("other", 4, 7)));
    candidate
}

#[test]
fn a_hint_makes_a_follower_look_at_once() {
    let mut candidate = followed();
    candidate.advance(ms(500));
    candidate.give(Input::Hint);
    assert_eq!(candidate.asked(), Some(&Call::Inspect));
}

#[test]
fn hints_that_come_close_together_are_one() {
    let mut candidate = followed();
    candidate.advance(ms(10));
    let mut looks = 0;
    for _ in 0..1_000 {
        candidate.advance(ms(1));
        candidate.give(Input::Hint);
        if candidate.call.is_some() {
            looks += 1;
            candidate.inspected(Some(lease("other", 4, 7)));
        }
    }
    assert_eq!(looks, 50, "one in 20 ms");
}

#[test]
fn a_hint_during_a_look_is_not_lost() {
    let mut candidate = Candidate::new(timing());
    candidate.advance(ms(5));
    candidate.give(Input::Hint);
    candidate.inspected(Some(lease("other", 4, 7)));
    assert_eq!(candidate.wakes_in(), ms(15));
    candidate.advance_to_call();
    candidate.inspected(Some(lease("other", 4, 7)));
    assert_eq!(candidate.wakes_in(), ms(3_000), "it counts once");
}

#[test]
fn a_hint_does_not_bring_a_look_forward_that_an_acquire_has_just_lost_for() {
    let mut candidate = Candidate::acquiring(timing());
    candidate.advance(ms(500));
    candidate.lost(Some(released(lease("other", 1, 1))));
    candidate.give(Input::Hint);
    assert_eq!((candidate.asked(), candidate.wakes_in()), (None, ms(20)));
}

#[test]
fn a_pause_does_not_look_more_often_than_any_follower() {
    let mut candidate = Candidate::leading(timing());
    candidate.advance(ms(1_000));
    candidate.give(Input::Resign);
    candidate.won(released(lease(ME, 1, 2)));
    let mut left = super::with_ttl(released(lease(ME, 1, 2)), Duration::ZERO);
    left.duration = ms(1);
    let resigned = candidate.now;
    let mut looks = 0;
    while candidate.now.saturating_since(resigned) < timing().resign_pause() {
        candidate.inspected(Some(left.clone()));
        looks += 1;
        candidate.advance_to_call();
    }
    assert_eq!(looks, 3);
}

/// The most calls that one of two candidates makes in a second, with a store that answers at once and does `fate` to
/// every call that `is_struck`. Everything that can make a candidate busy happens in between.
fn busiest_second(fate: Fate, is_struck: fn(&Call) -> bool) -> usize {
    let network = move |_: Duration, call: &Call| {
        if is_struck(call) { fate } else { Fate::round_trip(Duration::ZERO) }
    };
    let timing = Timing::builder().lease_duration(ms(3_000)).build().unwrap();
    let mut world = World::new(Skew::NONE, 7, Box::new(network));
    for _ in 0..2 {
        world.join(timing, Skew::NONE);
    }
    for round in 1..=40 {
        world.run(ms(1_000) * round, |_| false);
        let member = (round % 2) as usize;
        match round % 8 {
            0 => world.give(member, Input::Resign),
            2 => world.depose(),
            3 => world.delete(),
            4 => world.set_levels(member, Levels { guards: 1, in_flight: 1 }),
            5 => (0..2).for_each(|member| world.set_levels(member, Levels::default())),
            6 => (0..2).for_each(|member| world.give(member, Input::Hint)),
            7 => world.give(member, Input::Eligible(round % 16 == 7)),
            _ => {}
        }
    }
    let busiest = |member: usize| {
        let calls: Vec<Duration> =
            world.calls.iter().filter(|call| call.1 == member).map(|call| call.0).collect();
        let within = |(i, at): (usize, &Duration)| {
            calls[i..].iter().take_while(|other| **other < *at + ms(1_000)).count()
        };
        calls.iter().enumerate().map(within).max().unwrap_or(0)
    };
    busiest(0).max(busiest(1))
}

#[test]
fn a_store_that_refuses_or_denies_one_kind_of_call_at_once_is_not_asked_in_a_hot_loop() {
    type Kind = (&'static str, fn(&Call) -> bool);
    let kinds: [Kind; 6] = [
        ("inspect", |call| matches!(call, Call::Inspect)),
        ("place", |call| matches!(call, Call::Place(_))),
        ("acquire", |call| matches!(call, Call::Acquire(_))),
        ("renew", |call| matches!(call, Call::Renew(_))),
        ("release", |call| matches!(call, Call::Release(_))),
        ("everything", |_| true),
    ];
    for (kind, is_struck) in kinds {
        for answer in [Answer::Failed(Duration::ZERO), Answer::Lost] {
            let fate = Fate { executed: [None; 2], answer };
            let busiest = busiest_second(fate, is_struck);
            assert!(busiest <= 110, "{kind}, {answer:?}: {busiest} calls in a second");
        }
    }
}

/// Stores that break their contract: each answer is fine by itself, together they are contradictory.
#[test]
fn a_store_that_contradicts_itself_at_once_is_not_asked_in_a_hot_loop() {
    let answer = |call: &Call, round: u64| match call {
        Call::Inspect => crate::protocol::Reply::Inspected(Some(released(lease(ME, 1, round)))),
        Call::Acquire(_) => crate::protocol::Reply::Acquired(Outcome::Won(lease(ME, 1, round))),
        Call::Release(_) => {
            crate::protocol::Reply::Released(Outcome::Won(released(lease(ME, 1, round))))
        }
        other => panic!("{other:?}"),
    };
    let mut candidate = Candidate::new(timing());
    let started = candidate.now;
    let mut calls = 0;
    while candidate.now.saturating_since(started) < ms(1_000) && calls < 1_000 {
        calls += 1;
        let reply = answer(candidate.asked().unwrap(), calls);
        if candidate.reply(reply).call.is_none() {
            candidate.advance_to_call();
        }
    }
    assert!(calls <= 160, "{calls} calls in a second");
}
