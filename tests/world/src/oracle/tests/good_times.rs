//! What is owed when nothing is wrong: leases are given back, and leaders are followed.

use super::*;
use crate::event::Lateness;

/// What keeps a candidate from giving back what it needs no more.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Excuse {
    None,
    Guard,
    Frozen,
    Astray,
}

#[test]
fn a_lease_that_is_not_given_back_after_a_hand_over_is_found_unless_something_keeps_it_from_that() {
    for excuse in [Excuse::None, Excuse::Guard, Excuse::Frozen, Excuse::Astray] {
        let mut history = History::new();
        history.lead(0, 0);
        match excuse {
            Excuse::None => {}
            Excuse::Guard => history.tell(1, 0, What::GuardTaken(None)),
            Excuse::Frozen => history.tell(1, 0, What::Frozen(true)),
            Excuse::Astray => {
                history.send(1, 0, CallKind::Renew);
                let (number, call) = (history.number, CallKind::Renew);
                history.tell(1, 0, What::Astray { number, call });
            }
        }
        history.tell(100, 0, What::Asked(Wish::Resign));
        history.tell(100, 0, What::Cancelled(TermEnd::Resigned));
        history.oracle.watched = Properties::ALL.without(DrainsFirst);
        history.tell(100, 0, What::Ended(TermEnd::Resigned));
        history.tell(124, 1, What::Joined);
        history.is_fine();
        history.tell(125, 1, What::Joined);
        match excuse {
            Excuse::None => history.violates(GivenBack),
            _ => history.is_fine(),
        }
    }
}

#[test]
fn a_lease_that_was_won_late_and_is_not_wanted_is_to_be_found_and_given_back() {
    let mut history = History::new();
    history.tell(0, 0, What::Asked(Wish::Eligible(false)));
    let late = Some(Lateness::GivenUp);
    let (call, result) = (CallKind::Acquire, CallResult::Won);
    history.tell(0, 0, What::Executed { number: 1, call, result, late });
    history.acquire(0, 0);
    // A look, which may be a fifth late, and the release.
    history.tell(3_600, 1, What::Joined);
    history.is_fine();
    history.tell(4_100, 1, What::Joined);
    history.violates(GivenBack);
}

#[test]
fn stopping_without_giving_back_and_without_waiting_for_an_acquire_are_found() {
    let mut history = History::new();
    history.lead(0, 0);
    history.tell(1, 0, What::Asked(Wish::Shutdown(Duration::MAX)));
    history.tell(1, 0, What::Cancelled(TermEnd::Shutdown));
    history.tell(1, 0, What::Ended(TermEnd::Shutdown));
    history.tell(1, 0, What::Stopped(0));
    history.violates(GivenBack);

    let mut history = History::new();
    history.send(0, 0, CallKind::Acquire);
    history.tell(1, 0, What::Stopped(0));
    let (number, call, result) = (history.number, CallKind::Acquire, CallResult::Won);
    history.tell(2, 0, What::Executed { number, call, result, late: None });
    history.violates(GivenBack);
}

#[test]
fn a_fleet_whose_leader_is_not_followed_in_time_is_found() {
    let losses = [(Loss::Death, FailsOverInTime), (Loss::HandOver, HandsOverInTime)];
    for (loss, property) in losses {
        let mut history = History::new();
        let leads_by = ms(30_000);
        let vacant = What::Vacant { loss, leads_by };
        history.oracle.observe(&Event { at: ms(0), who: None, what: vacant });
        history.tell(30_000, 0, What::Joined);
        history.is_fine();
        history.tell(30_001, 0, What::Joined);
        history.violates(property);
    }
}

#[test]
fn a_fleet_without_a_leader_is_found_when_it_should_have_one() {
    let mut history = History::new();
    let leads_by = ms(30_000);
    history.oracle.observe(&Event { at: ms(0), who: None, what: What::Settled { leads_by } });
    history.tell(30_000, 0, What::Joined);
    history.is_fine();
    history.tell(30_001, 0, What::Joined);
    history.violates(LeadsInTime);
}

#[test]
fn a_fleet_that_has_lost_its_leader_in_the_end_is_found() {
    let mut history = History::new();
    let leads_by = ms(30_000);
    history.oracle.observe(&Event { at: ms(0), who: None, what: What::Settled { leads_by } });
    history.lead(1, 0);
    history.oracle.finish(ms(60_000));
    history.violates(LeadsInTime);
}

#[test]
fn a_leader_that_steps_down_though_all_is_well_is_found() {
    let mut history = History::new();
    let leads_by = ms(30_000);
    history.oracle.observe(&Event { at: ms(0), who: None, what: What::Settled { leads_by } });
    history.lead(1, 0);
    history.tell(13_501, 0, What::Ended(TermEnd::Expired));
    history.violates(StaysLeader);
}
