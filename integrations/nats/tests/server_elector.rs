//! Whole electors on the store.

#![allow(clippy::unwrap_used)] // helpers of tests are tests

mod common;

use std::time::Duration;

use tenure::{Elector, Leadership, Term, store::Session};
use tokio::time::sleep;

use common::{Candidate, LONG, current, election, fresh_store, old, won};

/// Generous: it takes milliseconds, or one lease, unless the machine is very busy.
async fn leads(leadership: &Leadership) -> Term {
    tokio::select! {
        term = leadership.leading() => term.unwrap(),
        () = sleep(Duration::from_secs(60)) => panic!("nobody leads: {:?}", leadership.status()),
    }
}

/// By its looks alone it would find out after two minutes.
#[tokio::test]
async fn a_hint_hands_over_long_before_the_next_look() {
    for server in [old(), current()] {
        let (store, _) = fresh_store(server).await;
        let [first, second] = [(); 2].map(|()| {
            Elector::builder(election(), store.clone()).lease_duration(LONG).build().unwrap()
        });
        let (leading, following) = (first.leadership(), second.leadership());
        let first = first.spawn();
        let before = leads(&leading).await.fence();
        let second = second.spawn();
        common::wait_for("the second to follow", async || {
            (following.status().leader_fence() == Some(before)).then_some(())
        })
        .await;
        // Should its watch be set up later than that, this is a hint as well.
        first.resign().await;
        assert!(leads(&following).await.fence() > before);
        first.shutdown().await.unwrap();
        second.shutdown().await.unwrap();
    }
}

#[tokio::test]
async fn a_leader_that_vanished_is_succeeded_by_who_has_watched_its_lease() {
    for server in [old(), current()] {
        let (store, _) = fresh_store(server).await;
        let mut vanished = Candidate::new("vanished", &store);
        let mut claim = vanished.claim_of(None);
        claim.duration = Duration::from_secs(2);
        let term = won(vanished.session.acquire(&claim).await.unwrap());
        let store = store.without_hints();
        let elector = Elector::builder(election(), store)
            .lease_duration(Duration::from_secs(6))
            .build()
            .unwrap();
        let leadership = elector.leadership();
        let candidacy = elector.spawn();
        assert!(leads(&leadership).await.fence() > term.fence);
        candidacy.shutdown().await.unwrap();
    }
}
