//! Leaders that are gone, or away, without a word.

use std::time::Duration;

use tenure_tests::{Event, Refusal, Stamp, wait_until};

use super::{BUSY, Ground, ended};

pub(crate) fn a_killed_leader_is_followed_when_its_lease_runs_out(ground: &impl Ground) {
    let fleet = ground.fleet("kill");
    let replicas = [fleet.join(), fleet.join(), fleet.join()];
    let first = fleet.leader();
    let killed = replicas[first.participant].kill();
    let second = fleet.leader_after(first.fence);

    assert_ne!(second.participant, first.participant);
    assert!(second.from >= fleet.term(first.fence).until, "before the term could end");
    let took = second.from - killed;
    let limit = fleet.settings.timing().worst_case().fail_over + BUSY;
    assert!(took <= limit, "{took:?}, of at most {limit:?}");
    fleet.judge(2);
}

/// Its first check after it wakes says no, whatever had run by then.
pub(crate) fn a_frozen_leader_finds_its_term_over_when_it_wakes(ground: &impl Ground) {
    let fleet = ground.fleet("freeze");
    let replicas = [fleet.join(), fleet.join()];
    let first = fleet.leader();
    let frozen = &replicas[first.participant];
    // Only of a term that it was told of is it told the end.
    frozen.says("it was elected", |event| *event == Event::Elected { fence: first.fence });
    frozen.freeze();
    let froze = Stamp::now();
    let second = fleet.leader_after(first.fence);
    assert_ne!(second.participant, first.participant);
    // On a busy machine it may have slept before, and woken within its term. The signal takes a moment.
    let at_least = froze.age().as_millis() / 2;
    frozen.thaw();

    let woke = frozen.says(
        "it wakes",
        |event| matches!(event, Event::Woke { slept_ms, .. } if u128::from(*slept_ms) >= at_least),
    );
    let Event::Woke { refusal, .. } = woke.event else { unreachable!() };
    assert_eq!(refusal, Some(Refusal::COMPLETE));
    frozen.says("its term has expired", ended(first.fence, "expired"));
    // It is none the worse for it.
    replicas[second.participant].kill();
    fleet.leads_after(first.participant, second.fence);
    fleet.judge(3);
}

/// On a store that shows a clock nobody has to watch a lease that has run out already.
pub(crate) fn a_lease_that_has_expired_is_taken_by_a_fresh_candidate_at_once(ground: &impl Ground) {
    let lease = Duration::from_secs(3);
    let mut fleet = ground.fleet("expired");
    fleet.settings = fleet.settings.lease(lease);
    let first_replica = fleet.join();
    let first = fleet.leader();
    let killed = first_replica.kill();
    wait_until("the lease has run out", || killed.age() > lease);

    let started = Stamp::now();
    let _fresh = fleet.join();
    let second = fleet.leader_after(first.fence);
    let took = second.from - started;
    assert!(took < lease, "{took:?}, as if it had watched the lease of {lease:?}");
    fleet.judge(2);
}

/// A leader judges by the duration that it wrote, everybody else by the one in the record.
pub(crate) fn candidates_with_different_leases_are_safe_beside_each_other(ground: &impl Ground) {
    let fleet = ground.fleet("leases");
    let with_lease = |seconds| fleet.settings.lease(Duration::from_secs(seconds));
    let long = fleet.join_with(&with_lease(4));
    let first = fleet.leader();
    let short = [fleet.join_with(&with_lease(1)), fleet.join_with(&with_lease(2))];
    let killed = long.kill();
    let second = fleet.leader_after(first.fence);
    assert!(second.from >= fleet.term(first.fence).until, "the long lease had not run out");
    let took = second.from - killed;
    let limit = with_lease(4).timing().worst_case().fail_over + BUSY;
    assert!(took <= limit, "{took:?}, of at most {limit:?}");

    // And the other way round: one with a long lease follows those with short ones.
    let long_again = fleet.join_with(&with_lease(4));
    for replica in &short {
        replica.kill();
    }
    let last = fleet.timeline().wait_for("the one with the long lease leads", |entries| {
        entries.iter().find_map(|entry| match entry.event {
            Event::Live { fence, .. } if entry.participant == long_again.number() => Some(fence),
            _ => None,
        })
    });
    assert!(last > second.fence);
    fleet.judge(3);
}
