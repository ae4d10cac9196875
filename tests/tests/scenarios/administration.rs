//! What people do to a database under a leader.

use std::time::Duration;

use tenure::{
    ElectionName, Identity, Lease, Store,
    store::{AcquireRequest, Observed, Outcome, Session},
};
use tenure_tests::{Event, Stamp};

use super::{BUSY, Ground, ended, runtime};

pub(crate) fn a_deposed_leader_steps_down_and_its_lease_runs_out(ground: &impl Ground) {
    let fleet = ground.fleet("depose");
    let replicas = [fleet.join(), fleet.join()];
    let first = fleet.leader();
    let election = ElectionName::new("depose").unwrap();
    let deposed = Stamp::now();
    runtime().block_on(ground.store().depose(&election)).unwrap().expect("there is a record");

    let end = replicas[first.participant].says("it steps down", ended(first.fence, "lost"));
    let took = end.at - deposed;
    let limit = fleet.settings.timing().renew_interval() + BUSY;
    assert!(took <= limit, "{took:?}, of at most {limit:?}");
    let second = fleet.leader_after(first.fence);
    assert!(second.from >= fleet.term(first.fence).until, "before the lease had run out");
    fleet.judge(2);
}

/// Somebody takes the lease although it is valid. That the leader's next renewal matches nothing is proof.
pub(crate) fn a_leader_whose_row_was_taken_learns_it_and_changes_nothing(ground: &impl Ground) {
    let fleet = ground.fleet("stolen");
    let replica = fleet.join();
    let first = fleet.leader();
    let stolen = steal(ground, "stolen");
    replica.says("it steps down", ended(first.fence, "lost"));
    let found = record(ground, "stolen");
    // Unless the thief's lease has run out by now.
    if found.fence == stolen.fence {
        assert_eq!(found.version, stolen.version, "somebody wrote: {found:?}");
        assert_eq!(found.holder, stolen.holder);
    }
    let second = fleet.leader_after(first.fence);
    assert!(second.fence > i64::from(stolen.fence));
    fleet.judge(2);
}

pub(crate) fn a_leader_whose_table_was_dropped_steps_down_until_it_is_back(ground: &impl Ground) {
    let fleet = ground.fleet("dropped");
    let replicas = [fleet.join(), fleet.join()];
    let first = fleet.leader();
    ground.drop_schema();
    let leader = &replicas[first.participant];
    let end = leader.says("it steps down", ended(first.fence, "lost"));
    let late = end.at - fleet.term(first.fence).until;
    assert!(late <= BUSY, "{late:?} late");
    for replica in &replicas {
        replica.says("it says that somebody must do something", |event| {
            matches!(event, Event::Failed { fatal: true, error } if error.contains("ensure_schema"))
        });
    }

    ground.store();
    fleet.leader_after(first.fence);
    fleet.judge(2);
}

/// A claim that says it has watched the lease run out.
fn steal(ground: &impl Ground, election: &str) -> Lease {
    let mut session = ground.store().session(&ElectionName::new(election).unwrap());
    runtime().block_on(async {
        // The leader may renew in between.
        for _ in 0..1_000 {
            let seen = session.inspect().await.unwrap();
            let observed = seen.as_ref().map(Observed::from);
            let thief = Identity::new("thief").unwrap();
            let claim = AcquireRequest::new(thief, observed, Duration::from_secs(2));
            if let Outcome::Won(lease) = session.acquire(&claim).await.unwrap() {
                return lease;
            }
        }
        panic!("the lease changes faster than it can be stolen");
    })
}

fn record(ground: &impl Ground, election: &str) -> Lease {
    let leaders = runtime().block_on(ground.store().leaders()).unwrap();
    let found = leaders.into_iter().find(|(name, _)| name.as_str() == election);
    found.expect("there is a record").1
}
