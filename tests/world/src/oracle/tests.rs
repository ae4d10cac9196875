//! Every property can fail: histories in which just one thing is not as it must be.

mod good_times;

use std::time::Duration;

use tenure::{
    Fence, Identity, Instant, TermEnd, Timing,
    protocol::Call,
    store::{AcquireRequest, Observed, ReleaseRequest, RenewRequest},
};

use super::*;
use crate::{
    event::{CallKind, CallResult, Wish},
    record::Store,
};

const LEASE: Duration = Duration::from_secs(15);

/// Two candidates, whose clocks show true time, and a store.
struct History {
    oracle: Oracle,
    store: Store,
    number: u64,
}

fn who(slot: usize) -> Who {
    Who { slot, incarnation: 0 }
}

fn identity(slot: usize) -> Identity {
    Identity::new(who(slot).to_string()).unwrap()
}

fn ms(ms: u64) -> Moment {
    Moment::from_nanos(ms * 1_000_000)
}

fn local(at: u64) -> Instant {
    Instant::from_nanos(at * 1_000_000)
}

impl History {
    fn new() -> Self {
        let clock = Skew::default();
        let mut oracle = Oracle::new(StoreKind::Memory, Properties::ALL);
        let timing = Timing::builder().lease_duration(LEASE).build().unwrap();
        for slot in 0..2 {
            oracle.joined(who(slot), &identity(slot), timing, clock, true, true);
        }
        Self { oracle, store: Store::new(StoreKind::Memory, clock), number: 0 }
    }

    fn tell(&mut self, at: u64, slot: usize, what: What) {
        self.oracle.observe(&Event { at: ms(at), who: Some(who(slot)), what });
    }

    fn execute(&mut self, at: u64, slot: usize, call: &Call) {
        let before = self.store.log().len();
        let _ = self.store.execute(call, ms(at));
        for commit in &self.store.log()[before..] {
            self.oracle.committed(Some(who(slot)), commit);
        }
    }

    /// Is given the lease, whatever stands there.
    fn acquire(&mut self, at: u64, slot: usize) -> Fence {
        let observed = self.store.row().map(|row| Observed::from(&row.lease));
        let request = AcquireRequest::new(identity(slot), observed, LEASE);
        self.execute(at, slot, &Call::Acquire(request));
        self.store.row().unwrap().lease.fence
    }

    /// Is given the lease and leads by it, until 13.5 s later.
    fn lead(&mut self, at: u64, slot: usize) -> Fence {
        let (call, result) = (CallKind::Acquire, CallResult::Won);
        self.tell(at, slot, What::Executed { number: 0, call, result, late: None });
        let fence = self.acquire(at, slot);
        self.tell(at, slot, What::Started { fence, deadline: local(at + 13_500) });
        fence
    }

    fn send(&mut self, at: u64, slot: usize, call: CallKind) {
        self.number += 1;
        self.tell(at, slot, What::Sent { number: self.number, call, fence: None });
    }

    fn answer(&mut self, at: u64, slot: usize, fence: Fence, result: CallResult) {
        self.number += 1;
        let (number, call) = (self.number, CallKind::Renew);
        self.tell(at, slot, What::Sent { number, call, fence: Some(fence) });
        self.tell(at, slot, What::Answered { number, call, result, left: None });
    }

    #[track_caller]
    fn violates(&self, property: Property) {
        let found = self.oracle.violation().map(|violation| violation.property);
        assert_eq!(found, Some(property), "{:?}", self.oracle.violation());
    }

    #[track_caller]
    fn is_fine(&self) {
        assert_eq!(self.oracle.violation(), None);
    }
}

#[test]
fn an_orderly_hand_over_violates_nothing() {
    let mut history = History::new();
    let fence = history.lead(0, 0);
    history.tell(1_000, 0, What::Polled { fence });
    history.tell(2_000, 0, What::Asked(Wish::Resign));
    history.tell(2_000, 0, What::Cancelled(TermEnd::Resigned));
    history.tell(2_000, 0, What::Ended(TermEnd::Resigned));
    history.execute(2_001, 0, &Call::Release(ReleaseRequest::new(identity(0), fence)));
    history.lead(2_100, 1);
    history.is_fine();
}

#[test]
fn two_terms_that_are_live_at_once_are_found() {
    let mut history = History::new();
    history.oracle.watched = Properties::ALL.without(NoClaimOverLive);
    history.lead(0, 0);
    history.lead(13_499, 1);
    history.violates(OneLeader);
}

#[test]
fn an_extension_beside_another_term_is_found() {
    let mut history = History::new();
    history.oracle.watched = Properties::ALL.without(OverIsOver);
    let fence = history.lead(0, 0);
    history.execute(13_000, 0, &Call::Renew(RenewRequest::new(identity(0), fence, LEASE)));
    history.lead(13_600, 1);
    history.is_fine();
    history.tell(13_601, 0, What::Extended { deadline: local(26_500) });
    history.violates(OneLeader);
}

#[test]
fn a_claim_over_a_live_term_is_found_before_anybody_leads_by_it() {
    let mut history = History::new();
    history.lead(0, 0);
    history.acquire(13_499, 1);
    history.violates(NoClaimOverLive);
}

#[test]
fn a_fence_that_is_given_out_a_second_time_is_found() {
    let mut history = History::new();
    history.acquire(0, 0);
    history.store.delete(ms(20_000));
    history.oracle.committed(None, history.store.log().last().unwrap());
    history.acquire(20_001, 1);
    history.violates(FencesRise);
}

#[test]
fn terms_in_another_order_than_their_fences_are_found() {
    let mut history = History::new();
    let first = history.acquire(0, 0);
    history.lead(10, 1);
    history.tell(11, 1, What::Asked(Wish::Resign));
    history.tell(11, 1, What::Ended(TermEnd::Resigned));
    history.tell(12, 0, What::Started { fence: first, deadline: local(13_000) });
    // What was confirmed to it was under this fence.
    history.violates(FencesRise);
}

#[test]
fn a_fence_that_is_somebody_elses_is_found() {
    let mut history = History::new();
    history.oracle.watched = Properties::ALL.without(DeadlinesAreProven);
    let fence = history.acquire(0, 0);
    history.tell(1, 1, What::Started { fence, deadline: local(13_500) });
    history.violates(FencesAreOwn);
}

#[test]
fn work_that_is_polled_at_the_deadline_is_found() {
    let mut history = History::new();
    let fence = history.lead(0, 0);
    history.tell(13_499, 0, What::Polled { fence });
    history.is_fine();
    history.tell(13_500, 0, What::Polled { fence });
    history.violates(NoPollPastDeadline);
}

#[test]
fn a_deadline_that_is_later_than_the_write_allows_is_found() {
    let mut history = History::new();
    let fence = history.acquire(0, 0);
    history.tell(1, 0, What::Started { fence, deadline: local(13_501) });
    history.violates(DeadlinesAreProven);
}

#[test]
fn a_term_that_is_over_and_then_live_again_is_found() {
    let mut history = History::new();
    let fence = history.lead(0, 0);
    history.execute(13_000, 0, &Call::Renew(RenewRequest::new(identity(0), fence, LEASE)));
    history.tell(13_500, 0, What::Extended { deadline: local(26_500) });
    history.violates(OverIsOver);
}

#[test]
fn ends_that_nothing_calls_for_are_found() {
    let reasons = [TermEnd::Expired, TermEnd::Lost, TermEnd::Resigned, TermEnd::Shutdown];
    for reason in reasons {
        let mut history = History::new();
        history.lead(0, 0);
        history.tell(13_499, 0, What::Ended(reason));
        history.violates(EndsAreProven);
    }
}

#[test]
fn a_renewal_that_failed_is_no_proof_and_one_that_lost_is() {
    for (result, is_proof) in [(CallResult::Failed, false), (CallResult::Lost, true)] {
        let mut history = History::new();
        let fence = history.lead(0, 0);
        history.answer(5_000, 0, fence, result);
        history.tell(5_000, 0, What::Ended(TermEnd::Lost));
        assert_eq!(history.oracle.violation().is_none(), is_proof);
    }
}

#[test]
fn going_on_after_a_proof_is_found() {
    let mut history = History::new();
    let fence = history.lead(0, 0);
    history.answer(5_000, 0, fence, CallResult::Lost);
    history.tell(5_001, 0, What::Polled { fence });
    history.violates(ProofIsHeeded);
}

#[test]
fn an_end_that_does_not_wait_for_the_work_is_found() {
    let mut history = History::new();
    history.lead(0, 0);
    history.tell(1, 0, What::WorkBegun);
    history.tell(1_000, 0, What::Asked(Wish::Resign));
    history.tell(10_999, 0, What::Ended(TermEnd::Resigned));
    history.violates(DrainsFirst);
}

#[test]
fn a_release_over_a_guard_is_found_when_it_is_sent_and_when_it_is_executed() {
    for is_sent in [true, false] {
        let mut history = History::new();
        let fence = history.lead(0, 0);
        history.tell(1, 0, What::GuardTaken(None));
        history.tell(13_500, 0, What::Ended(TermEnd::Expired));
        if is_sent {
            let (number, call) = (9, CallKind::Release);
            history.tell(13_501, 0, What::Sent { number, call, fence: Some(fence) });
        } else {
            let release = ReleaseRequest::new(identity(0), fence);
            history.execute(13_501, 0, &Call::Release(release));
        }
        history.violates(NoReleaseOverWork);
    }
}

#[test]
fn a_release_under_a_term_that_is_not_over_is_found() {
    let mut history = History::new();
    let fence = history.lead(0, 0);
    history.execute(1, 0, &Call::Release(ReleaseRequest::new(identity(0), fence)));
    history.violates(NoReleaseOverWork);
}

#[test]
fn a_term_over_an_old_guard_is_found() {
    let mut history = History::new();
    history.lead(0, 0);
    history.tell(1, 0, What::GuardTaken(None));
    history.tell(13_500, 0, What::Ended(TermEnd::Expired));
    history.lead(15_000, 0);
    history.violates(NoTermOverGuards);
}

#[test]
fn a_release_that_is_undone_is_found() {
    let mut history = History::new();
    let fence = history.acquire(0, 0);
    history.execute(1, 0, &Call::Release(ReleaseRequest::new(identity(0), fence)));
    let mut commit = history.store.log().last().unwrap().clone();
    commit.write = Write::Renewed;
    let row = commit.row.as_mut().unwrap();
    row.lease.released = false;
    row.lease.version = 9_u64.into();
    history.oracle.committed(Some(who(0)), &commit);
    history.violates(ReleasedStaysReleased);
}

#[test]
fn a_deadline_that_is_later_than_the_answer_allows_is_found() {
    for (left, is_too_long) in [(LEASE, false), (LEASE - Duration::from_nanos(1), true)] {
        let mut history = History::new();
        history.send(0, 0, CallKind::Acquire);
        let fence = history.acquire(0, 0);
        let (number, call, result) = (history.number, CallKind::Acquire, CallResult::Won);
        history.tell(1, 0, What::Answered { number, call, result, left: Some(left) });
        history.tell(1, 0, What::Started { fence, deadline: local(13_500) });
        assert_eq!(history.oracle.violation().is_some(), is_too_long);
    }
}

#[test]
fn leading_within_the_pause_is_found() {
    let mut history = History::new();
    history.oracle.watched = Properties::ALL.without(GivenBack);
    history.lead(0, 0);
    history.tell(100, 0, What::Asked(Wish::Resign));
    history.tell(1_000, 0, What::Ended(TermEnd::Resigned));
    // Two retry periods and an operation timeout.
    history.lead(9_999, 0);
    history.violates(ResignPauseIsKept);
}

#[test]
fn leaders_that_do_not_want_to_are_found() {
    for wish in [Wish::Eligible(false), Wish::Shutdown(Duration::MAX)] {
        let mut history = History::new();
        history.tell(0, 0, What::Asked(wish));
        history.lead(1, 0);
        history.violates(LeadersAreWilling);
    }
}

#[test]
fn a_write_that_the_contract_does_not_allow_is_found() {
    let mut history = History::new();
    history.acquire(0, 0);
    let mut commit = history.store.log().last().unwrap().clone();
    let row = commit.row.as_mut().unwrap();
    row.lease.version = 9_u64.into();
    row.lease.fence = 9_i64.try_into().unwrap();
    // It claims to have found nothing, but a record is there.
    history.oracle.committed(Some(who(1)), &commit);
    history.violates(LogIsSound);
}

#[test]
fn a_version_that_repeats_is_found() {
    let mut history = History::new();
    let fence = history.acquire(0, 0);
    history.execute(1, 0, &Call::Renew(RenewRequest::new(identity(0), fence, LEASE)));
    history.oracle.committed(Some(who(0)), history.store.log().last().unwrap());
    history.violates(LogIsSound);
}

#[test]
fn a_property_that_is_not_watched_is_passed_over() {
    let mut history = History::new();
    history.oracle.watched = Properties::ALL.without(NoClaimOverLive).without(OneLeader);
    history.lead(0, 0);
    history.lead(13_499, 1);
    history.is_fine();
}

#[test]
fn a_term_that_begins_after_its_deadline_is_found_unless_the_thread_was_not_run() {
    for is_preempted in [true, false] {
        let mut history = History::new();
        history.oracle.watched = Properties::ALL.without(GivenBack);
        let fence = history.acquire(0, 0);
        if is_preempted {
            history.tell(1, 0, What::Preempted(true));
            history.tell(13_500, 0, What::Preempted(false));
        }
        history.tell(13_500, 0, What::Started { fence, deadline: local(13_500) });
        if is_preempted {
            history.is_fine();
        } else {
            history.violates(StartsInTime);
        }
    }
}

#[test]
fn an_elector_that_goes_round_in_circles_is_found() {
    let mut history = History::new();
    history.oracle.spins(ms(1), who(0));
    history.violates(NoHotLoop);
}

#[test]
fn going_on_as_if_nobody_had_asked_for_a_hand_over_is_found() {
    for wish in [Wish::Resign, Wish::Eligible(false), Wish::Shutdown(Duration::MAX)] {
        let mut history = History::new();
        let fence = history.lead(0, 0);
        history.tell(1, 0, What::Asked(wish));
        history.tell(2, 0, What::Polled { fence });
        history.violates(LeadersAreWilling);
    }
}
