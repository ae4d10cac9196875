//! The real elector on the in-process store and virtual time.

use std::time::Duration;

use futures::executor::block_on;

use super::*;
use crate::{
    ElectionName, Expiry, Fence, LeaderOnlyError, MemoryStore, Phase, TermEnd, Transition,
    store::WithoutHints,
};

pub(super) const LEASE: Duration = Duration::from_secs(3);

fn fence(n: i64) -> Fence {
    Fence::try_from(n).unwrap()
}

pub(super) struct Fleet {
    pub(super) clock: Clock,
    pub(super) store: MemoryStore,
}

impl Fleet {
    pub(super) fn new() -> Self {
        let clock = Clock::tokio();
        Self { store: MemoryStore::with_clock(clock.clone()), clock }
    }

    pub(super) fn builder(&self) -> ElectorBuilder {
        self.builder_on(self.store.clone())
    }

    pub(super) fn builder_on(&self, store: impl Store) -> ElectorBuilder {
        Elector::builder("shipping", store).lease_duration(LEASE).clock(self.clock.clone())
    }

    pub(super) fn candidate(&self) -> Candidacy {
        self.builder().build().unwrap().spawn()
    }
}

#[tokio::test(start_paused = true)]
async fn one_of_two_leads_and_the_other_takes_over_after_a_shutdown() {
    let fleet = Fleet::new();
    let first = fleet.candidate();
    let term = first.leadership().leading().await.unwrap();
    let second = fleet.candidate();
    tokio::time::sleep(LEASE * 5).await;
    assert!(first.leadership().is_leader());
    assert!(!second.leadership().is_leader());
    let seen = second.leadership().status();
    assert_eq!(seen.leader().map(|leader| leader.identity()), Some(first.leadership().identity()));

    first.shutdown().await.unwrap();
    assert_eq!(term.end(), Some(TermEnd::Shutdown));
    assert_eq!(first.leadership().status().phase(), Phase::Stopped);
    let next = second.leadership().leading().await.unwrap();
    assert!(next.fence() > term.fence());
    first.shutdown().await.unwrap();
    assert!(first.leadership().leading().await.is_err());
}

/// The first candidate of two electors hands over; how long that takes.
async fn hand_over(clock: &Clock, elector: impl Fn() -> ElectorBuilder) -> Duration {
    let first = elector().build().unwrap().spawn();
    first.leadership().leading().await.unwrap();
    let second = elector().build().unwrap().spawn();
    let sees_it = |status: &crate::Status| status.leader().is_some();
    second.leadership().watch().wait_for(sees_it).await.unwrap();
    let asked = clock.now();
    first.shutdown().await.unwrap();
    second.leadership().leading().await.unwrap();
    clock.now().saturating_since(asked)
}

#[tokio::test(start_paused = true)]
async fn a_hand_over_waits_for_no_polling_period() {
    let fleet = Fleet::new();
    let patient = || fleet.builder().lease_duration(Duration::from_secs(3_600));
    let took = hand_over(&fleet.clock, patient).await;
    assert!(took < Duration::from_millis(100), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn a_hand_over_without_hints_takes_no_longer_than_its_worst_case() {
    let fleet = Fleet::new();
    let took =
        hand_over(&fleet.clock, || fleet.builder_on(WithoutHints(fleet.store.clone()))).await;
    let bound = fleet.builder().build().unwrap().timing().worst_case().hand_over;
    assert!(took <= bound, "{took:?}, and not {bound:?}");
}

#[tokio::test(start_paused = true)]
async fn a_resigned_leader_pauses_and_the_wait_ends_when_it_has_handed_over() {
    let fleet = Fleet::new();
    let only = fleet.candidate();
    let leadership = only.leadership();
    let term = leadership.leading().await.unwrap();
    let before = fleet.clock.now();
    only.resign().await;
    assert_eq!(term.end(), Some(TermEnd::Resigned));
    assert_eq!(leadership.status().phase(), Phase::Following);
    let next = leadership.leading().await.unwrap();
    let pause = fleet.clock.now().saturating_since(before);
    assert!(pause >= Duration::from_millis(1_800), "{pause:?}");
    assert_eq!((term.fence(), next.fence()), (fence(1), fence(2)));
    leadership.resign().await;
    // Following already: nothing to wait for.
    leadership.resign().await;
}

#[tokio::test(start_paused = true)]
async fn a_hand_over_lets_admitted_work_finish_and_admits_no_more() {
    let fleet = Fleet::new();
    let candidacy = fleet.candidate();
    let leadership = candidacy.leadership();
    let term = leadership.leading().await.unwrap();
    let request = tokio::spawn(term.until_ended(async {
        tokio::time::sleep(Duration::from_secs(5)).await;
        "served"
    }));
    let endless = term.spawn(std::future::pending::<()>());
    tokio::time::sleep(Duration::from_millis(100)).await;
    let shutdown = candidacy.shutdown();
    term.cancelled().await;
    assert!(!leadership.is_leader());
    assert!(term.may_finish());
    assert_eq!(leadership.status().phase(), Phase::Draining);
    assert!(matches!(
        leadership.leader_only(async {}).await,
        // Not itself, although the lease still names it.
        Err(LeaderOnlyError::NotLeader { leader: None })
    ));
    assert_eq!(request.await.unwrap().unwrap(), "served");
    assert_eq!(endless.await.unwrap().unwrap_err().reason(), TermEnd::Shutdown);
    shutdown.await.unwrap();
    let lease = fleet.store.leaders().await.unwrap().remove(0).1;
    assert!(lease.released);
}

#[tokio::test(start_paused = true)]
async fn guarded_work_that_does_not_stop_is_never_released_over() {
    let fleet = Fleet::new();
    let candidacy = fleet.builder().drain_timeout(LEASE).build().unwrap().spawn();
    let term = candidacy.leadership().leading().await.unwrap();
    let guard = term.guard().unwrap();
    let bound = Duration::from_millis(600 * 2) + LEASE;
    let before = fleet.clock.now();
    let stopped = candidacy.shutdown().await;
    assert!(matches!(stopped, Err(StopError::StillRunning { guards: 1 })), "{stopped:?}");
    assert!(fleet.clock.now().saturating_since(before) <= bound);
    assert!(!term.may_finish());
    let lease = fleet.store.leaders().await.unwrap().remove(0).1;
    assert!(!lease.released);
    drop(guard);
}

#[tokio::test(start_paused = true)]
async fn no_new_term_starts_while_a_guard_of_the_last_one_is_held() {
    let fleet = Fleet::new();
    let candidacy = fleet.candidate();
    let leadership = candidacy.leadership();
    let term = leadership.leading().await.unwrap();
    let guard = term.guard().unwrap();
    fleet.store.depose(term.election()).await.unwrap();
    assert_eq!(term.ended().await, TermEnd::Lost);
    tokio::time::sleep(LEASE * 5).await;
    assert_eq!(leadership.status().phase(), Phase::Relinquishing);
    drop(guard);
    assert!(leadership.leading().await.unwrap().fence() > term.fence());
}

#[tokio::test(start_paused = true)]
async fn dropping_the_run_future_ends_the_term_without_a_release() {
    let fleet = Fleet::new();
    let elector = fleet.builder().build().unwrap();
    let leadership = elector.leadership();
    let running = tokio::spawn(elector.run(std::future::pending()));
    let term = leadership.leading().await.unwrap();
    running.abort();
    let _ = running.await;
    assert_eq!(term.end(), Some(TermEnd::Shutdown));
    assert_eq!(leadership.status().phase(), Phase::Stopped);
    assert!(!fleet.store.leaders().await.unwrap().remove(0).1.released);
}

#[tokio::test(start_paused = true)]
async fn dropping_an_elector_or_a_candidacy_shows_that_it_has_stopped() {
    let fleet = Fleet::new();
    let unborn = fleet.builder().build().unwrap();
    let leadership = unborn.leadership();
    drop(unborn);
    assert_eq!(leadership.status().phase(), Phase::Stopped);

    let candidacy = fleet.candidate();
    let leadership = candidacy.leadership();
    let term = leadership.leading().await.unwrap();
    drop(candidacy);
    assert_eq!(term.ended().await, TermEnd::Shutdown);
    leadership.watch().wait_for(|status| status.phase() == Phase::Stopped).await.unwrap();
    assert!(fleet.store.leaders().await.unwrap().remove(0).1.released);
}

#[tokio::test(start_paused = true)]
async fn a_term_is_shown_when_it_is_ready() {
    let fleet = Fleet::new();
    let candidacy = fleet.builder().ready_when_told().build().unwrap().spawn();
    let leadership = candidacy.leadership();
    let term = leadership.terms().next().await.unwrap();
    assert!(term.is_live() && !leadership.is_leader());
    let leading = tokio::spawn(leadership.leading());
    tokio::time::sleep(LEASE).await;
    assert!(!leading.is_finished());
    term.ready();
    assert_eq!(leading.await.unwrap().unwrap(), term);
}

#[tokio::test(start_paused = true)]
async fn an_observer_leads_only_when_it_is_told_that_it_may() {
    let fleet = Fleet::new();
    let candidacy = fleet.builder().observer().build().unwrap().spawn();
    let leadership = candidacy.leadership();
    tokio::time::sleep(LEASE * 3).await;
    assert!(!leadership.is_leader());
    assert!(fleet.store.leaders().await.unwrap().is_empty());
    leadership.set_eligible(true);
    let term = leadership.leading().await.unwrap();
    leadership.set_eligible(false);
    assert_eq!(term.ended().await, TermEnd::Resigned);
}

#[tokio::test(start_paused = true)]
async fn a_new_payload_goes_out_with_the_next_renewal() {
    let fleet = Fleet::new();
    let candidacy = fleet.builder().payload("one").build().unwrap().spawn();
    candidacy.leadership().leading().await.unwrap();
    let published = async || fleet.store.leaders().await.unwrap().remove(0).1.payload;
    assert_eq!(published().await, "one".into());
    candidacy.leadership().set_payload("two").unwrap();
    tokio::time::sleep(LEASE).await;
    assert_eq!(published().await, "two".into());
    assert!(candidacy.leadership().set_payload(vec![0; 70_000]).is_err());
}

#[tokio::test(start_paused = true)]
async fn two_elections_in_one_store_have_nothing_to_do_with_each_other() {
    let fleet = Fleet::new();
    let shipping = fleet.candidate();
    let billing = Elector::builder("billing", fleet.store.clone())
        .clock(fleet.clock.clone())
        .build()
        .unwrap()
        .spawn();
    shipping.leadership().leading().await.unwrap();
    billing.leadership().leading().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_hundred_terms_leave_nothing_behind() {
    let fleet = Fleet::new();
    let candidacy = fleet.builder().resign_pause(Duration::from_millis(1)).build().unwrap().spawn();
    let leadership = candidacy.leadership();
    let mut last = None;
    let mut tasks = None;
    for _ in 0..100 {
        let term = leadership.leading().await.unwrap();
        assert!(Some(term.fence()) > last);
        last = Some(term.fence());
        candidacy.resign().await;
        let alive = Handle::current().metrics().num_alive_tasks();
        assert!(alive <= *tasks.get_or_insert(alive), "tasks are left behind: {alive}");
    }
}

#[test]
fn a_candidate_needs_no_runtime_of_its_callers() {
    let candidacy = Elector::builder("standalone", MemoryStore::new())
        .lease_duration(LEASE)
        .build()
        .unwrap()
        .spawn();
    let term = block_on(candidacy.leadership().leading()).unwrap();
    assert!(term.is_live());
    block_on(candidacy.shutdown()).unwrap();
    assert!(!term.is_live());
}

/// On the system's clock, since this is about threads: all electors of a process share one.
#[test]
fn a_status_that_somebody_looks_at_for_long_holds_up_no_elector() {
    let store = MemoryStore::new();
    let lease = Duration::from_secs(2);
    let spawn = |name| {
        let builder = Elector::builder(name, store.clone()).lease_duration(lease);
        builder.build().unwrap().spawn()
    };
    let (looked_at, other) = (spawn("looked-at"), spawn("other"));
    let term = block_on(looked_at.leadership().leading()).unwrap();
    let others = block_on(other.leadership().leading()).unwrap();

    let (watch, mut waiting) = (looked_at.leadership().watch(), looked_at.leadership().watch());
    let kept = watch.borrow();
    let resigned = looked_at.resign();
    let looked = waiting.wait_for(|status| {
        // Takes longer than any term lasts without a renewal, and asks again meanwhile.
        std::thread::sleep(lease);
        let now = looked_at.leadership().status();
        status.leader() == now.leader() && term.end().is_some()
    });
    block_on(looked).unwrap();
    block_on(resigned);
    assert_eq!(term.end(), Some(TermEnd::Resigned));
    assert!(others.is_live(), "{:?}", others.end());
    drop(kept);
    block_on(looked_at.shutdown()).unwrap();
    block_on(other.shutdown()).unwrap();
}

#[test]
fn bad_settings_are_refused_by_name() {
    let builder = || Elector::builder("a", MemoryStore::new());
    let refused = |builder: ElectorBuilder| builder.build().unwrap_err().to_string();
    assert!(refused(Elector::builder("", MemoryStore::new())).contains("election name"));
    assert!(refused(builder().payload(vec![0; 65_537])).contains("payload"));
    assert!(refused(builder().lease_duration(Duration::ZERO)).contains("lease_duration"));
    assert!(refused(builder().label("x".repeat(300))).contains("identity"));
    assert!(refused(builder().fixed_identity_risking_two_leaders("a\0b")).contains("NUL"));
    assert!(builder().expiry(Expiry::Observed).build().is_ok());
    let election = ElectionName::new("b").unwrap();
    assert!(Elector::builder(&election, MemoryStore::new()).build().is_ok());
}

/// On the system's clock and two threads, so that a reader may look between any two publications.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_term_is_told_before_who_leads_and_together_with_it() {
    for _ in 0..200 {
        let elector = Elector::builder("told", MemoryStore::new()).payload("here").build().unwrap();
        let leadership = elector.leadership();
        let mut transitions = leadership.transitions();
        let candidacy = elector.spawn();
        let first = transitions.next().await;
        assert!(matches!(first, Some(Transition::Started(_))), "{first:?}");
        let leader = leadership.status().leader().cloned().expect("a leader knows itself");
        assert_eq!((leader.identity(), leader.payload()), (leadership.identity(), &"here".into()));
        let second = transitions.next().await;
        assert!(matches!(second, Some(Transition::NewLeader(_))), "{second:?}");
        candidacy.shutdown().await.unwrap();
        let third = transitions.next().await;
        assert!(matches!(third, Some(Transition::Ended { .. })), "{third:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_is_not_released_on_end_runs_out_before_anybody_leads() {
    let fleet = Fleet::new();
    let elector = || fleet.builder().release_on_end(false).build().unwrap().spawn();
    let (first, second) = (elector(), elector());
    let leads = |candidacy: &Candidacy| candidacy.leadership().is_leader();
    tokio::time::sleep(LEASE).await;
    let (leader, follower) = if leads(&first) { (first, second) } else { (second, first) };
    let asked = fleet.clock.now();
    leader.shutdown().await.unwrap();
    follower.leadership().leading().await.unwrap();
    let took = fleet.clock.now().saturating_since(asked);
    assert!(took >= LEASE - LEASE / 3, "{took:?}");
}
