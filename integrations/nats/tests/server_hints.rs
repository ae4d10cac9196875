//! Wake-ups: from releases and from nothing else, and never needed.

#![allow(clippy::unwrap_used)] // helpers of tests are tests

mod common;

use std::time::Duration;

use futures::{FutureExt, StreamExt};
use tenure::store::{Hints, Session, Store};
use tenure_nats::NatsStore;
use tenure_testbed::{Nats, Proxy};
use tokio::time::sleep;

use common::{Admin, Candidate, current, fresh_store, old, wait_for, won};

/// Sets up the watch.
async fn watch(candidate: &mut Candidate) -> Hints {
    let mut hints = candidate.session.hints();
    hints.next().await.unwrap();
    hints
}

/// Whether there is a hint already.
fn is_there(hints: &mut Hints) -> bool {
    hints.next().now_or_never().is_some()
}

#[tokio::test]
async fn a_release_hints_and_nothing_else_does() {
    for server in [old(), current()] {
        let (store, bucket) = fresh_store(server).await;
        assert!(store.capabilities().hints);
        let mut follower = Candidate::new("b", &store);
        let mut hints = watch(&mut follower).await;
        let mut leader = Candidate::new("a", &store);
        for _ in 0..3 {
            let term = leader.lead().await;
            for _ in 0..5 {
                won(leader.renew(term.fence).await);
            }
            won(leader.session.release(&leader.release_of(term.fence)).await.unwrap());
            hints.next().await.unwrap();
            // What came before it gave none, and it was the last thing.
            assert!(!is_there(&mut hints));
        }
        leader.lead().await;
        Admin::of(server).await.put(&bucket, "billing", "garbage").await;
        Admin::of(server).await.put(&bucket, "another", r#"{"released":true}"#).await;
        // Whoever is told of the release may claim it at once.
        sleep(Duration::from_millis(50)).await;
        assert!(!is_there(&mut hints));
    }
}

#[tokio::test]
async fn a_watch_comes_back_after_its_connection_broke_and_after_a_restart() {
    for mut server in [Nats::start().unwrap(), Nats::start_current().unwrap()] {
        let direct = NatsStore::new(&server.url()).unwrap();
        direct.ensure_schema().await.unwrap();
        let proxy = Proxy::start(server.addr()).unwrap();
        let store = NatsStore::new(&format!("nats://{}", proxy.addr())).unwrap();
        let mut follower = Candidate::new("b", &store);
        let mut hints = watch(&mut follower).await;

        proxy.cut();
        proxy.heal();
        // Something may have been missed meanwhile.
        hints.next().await.unwrap();
        server.restart().unwrap();
        hints.next().await.unwrap();

        let mut leader = Candidate::new("a", &direct);
        let term = leader.lead().await;
        won(leader.session.release(&leader.release_of(term.fence)).await.unwrap());
        hints.next().await.unwrap();
    }
}

/// A watch that comes back at once each time makes a storm, and leaves a consumer behind each time.
#[tokio::test]
async fn a_watch_that_breaks_again_and_again_comes_back_ever_more_rarely_and_leaves_nothing() {
    for server in [old(), current()] {
        let (direct, bucket) = fresh_store(server).await;
        let proxy = Proxy::start(server.addr()).unwrap();
        let store = NatsStore::new(&format!("nats://{}", proxy.addr())).unwrap();
        let store = store.with_bucket(&bucket).unwrap();
        let mut follower = Candidate::new("b", &store);
        let mut hints = watch(&mut follower).await;
        let mut came_back = 0;
        let stormed = async {
            loop {
                hints.next().await.unwrap();
                came_back += 1;
                proxy.cut();
                proxy.heal();
            }
        };
        proxy.cut();
        proxy.heal();
        tokio::select! {
            () = stormed => {}
            () = sleep(Duration::from_secs(3)) => {}
        }
        assert!(came_back <= 6, "{came_back} times in three seconds");
        drop(hints);
        drop(follower);
        let admin = Admin::of(server).await;
        wait_for("all consumers to go", async || {
            let info = admin.info(&bucket).await;
            (info["state"]["consumer_count"] == 0).then_some(())
        })
        .await;
        drop(direct);
    }
}

/// The server says now and then that it is still there. Without that the watch would be given up for a new one, which begins
/// with a hint.
#[tokio::test]
async fn a_watch_on_which_nothing_happens_is_kept() {
    let (store, _) = fresh_store(current()).await;
    let mut candidate = Candidate::new("a", &store);
    let mut hints = candidate.session.hints();
    hints.next().await.unwrap();
    let hint = tokio::select! {
        hint = hints.next() => hint,
        () = sleep(Duration::from_secs(16)) => None,
    };
    assert_eq!(hint, None);
    let term = candidate.lead().await;
    won(candidate.session.release(&candidate.release_of(term.fence)).await.unwrap());
    hints.next().await.unwrap();
}

#[tokio::test]
async fn hints_can_be_switched_off_and_then_nothing_is_watched() {
    let (store, bucket) = fresh_store(old()).await;
    let store = store.without_hints();
    assert!(!store.capabilities().hints);
    let mut candidate = Candidate::new("a", &store);
    let mut hints = candidate.session.hints();
    let term = candidate.lead().await;
    won(candidate.session.release(&candidate.release_of(term.fence)).await.unwrap());
    assert!(!is_there(&mut hints));
    let info = Admin::of(old()).await.info(&bucket).await;
    assert_eq!(info["state"]["consumer_count"], 0);
}

/// Nobody needs them: without a bucket, or without a server, there are none, and they wait.
#[tokio::test]
async fn a_watch_that_cannot_be_set_up_waits() {
    let mut server = Nats::start().unwrap();
    let store = NatsStore::new(&server.url()).unwrap();
    let mut candidate = Candidate::new("a", &store);
    let mut hints = candidate.session.hints();
    for _ in 0..3 {
        let hint = tokio::select! {
            hint = hints.next() => hint,
            () = sleep(Duration::from_millis(300)) => None,
        };
        assert_eq!(hint, None);
        server.restart().unwrap();
    }
    store.ensure_schema().await.unwrap();
    hints.next().await.unwrap();
}
