//! Buckets that are there already, and that vanish.

#![allow(clippy::unwrap_used)] // helpers of tests are tests

mod common;

use serde_json::{Value, json};
use tenure::{StoreError, store::Session};
use tenure_nats::{BucketError, Difference, NatsStore, Setting, Storage};
use tenure_testbed::Nats;

use common::{Admin, Candidate, bucket_error, fresh_name, fresh_store, lost, on_both, store, won};

fn differences(error: &StoreError) -> Vec<(&'static str, String, String)> {
    let BucketError::Differs(differences) = bucket_error(error) else { panic!("{error:?}") };
    let fields = differences
        .iter()
        .map(|Difference { setting, found, wanted, .. }| (*setting, found.clone(), wanted.clone()));
    fields.collect()
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
