//! Buckets that move.

#![allow(clippy::unwrap_used)] // helpers of tests are tests

mod common;

use std::{future::poll_fn, pin::pin, task::Poll};

use tenure::{Fence, store::Session};
use tenure_nats::{BucketError, NatsStore, Storage, async_nats::HeaderMap, migrate};
use tenure_testbed::Nats;

use common::{
    Admin, Candidate, bucket_error, current, election, fresh_name, fresh_store, old, on_both,
    store, won,
};

/// Two buckets, the first with one election that is led, one that was released, and one that was deposed.
async fn to_be_moved(server: &'static Nats) -> (NatsStore, NatsStore, Candidate, Fence) {
    let (from, _) = fresh_store(server).await;
    let to = store(server, &fresh_name("target"));
    let mut leader = Candidate::new("the leader", &from);
    let term = leader.lead().await;
    won(leader.renew(term.fence).await);
    for name in ["released", "deposed"] {
        let name = tenure::ElectionName::new(name).unwrap();
        let mut other = Candidate {
            session: tenure::Store::session(&from, &name),
            ..Candidate::new("b", &from)
        };
        let term = other.lead().await;
        match name.as_str() {
            "released" => {
                let release = other.release_of(term.fence);
                won(other.session.release(&release).await.unwrap());
            }
            _ => drop(from.depose(&name).await.unwrap()),
        }
    }
    (from, to, leader, term.fence)
}

/// Nobody leads in the old one, and the records in the new one are nobody's, under the same fences.
async fn assert_moved(from: &NatsStore, to: &NatsStore, leader: &mut Candidate, term: Fence) {
    let renewal = leader.renewal_of(term);
    let refused = leader.session.renew(&renewal).await.unwrap_err();
    let BucketError::Sealed { description } = bucket_error(&refused) else { panic!("{refused:?}") };
    assert!(description.contains("moved to the bucket target"), "{description}");
    assert!(from.ensure_schema().await.is_err());
    let mut late = Candidate::new("late", from);
    assert!(late.session.acquire(&late.claim_of(None)).await.unwrap_err().is_fatal());

    let moved = to.leaders().await.unwrap();
    let held: Vec<_> = moved
        .iter()
        .map(|(name, lease)| (name.as_str(), lease.holder.clone(), lease.released, lease.duration))
        .collect();
    assert_eq!(
        held,
        [
            ("billing", None, false, common::LONG),
            ("deposed", None, false, common::LONG),
            ("released", None, true, common::LONG),
        ]
    );
    assert_eq!(moved[0].1.fence, term);
    let successor = Candidate::new("the successor", to).lead().await;
    assert!(successor.fence > term, "{successor:?}");
}

#[tokio::test]
async fn elections_move_to_another_bucket_and_nobody_leads_in_both() {
    on_both(async |server| {
        let (from, to, mut leader, term) = to_be_moved(server).await;
        let to = to.with_storage(Storage::Memory);
        assert_eq!(migrate(&from, &to).await.unwrap(), 3);
        assert_moved(&from, &to, &mut leader, term).await;
        // What has come to its end may be repeated, and changes nothing.
        let before = to.leaders().await.unwrap();
        assert_eq!(migrate(&from, &to).await.unwrap(), 3);
        assert_eq!(to.leaders().await.unwrap(), before);
    })
    .await;
}

/// Until it is dropped after so many polls; `None` then.
async fn dropped_after<T>(polls: usize, migration: impl Future<Output = T>) -> Option<T> {
    let mut migration = pin!(migration);
    let mut left = polls;
    poll_fn(|cx| {
        left -= 1;
        match migration.as_mut().poll(cx) {
            Poll::Ready(moved) => Poll::Ready(Some(moved)),
            Poll::Pending if left == 0 => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        }
    })
    .await
}

#[tokio::test]
async fn a_migration_that_was_dropped_anywhere_is_finished_by_the_next() {
    for server in [old(), current()] {
        for polls in 1.. {
            let (from, to, mut leader, term) = to_be_moved(server).await;
            let done = dropped_after(polls, migrate(&from, &to)).await.map(Result::unwrap);
            if done.is_none() {
                // Until it is finished nobody leads in the new one.
                let early = Candidate::new("early", &to).session.inspect().await;
                if let Ok(seen) = early {
                    assert!(seen.is_some(), "it was open before everything was there");
                }
            }
            assert_eq!(migrate(&from, &to).await.unwrap(), 3);
            assert_moved(&from, &to, &mut leader, term).await;
            if done.is_some() {
                break;
            }
        }
    }
}

/// What is on its way to one bucket does not go to another one from there, from either end, before it has arrived.
#[tokio::test]
async fn a_migration_that_was_dropped_keeps_others_out() {
    let server = current();
    let (mut filling, mut elsewhere) = (0, 0);
    for polls in 1.. {
        let (from, to, ..) = to_be_moved(server).await;
        if dropped_after(polls, migrate(&from, &to)).await.is_some() {
            break;
        }
        let other = |what| store(server, &fresh_name(what));
        match bucket_error(&migrate(&to, &other("onwards")).await.unwrap_err()) {
            BucketError::Missing | BucketError::Unprepared => {}
            BucketError::Filling => {
                filling += 1;
                let refused = to.ensure_schema().await.unwrap_err();
                assert!(matches!(bucket_error(&refused), BucketError::Filling), "{refused:?}");
            }
            error => panic!("{error:?}"),
        }
        // Unless it had only begun.
        if let Err(error) = migrate(&from, &other("aside")).await {
            let error = bucket_error(&error);
            assert!(matches!(error, BucketError::MovedElsewhere { .. }), "{error:?}");
            elsewhere += 1;
        }
    }
    assert!(filling > 0 && elsewhere > 0, "{filling} {elsewhere}");
}

#[tokio::test]
async fn only_a_bucket_that_is_whole_is_moved_and_what_was_deleted_there_is_not() {
    on_both(async |server| {
        let admin = Admin::of(server).await;
        let bucket = fresh_name("foreign");
        admin.create(&bucket, |_| {}).await;
        let to = store(server, &fresh_name("target"));
        let error = migrate(&store(server, &bucket), &to).await.unwrap_err();
        assert!(matches!(bucket_error(&error), BucketError::Unprepared), "{error:?}");

        let (from, bucket) = fresh_store(server).await;
        Candidate::new("a", &from).lead().await;
        let mut deleted = HeaderMap::new();
        deleted.insert("KV-Operation", "DEL");
        admin.put_with(&bucket, "gone", "", deleted).await;
        assert_eq!(migrate(&from, &to).await.unwrap(), 1);
        // What has come to its end may be repeated.
        assert_eq!(migrate(&from, &to).await.unwrap(), 1);

        let (frozen, bucket) = fresh_store(server).await;
        let mut config = admin.info(&bucket).await["config"].clone();
        config["sealed"] = true.into();
        let sealed = admin.ask(&format!("STREAM.UPDATE.KV_{bucket}"), &config).await;
        assert!(sealed["error"].is_null(), "{sealed}");
        let error = migrate(&frozen, &store(server, &fresh_name("target"))).await.unwrap_err();
        assert!(matches!(bucket_error(&error), BucketError::Sealed { .. }), "{error:?}");
    })
    .await;
}

#[tokio::test]
async fn two_migrations_at_once_do_the_same_and_a_third_to_elsewhere_is_locked_out() {
    on_both(async |server| {
        let (mut from, mut to, mut leader, mut term) = to_be_moved(server).await;
        for _ in 0..10 {
            let at_once = [migrate(&from, &to), migrate(&from, &to), migrate(&from, &to)];
            for moved in futures::future::join_all(at_once).await {
                assert_eq!(moved.unwrap(), 3);
            }
            assert_moved(&from, &to, &mut leader, term).await;
            (from, to, leader, term) = to_be_moved(server).await;
        }
        migrate(&from, &to).await.unwrap();
        let elsewhere = store(server, &fresh_name("elsewhere"));
        let error = migrate(&from, &elsewhere).await.unwrap_err();
        assert!(matches!(bucket_error(&error), BucketError::MovedElsewhere { .. }), "{error:?}");
    })
    .await;
}

#[tokio::test]
async fn a_migration_that_cannot_be_made_leaves_the_old_bucket_at_work() {
    on_both(async |server| {
        let (from, _, mut leader, term) = to_be_moved(server).await;
        let (in_use, _) = fresh_store(server).await;
        let error = migrate(&from, &in_use).await.unwrap_err();
        assert!(matches!(bucket_error(&error), BucketError::Occupied), "{error:?}");
        let error = migrate(&from, &from).await.unwrap_err();
        assert!(matches!(bucket_error(&error), BucketError::SameName), "{error:?}");
        let missing = store(server, &fresh_name("missing"));
        let error = migrate(&missing, &in_use).await.unwrap_err();
        assert!(matches!(bucket_error(&error), BucketError::Missing), "{error:?}");
        won(leader.renew(term).await);
        assert_eq!(from.leaders().await.unwrap().len(), 3);
        assert_eq!(from.leaders().await.unwrap()[0].0, election());
    })
    .await;
}
