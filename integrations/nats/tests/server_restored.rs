//! A bucket that fell back to an earlier state, of a backup or of what a crash left: it gives out revisions a second time.

#![allow(clippy::unwrap_used)] // helpers of tests are tests

mod common;

use tenure::{Fence, Lease, store::Session};
use tenure_nats::NatsStore;
use tenure_testbed::{Nats, Proxy};

use common::{Admin, Candidate, current, fresh_store, lost, old, won};

/// Somebody's term, whose record has the revision under which the old leader remembers its own.
struct Fallen {
    proxy: Proxy,
    old_leader: Candidate,
    /// What the old leader wrote last, and what it had before.
    old_term: Lease,
    leader: Candidate,
    term: Fence,
}

impl Fallen {
    async fn on(server: &'static Nats) -> Self {
        let (direct, bucket) = fresh_store(server).await;
        let admin = Admin::of(server).await;
        let proxy = Proxy::start(server.addr()).unwrap();
        let store = NatsStore::new(&format!("nats://{}", proxy.addr())).unwrap();
        let store = store.with_bucket(&bucket).unwrap();
        let mut old_leader = Candidate::new("old leader", &store);
        let fence = old_leader.lead().await.fence;
        let backup = admin.back_up(&bucket).await;
        let old_term = won(old_leader.renew(fence).await);
        let revision = admin.message(&bucket, "billing").await.unwrap()["seq"].clone();
        admin.restore(&bucket, backup).await;
        let mut leader = Candidate::new("leader", &direct);
        let term = leader.lead().await.fence;
        assert_eq!(admin.message(&bucket, "billing").await.unwrap()["seq"], revision);
        Self { proxy, old_leader, old_term, leader, term }
    }

    async fn assert_goes_on(mut self) {
        won(self.leader.renew(self.term).await);
    }
}

#[tokio::test]
async fn a_late_release_leaves_a_successor_in_place() {
    for server in [old(), current()] {
        let mut fallen = Fallen::on(server).await;
        let release = fallen.old_leader.release_of(fallen.old_term.fence);
        let by = lost(fallen.old_leader.session.release(&release).await.unwrap());
        assert_eq!(by.unwrap().fence, fallen.term);
        fallen.assert_goes_on().await;
    }
}

#[tokio::test]
async fn what_was_seen_through_one_connection_is_not_written_upon_through_the_next() {
    for server in [old(), current()] {
        for renews in [true, false] {
            let mut fallen = Fallen::on(server).await;
            fallen.proxy.cut();
            fallen.proxy.heal();
            let Fallen { old_leader, old_term, .. } = &mut fallen;
            let outcome = if renews {
                old_leader.renew(old_term.fence).await
            } else {
                let claim = old_leader.claim_of(Some(old_term));
                old_leader.session.acquire(&claim).await.unwrap()
            };
            assert_eq!(lost(outcome).unwrap().fence, fallen.term);
            fallen.assert_goes_on().await;
        }
    }
}
