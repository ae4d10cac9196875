//! What everybody else sees of an election, with a test in the place of the elector.

use std::{cell::Cell, future::pending, task::Poll, time::Duration};

use futures::FutureExt;
use tokio_test::task::spawn;

use super::{requests::Requested, *};
use crate::{
    clock::{Clock, ManualClock},
    lease::{Lease, TermEnd, Version},
    store::StoreError,
    sync::Notify,
    term::tests::{telemetry, term_on},
};

/// Stands in for the elector.
pub(super) struct Candidate {
    pub(super) publisher: Publisher,
    pub(super) leadership: Leadership,
    requests: Arc<Requests>,
    pub(super) clock: Clock,
    pub(super) hand: ManualClock,
    pub(super) changed: Arc<Notify>,
}

pub(super) fn candidate() -> Candidate {
    let (clock, hand) = Clock::manual();
    let requests = Arc::<Requests>::default();
    let (publisher, leadership) =
        Publisher::new(telemetry(), clock.clone(), Payload::default(), Telling::Here, &requests);
    Candidate { publisher, leadership, requests, clock, hand, changed: Arc::default() }
}

impl Candidate {
    pub(super) fn elect(&self, fence: u64, ready: bool) -> Term {
        let term = term_on(&self.clock, fence, ready, &self.changed);
        self.publisher.update(|draft| {
            draft.started(term.clone());
            draft.phase(Phase::Leading);
        });
        term
    }

    fn end(&self, term: &Term, reason: TermEnd) {
        term.finish(reason);
        self.publisher.update(|draft| {
            draft.ended(term, reason);
            draft.phase(Phase::Following);
        });
        term.announce();
    }

    pub(super) fn observe(&self, lease: &Lease) {
        self.publisher.observed(Some(lease), self.clock.now());
    }
}

pub(super) fn held(identity: &str, fence: u64) -> Lease {
    let holder = Some(Identity::new(identity).unwrap());
    let fence = Fence::try_from(fence).unwrap();
    Lease::new(holder, fence, Version::from(1), Duration::from_secs(15))
}

pub(super) fn leader(identity: &str, fence: u64) -> Leader {
    Leader::of(&held(identity, fence)).unwrap()
}

#[test]
fn a_status_is_judged_when_it_is_read() {
    let candidate = candidate();
    let term = candidate.elect(7, true);
    let copy = candidate.leadership.status();
    assert!(copy.is_leader() && candidate.leadership.is_leader());
    assert_eq!(copy.fence(), Some(term.fence()));
    assert_eq!(copy.term(), Some(term.clone()));
    assert_eq!(copy.phase(), Phase::Leading);
    assert!(copy.remaining() > Some(Duration::from_secs(9)));
    candidate.hand.suspend(Duration::from_secs(10));
    for status in [copy, candidate.leadership.status()] {
        assert!(!status.is_leader());
        assert_eq!(
            (status.fence(), status.term(), status.remaining(), status.phase()),
            (None, None, None, Phase::Relinquishing)
        );
    }
    assert!(candidate.leadership.term().is_none() && candidate.leadership.fence().is_none());
}

#[test]
fn a_cancelled_term_does_not_lead() {
    let candidate = candidate();
    candidate.elect(7, true).cancel(TermEnd::Resigned);
    assert!(!candidate.leadership.is_leader());
    assert_eq!(candidate.leadership.status().phase(), Phase::Leading);
}

#[test]
fn an_elected_term_leads_once_it_is_ready() {
    let candidate = candidate();
    let mut leading = spawn(candidate.leadership.leading());
    let mut terms = candidate.leadership.terms();
    assert!(leading.poll().is_pending());
    let term = candidate.elect(7, false);
    assert!(!candidate.leadership.is_leader() && candidate.leadership.term().is_none());
    assert!(leading.poll().is_pending());
    assert_eq!(terms.next().now_or_never(), Some(Some(term.clone())));
    term.ready();
    candidate.publisher.bump();
    assert!(leading.is_woken() && candidate.leadership.is_leader());
    assert_eq!(leading.poll(), Poll::Ready(Ok(term)));
}

#[test]
fn a_publisher_that_is_dropped_ends_the_term_and_says_that_all_is_over() {
    let Candidate { publisher, leadership, changed: _, clock, .. } = candidate();
    let term = term_on(&clock, 7, true, &Arc::default());
    publisher.update(|draft| {
        draft.started(term.clone());
        draft.phase(Phase::Leading);
    });
    let mut leading = spawn(leadership.clone().leading());
    let mut ended = spawn(term.ended());
    assert!(ended.poll().is_pending());
    drop(publisher);
    assert!(!leadership.is_leader());
    assert_eq!(leadership.status().phase(), Phase::Stopped);
    assert!(ended.is_woken());
    assert_eq!(ended.poll(), Poll::Ready(TermEnd::Shutdown));
    assert_eq!(leading.poll(), Poll::Ready(Err(Stopped)));
    assert_eq!(leadership.terms().next().now_or_never(), Some(None));
    assert_eq!(leadership.resign().now_or_never(), Some(()));
}

#[test]
fn what_is_left_of_the_lease_runs_down_from_what_the_store_said() {
    let candidate = candidate();
    let left = || candidate.leadership.status().lease_left();
    assert_eq!(left(), None);
    let mut lease = held("web-2", 3);
    candidate.observe(&lease);
    assert_eq!(left(), Some(lease.duration), "the store shows no clock");
    lease.ttl = Some(Duration::from_secs(4));
    candidate.observe(&lease);
    candidate.hand.advance(Duration::from_secs(1));
    assert_eq!(left(), Some(Duration::from_secs(3)));
    candidate.hand.advance(Duration::from_secs(10));
    assert_eq!(left(), Some(Duration::ZERO));
    lease.released = true;
    candidate.observe(&lease);
    assert_eq!(left(), None);
}

#[test]
fn only_news_wakes_those_who_watch() {
    let candidate = candidate();
    let mut watch = candidate.leadership.watch();
    let mut is_news = |act: &dyn Fn()| {
        act();
        watch.changed().now_or_never().is_some()
    };
    let [first, renewed, other] = [held("web-2", 3), held("web-2", 3), held("web-2", 4)];
    assert!(is_news(&|| candidate.observe(&first)));
    candidate.hand.advance(Duration::from_secs(2));
    assert_eq!(candidate.leadership.status().observed_age(), Some(Duration::from_secs(2)));
    assert!(!is_news(&|| candidate.observe(&renewed)), "a renewal of another candidate");
    assert_eq!(candidate.leadership.status().observed_age(), Some(Duration::ZERO));
    assert!(is_news(&|| candidate.observe(&other)));
    assert!(!is_news(&|| candidate.publisher.succeeded()));
    let refused = || LastError::Store(Arc::new(StoreError::fatal("no such table")));
    assert!(is_news(&|| candidate.publisher.failed(refused())));
    assert!(candidate.leadership.status().last_error().is_some_and(LastError::is_fatal));
    assert!(is_news(&|| candidate.publisher.succeeded()));
    assert!(candidate.leadership.status().last_error().is_none());
    let herald = candidate.publisher.herald();
    assert!(is_news(&|| herald.bump()));
}

#[test]
fn the_leader_is_who_holds_the_lease() {
    let candidate = candidate();
    candidate.observe(&held("web-2", 3));
    let status = candidate.leadership.status();
    assert_eq!(status.leader(), Some(&leader("web-2", 3)));
    assert_eq!(status.leader_fence().map(u64::from), Some(3));
    assert_eq!(status.leader_payload(), Some(&Payload::default()));
    let mut released = held("web-2", 3);
    released.released = true;
    candidate.observe(&released);
    assert_eq!(candidate.leadership.status().leader(), None);
    let mut placed = held("web-2", 3);
    placed.holder = None;
    candidate.observe(&placed);
    assert_eq!(candidate.leadership.status().leader(), None);
}

#[test]
fn a_watchdog_does_not_keep_the_channel_open() {
    let Candidate { publisher, leadership, .. } = candidate();
    let herald = publisher.herald();
    let mut watch = leadership.watch();
    drop(publisher);
    herald.bump();
    assert!(watch.changed().now_or_never().unwrap().is_ok(), "its last status is *stopped*");
    assert!(watch.changed().now_or_never().unwrap().is_err());
}

#[test]
fn leader_only_is_judged_at_its_first_poll() {
    let candidate = candidate();
    let mut too_early = spawn(candidate.leadership.leader_only(async { 1 }));
    let refused = || async { unreachable!("never polled") };
    let mut no_more = spawn(candidate.leadership.leader_only(refused()));
    let term = candidate.elect(7, true);
    assert_eq!(too_early.poll(), Poll::Ready(Ok(1)));
    candidate.end(&term, TermEnd::Lost);
    candidate.observe(&held("web-2", 8));
    let not_leader = LeaderOnlyError::NotLeader { leader: Some(leader("web-2", 8)) };
    let said = "this candidate does not lead; web-2 does, with fence 8";
    assert_eq!(not_leader.to_string(), said);
    assert_eq!(no_more.poll(), Poll::Ready(Err::<(), _>(not_leader)));
    let with = candidate.leadership.leader_only_with(|_| refused());
    assert!(matches!(with.now_or_never(), Some(Err::<(), _>(LeaderOnlyError::NotLeader { .. }))));
}

#[test]
fn leader_only_work_is_cut_with_its_term() {
    let candidate = candidate();
    let term = candidate.elect(7, true);
    let mut with = spawn(candidate.leadership.leader_only_with(|term| async move {
        assert_eq!(term.guards(), 1);
        pending::<()>().await;
    }));
    let mut without = spawn(candidate.leadership.leader_only(pending::<()>()));
    assert!(with.poll().is_pending() && without.poll().is_pending());
    assert_eq!(term.in_flight(), 2);
    candidate.end(&term, TermEnd::Lost);
    assert!(with.is_woken() && without.is_woken());
    let ended = Poll::Ready(Err(LeaderOnlyError::TermEnded(TermEnd::Lost)));
    assert_eq!((with.poll(), without.poll()), (ended.clone(), ended));
    assert_eq!(term.in_flight(), 0);
}

#[test]
fn each_term_is_given_once_and_cut_at_its_end() {
    let candidate = candidate();
    let runs = Cell::new(0);
    let mut each = spawn(candidate.leadership.each_term(async |_| {
        runs.set(runs.get() + 1);
        if runs.get() == 2 {
            return;
        }
        pending().await
    }));
    assert!(each.poll().is_pending());
    let first = candidate.elect(1, false);
    assert!(each.is_woken() && each.poll().is_pending());
    assert_eq!((runs.get(), first.in_flight()), (1, 1));
    candidate.end(&first, TermEnd::Lost);
    let second = candidate.elect(2, true);
    assert!(each.is_woken() && each.poll().is_pending());
    assert_eq!((runs.get(), first.in_flight(), second.in_flight()), (2, 0, 0));
    candidate.publisher.bump();
    assert!(each.is_woken() && each.poll().is_pending());
    assert_eq!(runs.get(), 2, "it returned early, and is not run again for the same term");
    candidate.publisher.stands(Phase::Stopped, None);
    assert!(each.is_woken() && each.poll().is_ready());
}

#[test]
fn every_start_is_followed_by_its_end_however_late_it_is_read() {
    let candidate = candidate();
    let mut transitions = candidate.leadership.transitions();
    let mut next = || transitions.next().now_or_never();
    assert_eq!(next(), None);
    let first = candidate.elect(1, true);
    assert_eq!(next(), Some(Some(Transition::Started(first.clone()))));
    assert_eq!(next(), None);
    candidate.end(&first, TermEnd::Lost);
    let skipped = candidate.elect(2, true);
    candidate.end(&skipped, TermEnd::Resigned);
    let third = candidate.elect(3, false);
    candidate.observe(&held("web-1", 3));
    let ended = Transition::Ended { term: first, reason: TermEnd::Lost };
    assert_eq!(next(), Some(Some(ended)));
    assert_eq!(next(), Some(Some(Transition::Started(third.clone()))));
    assert_eq!(next(), Some(Some(Transition::NewLeader(leader("web-1", 3)))));
    assert_eq!(next(), None);
    drop(candidate.publisher);
    let ended = Transition::Ended { term: third, reason: TermEnd::Shutdown };
    assert_eq!(next(), Some(Some(ended)));
    assert_eq!(next(), Some(None));
    assert_eq!(next(), Some(None));
}

#[test]
fn a_leader_is_new_when_its_fence_is() {
    let candidate = candidate();
    let mut transitions = candidate.leadership.transitions();
    let mut next = || transitions.next().now_or_never();
    candidate.observe(&held("web-2", 3));
    assert_eq!(next(), Some(Some(Transition::NewLeader(leader("web-2", 3)))));
    let mut renewed = held("web-2", 3);
    renewed.payload = Payload::from("moved");
    candidate.observe(&renewed);
    assert_eq!(next(), None);
    candidate.publisher.observed(None, candidate.clock.now());
    assert_eq!(next(), None);
    candidate.observe(&held("web-2", 4));
    assert_eq!(next(), Some(Some(Transition::NewLeader(leader("web-2", 4)))));
}

#[test]
fn whoever_reads_transitions_is_woken_by_the_end_itself() {
    let candidate = candidate();
    let mut transitions = candidate.leadership.transitions();
    let term = candidate.elect(1, true);
    assert!(transitions.next().now_or_never().is_some());
    let mut next = spawn(transitions.next());
    assert!(next.poll().is_pending());
    candidate.hand.advance(Duration::from_secs(10));
    assert_eq!(term.end(), Some(TermEnd::Expired));
    term.announce();
    assert!(next.is_woken());
    let ended = Transition::Ended { term, reason: TermEnd::Expired };
    assert_eq!(next.poll(), Poll::Ready(Some(ended)));
}

#[test]
fn a_resignation_is_requested_by_the_call_and_done_when_it_is_published() {
    let candidate = candidate();
    drop(candidate.leadership.resign());
    let mut second = spawn(candidate.leadership.resign());
    assert_eq!(candidate.requests.take().resign, Some(2));
    let mut third = spawn(candidate.leadership.resign());
    assert!(second.poll().is_pending() && third.poll().is_pending());
    candidate.publisher.stands(Phase::Following, Some(2));
    assert!(second.poll().is_ready());
    assert!(third.poll().is_pending());
    candidate.publisher.stands(Phase::Stopped, None);
    assert!(third.poll().is_ready());
}

#[test]
fn requests_become_one_and_are_not_lost() {
    let candidate = candidate();
    let (leadership, requests) = (&candidate.leadership, &candidate.requests);
    assert_eq!(requests.take(), Requested::default());
    leadership.set_eligible(false);
    leadership.set_payload("first").unwrap();
    leadership.set_payload("second").unwrap();
    requests.request_shutdown();
    assert!(requests.changed().now_or_never().is_some(), "though nobody waited");
    assert!(requests.changed().now_or_never().is_none());
    let requested = Requested {
        shutdown: Some(Duration::MAX),
        eligible: Some(false),
        payload: Some("second".into()),
        ..Requested::default()
    };
    assert_eq!(requests.take(), requested);
    assert_eq!(requests.take(), Requested::default());
    let too_long = vec![0; 64 * 1024 + 1];
    assert!(matches!(leadership.set_payload(too_long), Err(InvalidValue::TooLong { .. })));
}

#[tokio::test]
async fn waits_can_be_spawned() {
    let candidate = candidate();
    let term = candidate.elect(1, true);
    let leadership = &candidate.leadership;
    assert_eq!(tokio::spawn(leadership.leading()).await.unwrap(), Ok(term.clone()));
    assert_eq!(tokio::spawn(leadership.leader_only(async { 7 })).await.unwrap(), Ok(7));
    let (loyal, mut transitions) = (leadership.clone(), leadership.transitions());
    let first = tokio::spawn(async move { transitions.next().await });
    assert_eq!(first.await.unwrap(), Some(Transition::Started(term)));
    let each = tokio::spawn(async move { loyal.each_term(|_| async {}).await });
    drop(candidate.publisher);
    each.await.unwrap();
}

#[test]
fn a_status_costs_three_words_and_a_leadership_four() {
    assert_eq!(size_of::<Status>(), 3 * size_of::<usize>());
    assert_eq!(size_of::<Leadership>(), 4 * size_of::<usize>());
}
