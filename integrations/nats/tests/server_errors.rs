//! What the server refuses, produced for real: what passes by itself is told from what someone must mend.

#![allow(clippy::unwrap_used)] // helpers of tests are tests

mod common;

use std::{error::Error, time::Duration};

use tenure::{Payload, StoreError, store::Session};
use tenure_nats::{NatsError, NatsStore, async_nats::ConnectOptions};
use tenure_testbed::{
    Nats,
    programs::{NATS, NATS_CURRENT, Programs},
};

use common::{Admin, Candidate, fresh_name, fresh_store, lost, old, won};

const BOTH: [&Programs; 2] = [&NATS, &NATS_CURRENT];

/// What the documentation of the crate lists, for the bucket `leader_election`.
const PERMISSIONS: &str = r#"
    publish: ["$KV.leader_election.>", "$JS.API.STREAM.INFO.KV_leader_election",
              "$JS.API.STREAM.MSG.GET.KV_leader_election",
              "$JS.API.CONSUMER.CREATE.KV_leader_election"],
    subscribe: ["_INBOX.>"]"#;

fn fatal(error: &StoreError, says: &str) {
    assert!(error.is_fatal(), "{error}: {:?}", error.source());
    assert!(error.to_string().contains(says), "{error}: {:?}", error.source());
}

fn transient(error: &StoreError, says: &str) {
    assert!(error.is_retryable(), "{error}: {:?}", error.source());
    assert!(error.to_string().contains(says), "{error}: {:?}", error.source());
}

fn code(error: &StoreError) -> Option<u64> {
    error.source()?.downcast_ref::<NatsError>()?.jetstream_code()
}

async fn looked(store: &NatsStore) -> StoreError {
    Candidate::new("a", store).session.inspect().await.unwrap_err()
}

#[tokio::test]
async fn a_server_without_jetstream() {
    for programs in BOTH {
        let server = Nats::start_with(programs, "").unwrap();
        let store = NatsStore::new(&server.url()).unwrap();
        fatal(&store.ensure_schema().await.unwrap_err(), "JetStream is not enabled on");
        fatal(&looked(&store).await, "JetStream is not enabled on");
    }
}

#[tokio::test]
async fn an_account_without_jetstream() {
    for programs in BOTH {
        let settings = r#"jetstream {}
            accounts { A { jetstream: enabled, users: [{user: a, password: pw}] },
                       B { users: [{user: b, password: pw}] } }"#;
        let server = Nats::start_with(programs, settings).unwrap();
        let store = NatsStore::new(&server.url_of("b:pw")).unwrap();
        let error = store.ensure_schema().await.unwrap_err();
        fatal(&error, "JetStream is not enabled for this account");
        assert!(matches!(code(&error), Some(10035 | 10039)), "{error:?}");
        NatsStore::new(&server.url_of("a:pw")).unwrap().ensure_schema().await.unwrap();
    }
}

#[tokio::test]
async fn a_missing_bucket() {
    for server in [old(), common::current()] {
        let store = NatsStore::new(&server.url()).unwrap();
        let store = store.with_bucket(&fresh_name("missing")).unwrap();
        fatal(&looked(&store).await, "call `ensure_schema()`");
        fatal(&store.ping().await.unwrap_err(), "call `ensure_schema()`");
        fatal(&store.leaders().await.unwrap_err(), "call `ensure_schema()`");
    }
}

#[tokio::test]
async fn a_login_that_is_refused() {
    for programs in BOTH {
        for (settings, right, wrong) in [
            ("authorization { user: app, password: right }", "app:right", "app:secret"),
            ("authorization { token: right }", "right", "secret"),
        ] {
            let server =
                Nats::start_with(programs, &format!("jetstream {{}}\n{settings}")).unwrap();
            NatsStore::new(&server.url_of(right)).unwrap().ensure_schema().await.unwrap();
            for url in [server.url_of(wrong), server.url()] {
                let error = looked(&NatsStore::new(&url).unwrap()).await;
                fatal(&error, "refuses the login");
                let said = format!("{error} {error:?} {:?}", error.source());
                assert!(!said.contains("secret"), "{said}");
            }
        }
    }
}

#[tokio::test]
async fn a_user_with_the_permissions_that_are_documented_needs_no_others() {
    for programs in BOTH {
        let settings = format!(
            r#"jetstream {{}}
            authorization {{ users: [
                {{user: root, password: pw}},
                {{user: app, password: pw, permissions: {{ {PERMISSIONS} }}}}] }}"#
        );
        let server = Nats::start_with(programs, &settings).unwrap();
        let root = NatsStore::new(&server.url_of("root:pw")).unwrap();
        let app = NatsStore::new(&server.url_of("app:pw")).unwrap();
        let limited = app.ensure_schema().await.unwrap_err();
        fatal(&limited, "lacks a permission");
        root.ensure_schema().await.unwrap();

        app.ensure_schema().await.unwrap();
        app.ping().await.unwrap();
        let mut leader = Candidate::new("a", &app);
        let mut hints = leader.session.hints();
        futures::StreamExt::next(&mut hints).await.unwrap();
        let term = leader.lead().await;
        won(leader.renew(term.fence).await);
        won(leader.session.release(&leader.release_of(term.fence)).await.unwrap());
        futures::StreamExt::next(&mut hints).await.unwrap();
        app.depose(&common::election()).await.unwrap();
        assert_eq!(app.leaders().await.unwrap().len(), 1);
    }
}

/// The server answers by a word to the connection alone, and so does the session, at once.
#[tokio::test]
async fn a_permission_that_is_missing() {
    for programs in BOTH {
        let settings = r#"jetstream {}
            authorization { users: [
                {user: root, password: pw},
                {user: reader, password: pw, permissions: {publish: {deny: "$KV.>"}}},
                {user: deaf, password: pw, permissions: {subscribe: {deny: "_INBOX.>"}}}] }"#;
        let server = Nats::start_with(programs, settings).unwrap();
        NatsStore::new(&server.url_of("root:pw")).unwrap().ensure_schema().await.unwrap();
        let reader = NatsStore::new(&server.url_of("reader:pw")).unwrap();
        let mut candidate = Candidate::new("a", &reader);
        candidate.session.limit_calls(Duration::from_secs(600));
        assert_eq!(candidate.look().await, None);
        let refused = candidate.session.acquire(&candidate.claim_of(None)).await.unwrap_err();
        fatal(&refused, "lacks a permission");
        assert!(refused.source().unwrap().to_string().contains("$KV.leader_election"));
        fatal(&looked(&NatsStore::new(&server.url_of("deaf:pw")).unwrap()).await, "permission");
        // A prefix of its own, for those who may not use the common one.
        let options = ConnectOptions::new().custom_inbox_prefix("_MINE");
        let deaf = NatsStore::with_options(&server.url_of("deaf:pw"), options).unwrap();
        Candidate::new("a", &deaf).lead().await;
    }
}

#[tokio::test]
async fn a_server_that_is_down_or_frozen_or_does_not_exist() {
    let mut server = Nats::start().unwrap();
    let store = NatsStore::new(&server.url()).unwrap();
    store.ensure_schema().await.unwrap();
    let mut leader = Candidate::new("a", &store);
    leader.session.limit_calls(Duration::from_millis(400));
    leader.lead().await;
    server.stop();
    let frozen = leader.session.inspect().await.unwrap_err();
    transient(&frozen, "no answer from the server at 127.0.0.1:");
    // Nor does it greet anybody.
    transient(&leader.session.inspect().await.unwrap_err(), "the server at 127.0.0.1:");
    server.kill().unwrap();
    transient(&leader.session.inspect().await.unwrap_err(), "cannot be reached");
    transient(&looked(&store).await, "cannot be reached");
    transient(&store.ping().await.unwrap_err(), "cannot be reached");
    let nowhere = NatsStore::new("nats://tenure.invalid").unwrap();
    transient(&looked(&nowhere).await, "cannot be reached");
}

#[tokio::test]
async fn a_server_without_encryption_where_it_is_asked_for() {
    let url = old().url().replace("nats://", "tls://");
    fatal(&looked(&NatsStore::new(&url).unwrap()).await, "no encrypted connection");
    let missing = NatsStore::new(&old().url()).unwrap().with_credentials_file("/nowhere").unwrap();
    fatal(&looked(&missing).await, "the file of credentials cannot be read");
}

#[tokio::test]
async fn a_payload_that_is_larger_than_the_server_takes() {
    for programs in BOTH {
        let server = Nats::start_with(programs, "jetstream {}\nmax_payload: 2048").unwrap();
        let store = NatsStore::new(&server.url()).unwrap();
        store.ensure_schema().await.unwrap();
        let mut leader = Candidate::new("a", &store);
        let mut claim = leader.claim_of(None);
        claim.payload = Payload::from(vec![0; 2_000]);
        fatal(&leader.session.acquire(&claim).await.unwrap_err(), "raise its `max_payload`");
        // The session is not harmed.
        leader.lead().await;
    }
}

/// A bucket that is full refuses what is new, and keeps what is there.
#[tokio::test]
async fn a_bucket_that_is_full() {
    for server in [old(), common::current()] {
        let bucket = fresh_name("full");
        let store = NatsStore::new(&server.url()).unwrap().with_bucket(&bucket).unwrap();
        let store = store.with_max_bytes(1_500).unwrap();
        store.ensure_schema().await.unwrap();
        let mut leader = Candidate::new("a", &store);
        let term = leader.lead().await;
        let mut renewal = leader.renewal_of(term.fence);
        renewal.payload = Some(Payload::from(vec![0; 2_000]));
        let full = leader.session.renew(&renewal).await.unwrap_err();
        fatal(&full, "the bucket");
        assert!(matches!(code(&full), Some(10054 | 10077)), "{full:?}");
        won(leader.renew(term.fence).await);
    }
}

#[tokio::test]
async fn a_server_and_an_account_with_no_room() {
    for programs in BOTH {
        let server = Nats::start_with(programs, "jetstream { max_file: 1K }").unwrap();
        let store = NatsStore::new(&server.url()).unwrap().with_max_bytes(1_000_000).unwrap();
        let error = store.ensure_schema().await.unwrap_err();
        fatal(&error, "left for JetStream");
        let settings = r#"jetstream {}
            accounts { A { jetstream { max_file: 1M, max_streams: 1 },
                           users: [{user: a, password: pw}] } }"#;
        let server = Nats::start_with(programs, settings).unwrap();
        let store = NatsStore::new(&server.url_of("a:pw")).unwrap();
        store.clone().with_bucket("one").unwrap().ensure_schema().await.unwrap();
        let error = store.ensure_schema().await.unwrap_err();
        fatal(&error, "the account may have no more streams");
        // As hosted accounts are.
        let settings = r#"jetstream {}
            accounts { A { jetstream { max_file: 10M, max_bytes_required: true, disk_max_stream_bytes: 1M },
                           users: [{user: a, password: pw}] } }"#;
        let server = Nats::start_with(programs, settings).unwrap();
        let store = NatsStore::new(&server.url_of("a:pw")).unwrap();
        let error = store.ensure_schema().await.unwrap_err();
        fatal(&error, "see `with_max_bytes()`");
        let error = store.clone().with_max_bytes(2_000_000).unwrap().ensure_schema().await;
        fatal(&error.unwrap_err(), "see `with_max_bytes()`");
        let store = store.with_max_bytes(500_000).unwrap();
        store.ensure_schema().await.unwrap();
        Candidate::new("a", &store).lead().await;
    }
}

#[tokio::test]
async fn more_replicas_than_there_are_servers() {
    for server in [old(), common::current()] {
        let bucket = fresh_name("replicas");
        let store = NatsStore::new(&server.url()).unwrap().with_bucket(&bucket).unwrap();
        let error = store.with_replicas(3).unwrap().ensure_schema().await.unwrap_err();
        fatal(&error, "see `with_replicas()`");
    }
}

/// A bucket that somebody sealed is read, and not written to; what the leader is told is no proof.
#[tokio::test]
async fn a_bucket_that_is_sealed() {
    for server in [old(), common::current()] {
        let (store, bucket) = fresh_store(server).await;
        let mut leader = Candidate::new("a", &store);
        let term = leader.lead().await;
        let admin = Admin::of(server).await;
        let mut config = admin.info(&bucket).await["config"].clone();
        for (name, value) in [
            ("sealed", true),
            ("deny_delete", true),
            ("deny_purge", true),
            ("allow_rollup_hdrs", false),
        ] {
            config[name] = value.into();
        }
        admin.ask(&format!("STREAM.UPDATE.KV_{bucket}"), &config).await;
        let renewal = leader.renewal_of(term.fence);
        fatal(&leader.session.renew(&renewal).await.unwrap_err(), "the bucket is sealed");
        fatal(&looked(&store).await, "the bucket is sealed");
        admin.delete(&bucket).await;
        assert_eq!(lost(leader.renew(term.fence).await), None);
    }
}
