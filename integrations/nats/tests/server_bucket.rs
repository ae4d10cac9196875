//! Buckets that are there already, that vanish, and that move.

#![allow(clippy::unwrap_used)] // helpers of tests are tests

mod common;

use std::{error::Error, future::poll_fn, pin::pin, task::Poll};

use serde_json::{Value, json};
use tenure::{Fence, StoreError, store::Session};
use tenure_nats::{
    BucketError, Difference, NatsError, NatsStore, Setting, Storage, async_nats::HeaderMap, migrate,
};
use tenure_testbed::Nats;

use common::{Admin, Candidate, current, election, fresh_name, fresh_store, lost, old, won};

/// What is wrong with the bucket.
fn bucket_error(error: &StoreError) -> &BucketError {
    assert!(error.is_fatal(), "{error}");
    match error.source().unwrap().downcast_ref::<NatsError>() {
        Some(NatsError::Bucket(error)) => error,
        other => panic!("{other:?}"),
    }
}

fn differences(error: &StoreError) -> Vec<(&'static str, String, String)> {
    let BucketError::Differs(differences) = bucket_error(error) else { panic!("{error:?}") };
    let fields = differences
        .iter()
        .map(|Difference { setting, found, wanted, .. }| (*setting, found.clone(), wanted.clone()));
    fields.collect()
}

/// On both versions.
async fn on_both(test: impl AsyncFn(&'static Nats)) {
    test(old()).await;
    test(current()).await;
}

fn store(server: &Nats, bucket: &str) -> NatsStore {
    NatsStore::new(&server.url()).unwrap().with_bucket(bucket).unwrap()
}

type Change = fn(&mut Value);

/// Settings that would lose leases, each with what is said of it.
const UNFIT: [(Change, &str, &str, &str, Option<Setting>); 7] = [
    (
        |config| config["max_age"] = 10_000_000_000_u64.into(),
        "max_age",
        "10000000000",
        "0",
        Some(Setting::MaxAge),
    ),
    (
        |config| {
            config["max_bytes"] = 1_000_000.into();
            config["discard"] = "old".into();
        },
        "discard",
        "\"old\"",
        "\"new\"",
        Some(Setting::Discard),
    ),
    (
        |config| config["max_msgs_per_subject"] = (-1).into(),
        "max_msgs_per_subject",
        "-1",
        "1",
        Some(Setting::History),
    ),
    (
        |config| config["max_msg_size"] = 1_000.into(),
        "max_msg_size",
        "1000",
        "-1",
        Some(Setting::MaxMessageSize),
    ),
    (|config| config["storage"] = "memory".into(), "storage", "\"memory\"", "\"file\"", None),
    (|config| config["no_ack"] = true.into(), "no_ack", "true", "false", None),
    (
        |config| config["retention"] = "interest".into(),
        "retention",
        "\"interest\"",
        "\"limits\"",
        None,
    ),
];

#[tokio::test]
async fn a_bucket_that_would_lose_leases_is_refused_and_named() {
    on_both(async |server| {
        let admin = Admin::of(server).await;
        for (change, setting, found, wanted, adoptable) in UNFIT {
            let bucket = fresh_name("unfit");
            admin.create(&bucket, change).await;
            let before = admin.info(&bucket).await["config"].clone();
            let store = store(server, &bucket);
            let error = store.ensure_schema().await.unwrap_err();
            let expected = (setting, found.to_owned(), wanted.to_owned());
            assert_eq!(differences(&error), [expected]);
            // No other permission helps.
            let others = Setting::ALL.into_iter().filter(|other| Some(*other) != adoptable);
            let others = store.with_adopted(others);
            assert_eq!(differences(&others.ensure_schema().await.unwrap_err()).len(), 1);
            assert_eq!(admin.info(&bucket).await["config"], before, "nothing was changed");
        }
    })
    .await;
}

/// And the rest of the settings stays as an operator has chosen it.
#[tokio::test]
async fn a_setting_that_is_adopted_is_changed_and_nothing_else() {
    on_both(async |server| {
        let admin = Admin::of(server).await;
        for (change, setting, _, wanted, adoptable) in UNFIT {
            let Some(adoptable) = adoptable else { continue };
            let bucket = fresh_name("adopted");
            admin
                .create(&bucket, |config| {
                    change(config);
                    config["description"] = "an operator's".into();
                    config["max_consumers"] = 77.into();
                    config["duplicate_window"] = 5_000_000_000_u64.into();
                    config["allow_direct"] = true.into();
                })
                .await;
            let mut expected = admin.info(&bucket).await["config"].clone();
            store(server, &bucket).with_adopted([adoptable]).ensure_schema().await.unwrap();
            expected[setting] = serde_json::from_str(wanted).unwrap();
            assert_eq!(admin.info(&bucket).await["config"], expected);
            let store = store(server, &bucket);
            store.ensure_schema().await.unwrap();
            Candidate::new("a", &store).lead().await;
        }
    })
    .await;
}

/// History, a limit without eviction, and other things that harm no lease.
#[tokio::test]
async fn a_bucket_that_another_client_made_is_taken_if_it_is_fit_and_empty() {
    on_both(async |server| {
        let admin = Admin::of(server).await;
        let bucket = fresh_name("made");
        admin
            .create(&bucket, |config| {
                config["max_msgs_per_subject"] = 5.into();
                config["max_bytes"] = 10_000_000.into();
                config["allow_direct"] = true.into();
            })
            .await;
        let taken = store(server, &bucket);
        assert!(matches!(bucket_error(&taken.ping().await.unwrap_err()), BucketError::Unprepared));
        taken.ensure_schema().await.unwrap();
        let mut leader = Candidate::new("a", &taken);
        let term = leader.lead().await;
        for _ in 0..7 {
            won(leader.renew(term.fence).await);
        }

        let others = fresh_name("others");
        admin.create(&others, |_| {}).await;
        admin.put(&others, "config", "theirs").await;
        let error = store(server, &others).ensure_schema().await.unwrap_err();
        assert!(matches!(bucket_error(&error), BucketError::InUse { messages: 1 }));
        assert_eq!(admin.keys(&others).await, ["config"]);
    })
    .await;
}

#[tokio::test]
async fn what_was_asked_for_is_what_is_created() {
    on_both(async |server| {
        let bucket = fresh_name("asked");
        let store = store(server, &bucket).with_storage(Storage::Memory);
        let store = store.with_max_bytes(1_000_000).unwrap();
        store.ensure_schema().await.unwrap();
        let config = Admin::of(server).await.info(&bucket).await["config"].clone();
        assert_eq!(
            (&config["storage"], &config["max_bytes"]),
            (&json!("memory"), &json!(1_000_000))
        );
        assert_eq!((&config["num_replicas"], &config["max_age"]), (&json!(1), &json!(0)));

        let more = store.clone().with_max_bytes(2_000_000).unwrap();
        assert_eq!(differences(&more.ensure_schema().await.unwrap_err())[0].0, "max_bytes");
        more.with_adopted([Setting::MaxBytes]).ensure_schema().await.unwrap();
        let replicas = store.with_max_bytes(2_000_000).unwrap().with_replicas(3).unwrap();
        assert_eq!(differences(&replicas.ensure_schema().await.unwrap_err())[0].0, "num_replicas");
    })
    .await;
}

/// Its revisions begin above all of the former one's, and so nobody takes a new record for an old one.
#[tokio::test]
async fn a_bucket_that_was_deleted_and_created_anew_raises_fences_and_revisions() {
    on_both(async |server| {
        let (store, bucket) = fresh_store(server).await;
        let admin = Admin::of(server).await;
        let mut leader = Candidate::new("a", &store);
        let mut highest = None;
        let mut last = 0;
        for _ in 0..3 {
            let term = leader.lead().await;
            assert!(Some(term.fence) > highest, "{term:?} follows {highest:?}");
            let revision = admin.message(&bucket, "billing").await.unwrap()["seq"].clone();
            assert!(revision.as_u64() > Some(last), "{revision} follows {last}");
            last = revision.as_u64().unwrap();

            admin.delete(&bucket).await;
            store.ensure_schema().await.unwrap();
            // The session finds the new bucket under the same name, and its record gone.
            let mut other = Candidate::new("b", &store);
            won(other.session.acquire(&other.claim_of(None)).await.unwrap());
            let by = lost(leader.renew(term.fence).await).unwrap();
            assert_eq!(by.holder, Some(other.identity));
            highest = Some(by.fence);
        }
    })
    .await;
}

#[tokio::test]
async fn leases_in_memory_end_with_the_server_and_fences_rise_all_the_same() {
    for mut server in [Nats::start().unwrap(), Nats::start_current().unwrap()] {
        let store = NatsStore::new(&server.url()).unwrap().with_storage(Storage::Memory);
        store.ensure_schema().await.unwrap();
        let mut leader = Candidate::new("a", &store);
        let term = leader.lead().await;
        server.restart().unwrap();
        assert_eq!(lost(leader.renew(term.fence).await), None);
        let looked = leader.session.inspect().await.unwrap_err();
        assert!(matches!(bucket_error(&looked), BucketError::Missing));
        store.ensure_schema().await.unwrap();
        assert!(leader.lead().await.fence > term.fence);
    }
}

/// The sequence of a stream that became empty is forgotten by nats-server 2.9 when it is killed: a note prevents that.
#[tokio::test]
async fn revisions_go_on_after_a_crash_although_all_records_were_lost() {
    for mut server in [Nats::start().unwrap(), Nats::start_current().unwrap()] {
        let store = NatsStore::new(&server.url()).unwrap();
        store.ensure_schema().await.unwrap();
        let mut leader = Candidate::new("a", &store);
        leader.lead().await;
        let admin = Admin::of(&server).await;
        let revision = admin.message("leader_election", "billing").await.unwrap()["seq"].as_u64();
        admin.forget("leader_election", "billing").await;
        server.kill().unwrap();
        server.restart().unwrap();
        leader.lead().await;
        let admin = Admin::of(&server).await;
        let after = admin.message("leader_election", "billing").await.unwrap()["seq"].as_u64();
        assert!(after > revision, "{after:?} follows {revision:?}");
    }
}

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
