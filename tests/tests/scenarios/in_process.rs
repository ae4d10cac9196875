//! Several candidates in the test's own process.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use futures::executor::block_on;
use tenure::{
    Candidacy, Elector, ElectorBuilder, Leadership, Term,
    testing::{FlakyStore, Operation},
};
use tenure_tests::wait_until;
use tokio::runtime::Builder;

use super::Ground;

const LEASE: Duration = Duration::from_secs(2);

/// A candidate that leads.
pub(crate) struct Leader {
    pub(crate) store: FlakyStore,
    pub(crate) candidacy: Candidacy,
    pub(crate) leadership: Leadership,
    pub(crate) term: Term,
}

impl Leader {
    pub(crate) fn elect(election: &str, store: FlakyStore) -> Self {
        Self::of(Elector::builder(election, store.clone()).lease_duration(LEASE), store)
    }

    /// Of an elector with settings of its own.
    pub(crate) fn of(elector: ElectorBuilder, store: FlakyStore) -> Self {
        let candidacy = elector.build().unwrap().spawn();
        let leadership = candidacy.leadership();
        let term = block_on(leadership.leading()).unwrap();
        Self { store, candidacy, leadership, term }
    }

    /// Waits until this many further renewals were confirmed, all in the one term.
    #[track_caller]
    pub(crate) fn renews(&self, times: usize) {
        let enough = self.store.succeeded(Operation::Renew) + times;
        wait_until("the lease is renewed", || {
            assert_eq!(self.term.end(), None, "{:?}", self.leadership.status());
            self.store.succeeded(Operation::Renew) >= enough
        });
        assert_eq!(self.leadership.term().as_ref(), Some(&self.term));
    }
}

/// An error is not a proof: it is tried again until the deadline.
pub(crate) fn two_failed_renewals_in_a_row_cost_no_term(ground: &impl Ground) {
    let leader = Leader::elect("failures", FlakyStore::new(ground.store()));
    leader.renews(1);
    leader.store.fail_next(Operation::Renew, 2);
    wait_until("both have failed", || leader.store.failures_left(Operation::Renew) == 0);
    leader.renews(1);
    // The store has answered a moment before the elector says so.
    wait_until("that is over", || leader.leadership.status().last_error().is_none());
    block_on(leader.candidacy.shutdown()).unwrap();
}

/// All electors of a process share one thread. Neither those who wait nor that all of them are woken at once keeps it
/// from renewing other elections' leases.
pub(crate) fn ten_thousand_waiters_do_not_delay_renewal(ground: &impl Ground) {
    const WAITERS: usize = 10_000;
    let crowded = Leader::elect("crowded", FlakyStore::new(ground.store()));
    let bystander = Leader::elect("bystander", FlakyStore::new(ground.store()));
    let application = Builder::new_multi_thread().worker_threads(2).build().unwrap();
    let (waiting, woken) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    for number in 0..WAITERS {
        let (waiting, woken) = (waiting.clone(), woken.clone());
        let (term, mut status) = (crowded.term.clone(), crowded.leadership.watch());
        application.spawn(async move {
            waiting.fetch_add(1, Ordering::SeqCst);
            match number % 4 {
                0 => term.cancelled().await,
                1 => drop(term.ended().await),
                2 => drop(term.leader_only(std::future::pending::<()>()).await),
                _ => drop(status.wait_for(|status| !status.is_leader()).await),
            }
            woken.fetch_add(1, Ordering::SeqCst);
        });
    }
    wait_until("all wait", || waiting.load(Ordering::SeqCst) == WAITERS);
    crowded.renews(3);
    assert_eq!(woken.load(Ordering::SeqCst), 0, "a renewal wakes nobody");

    block_on(crowded.candidacy.resign());
    bystander.renews(3);
    wait_until("all are woken", || woken.load(Ordering::SeqCst) == WAITERS);
    for leader in [crowded, bystander] {
        block_on(leader.candidacy.shutdown()).unwrap();
    }
}
