//! Applications that block their runtime, and stores that hang.

use std::time::Duration;

use tenure_tests::{Command, Entry, Event, wait_until};

use super::{BUSY, Ground, ended};

/// How exactly the end of a term is known to whoever reads the clock twice for it.
const GRAIN: Duration = Duration::from_millis(100);

/// The store's connection must not wait for the threads that the application blocks, nor must anything else that
/// renewals need.
pub(crate) fn blocked_app_runtime_does_not_lose_the_term(ground: &impl Ground) {
    let fleet = ground.fleet("blocked");
    let replicas = [fleet.join(), fleet.join()];
    let first = fleet.leader();
    let leader = &replicas[first.participant];
    let blocked_for = fleet.settings.lease * 3;
    leader.tell(Command::Block { ms: blocked_for.as_millis().try_into().unwrap() });
    let blocked = leader.says("it is blocked", |event| *event == Event::Blocked);
    let unblocked = leader.says("it goes on", |event| *event == Event::Unblocked);
    assert!(unblocked.at - blocked.at >= blocked_for);
    leader.says("it still leads", |event| {
        matches!(*event, Event::Live { fence, to, .. } if fence == first.fence && to > unblocked.at)
    });
    let worked = fleet.timeline().see(|entries| {
        let between = blocked.at + GRAIN;
        let works = |entry: &&Entry| {
            matches!(entry.event, Event::Worked { at, .. } if at > between && at < unblocked.at)
        };
        entries.iter().filter(works).count()
    });
    assert_eq!(worked, 0, "the application was not blocked at all");
    let elected = fleet.timeline().see(|entries| {
        entries.iter().filter(|entry| matches!(entry.event, Event::Elected { .. })).count()
    });
    assert_eq!(elected, 1, "somebody else was elected meanwhile");
    fleet.judge(1);
}

/// What ends it is neither the application's runtime nor the elector's, which waits for an answer. Threads of the
/// participant's that have no part in either see it.
pub(crate) fn a_blocked_runtime_and_a_hanging_store_end_the_term_on_time(ground: &impl Ground) {
    let fleet = ground.fleet("blocked-and-hanging");
    let replica = fleet.join();
    let first = fleet.leader();
    let blocked_for = fleet.settings.lease * 4;
    replica.tell(Command::Block { ms: blocked_for.as_millis().try_into().unwrap() });
    replica.says("it is blocked", |event| *event == Event::Blocked);
    let hang = ground.hang();
    let end = replica.says("its term expires", ended(first.fence, "expired"));
    let is_unblocked = |entries: &[Entry]| {
        entries.iter().any(|entry| entry.event == Event::Unblocked && entry.at < end.at)
    };
    assert!(!fleet.timeline().see(is_unblocked), "only after the application went on");
    drop(hang);

    replica.says("it goes on", |event| *event == Event::Unblocked);
    let second = fleet.leader_after(first.fence);
    let term = fleet.term(first.fence);
    let late = end.at - term.until;
    assert!(late <= BUSY, "{late:?} late");
    let last_work =
        fleet.timeline().claims().into_iter().filter(|claim| claim.fence == first.fence);
    let last_work = last_work.map(|claim| claim.to).max().unwrap();
    let late = last_work - term.until;
    assert!(late <= GRAIN, "work was done {late:?} after the deadline");
    assert!(second.from > end.at);
    fleet.judge(2);
}

pub(crate) fn a_store_that_hangs_for_two_leases_costs_the_term_and_the_election_recovers(
    ground: &impl Ground,
) {
    let fleet = ground.fleet("hanging");
    let replicas = [fleet.join(), fleet.join()];
    let first = fleet.leader();
    let hang = ground.hang();
    let hung = replicas[first.participant].says("its term expires", ended(first.fence, "expired"));
    wait_until("two leases have passed", || hung.at.age() >= fleet.settings.lease);
    let failed = |event: &Event| matches!(event, Event::Failed { fatal: false, .. });
    replicas[first.participant].says("it says that the store fails", failed);
    let healed = tenure_tests::Stamp::now();
    drop(hang);

    let second = fleet.leader_after(first.fence);
    let took = second.from - healed;
    let limit = fleet.settings.timing().worst_case().recovery + BUSY;
    assert!(took <= limit, "{took:?}, of at most {limit:?}");
    replicas[second.participant].says("the store works again", |event| *event == Event::Recovered);
    fleet.judge(2);
}
