//! What the statements cost, and what they do not depend on.

#![allow(clippy::unwrap_used)] // helpers of tests are tests

mod common;

use std::time::Duration;

use sqlx::{AssertSqlSafe, Row};
use tenure::{
    Payload,
    store::{Outcome, PlaceRequest, Session, Store, When},
};
use tenure_mysql::{MysqlStore, sqlx};
use tenure_testbed::{Mariadb, Proxy};

use common::{
    Candidate, LONG, admin, connect, election, execute, fresh_name, fresh_store, lost, server,
    value, wait_for, wait_for_a_lock, won,
};

#[tokio::test]
async fn a_migration_tool_may_run_the_schema_any_number_of_times() {
    let store = MysqlStore::new(&server().url()).unwrap();
    let store = store.with_table(&fresh_name("it's `one`")).unwrap();
    let mut admin = admin().await;
    execute(&mut admin, store.schema_sql()).await;
    execute(&mut admin, store.schema_sql()).await;
    store.ping().await.unwrap();
    Candidate::new("a", &store).lead().await;
}

/// On a server of its own, where nobody else writes: neither to InnoDB's log nor to the one that is replicated.
#[tokio::test]
async fn looking_and_losing_write_nothing_not_even_to_the_log() {
    let server = Mariadb::start_with(&["--log-bin", "--binlog-format=ROW"]).unwrap();
    let store = MysqlStore::new(&server.url()).unwrap();
    store.ensure_schema().await.unwrap();
    let mut leader = Candidate::new("leader", &store);
    let older = leader.lead().await;
    let renewal = leader.renewal_of(older.fence);
    let current = won(leader.session.renew(&renewal).await.unwrap());
    let mut rival = Candidate::new("rival", &store);
    rival.session.inspect().await.unwrap();

    let mut claims =
        vec![rival.claim_of(None), rival.claim_of(Some(&older)), rival.claim_of(Some(&current))];
    claims[2].when = When::Expired;
    let stranger = (rival.renewal_of(current.fence), rival.release_of(current.fence));

    let mut admin = connect(&server.url()).await;
    let mut positions = async || {
        let row = sqlx::query("SHOW MASTER STATUS").fetch_one(&mut admin).await.unwrap();
        let replicated: u64 = row.get("Position");
        let lsn = "SELECT VARIABLE_VALUE FROM information_schema.GLOBAL_STATUS \
                   WHERE VARIABLE_NAME = 'Innodb_lsn_current'";
        (replicated, value::<String>(&mut admin, lsn).await)
    };
    // What was changed before is cleaned up in the background, at whatever moment. If any of this wrote, every round would.
    let before = wait_for("a round in which nobody writes", async || {
        let before = positions().await;
        for _ in 0..20 {
            rival.session.inspect().await.unwrap();
            for claim in &claims {
                lost(rival.session.acquire(claim).await.unwrap()).unwrap();
            }
            lost(rival.session.renew(&stranger.0).await.unwrap()).unwrap();
            lost(rival.session.release(&stranger.1).await.unwrap()).unwrap();
            rival.session.place(&PlaceRequest::new(LONG)).await.unwrap();
        }
        (positions().await == before).then_some(before)
    })
    .await;
    let seen = rival.session.inspect().await.unwrap();
    assert_eq!(seen.map(|lease| lease.version), Some(current.version));
    won(leader.session.renew(&renewal).await.unwrap());
    assert_ne!(before, positions().await, "what is compared shows a write");
}

#[tokio::test]
async fn each_operation_takes_one_round_trip() {
    let (_, table) = fresh_store().await;
    let proxy = Proxy::start(server().addr()).unwrap();
    let url = format!("mysql://root@{}/app", proxy.addr());
    let store = MysqlStore::new(&url).unwrap().with_table(&table).unwrap();
    let mut leader = Candidate::new("leader", &store);
    assert_eq!(leader.session.inspect().await.unwrap(), None);

    let mut before = proxy.round_trips();
    let mut one = |what: &str| {
        let after = proxy.round_trips();
        assert_eq!(after - before, 1, "{what}");
        before = after;
    };
    let mut claim = leader.claim_of(None);
    claim.payload = Payload::from("https://leader.eu-west.internal:8443");
    let term = won(leader.session.acquire(&claim).await.unwrap());
    one("acquire");
    for _ in 0..1_000 {
        won(leader.session.renew(&leader.renewal_of(term.fence)).await.unwrap());
        one("renew");
    }
    won(leader.session.release(&leader.release_of(term.fence)).await.unwrap());
    one("release");
    let released = leader.session.inspect().await.unwrap().unwrap();
    one("inspect");
    lost(leader.session.acquire(&claim).await.unwrap()).unwrap();
    one("a lost acquire");
    won(leader.session.acquire(&leader.claim_of(Some(&released))).await.unwrap());
    one("a take-over");
    leader.session.place(&PlaceRequest::new(LONG)).await.unwrap();
    one("place");
}

#[tokio::test]
async fn a_locked_row_is_an_error_in_time_and_not_a_hang() {
    let (store, table) = fresh_store().await;
    let mut leader = Candidate::new("leader", &store);
    let term = leader.lead().await;
    let renewal = leader.renewal_of(term.fence);

    let mut locker = admin().await;
    execute(&mut locker, format!("START TRANSACTION; SELECT * FROM {table} FOR UPDATE")).await;
    // MySQL and MariaDB give up a wait for a lock after whole seconds, MariaDB a statement earlier.
    for (limit, number) in [(4_000, "1205"), (400, "1969")] {
        let mut leader = Candidate::new("leader", &store);
        leader.session.limit_calls(Duration::from_millis(limit));
        let error = leader.session.renew(&renewal).await.unwrap_err();
        assert!(error.is_retryable(), "{error}");
        assert!(error.to_string().contains(number), "{error}");
        assert!(error.to_string().contains("transaction"), "{error}");
    }
    let portable = store.clone().without_mariadb_shortcuts();
    let mut leader = Candidate::new("leader", &portable);
    leader.session.limit_calls(Duration::from_millis(400));
    let error = leader.session.renew(&renewal).await.unwrap_err();
    assert!(error.is_retryable() && error.to_string().contains("1205"), "{error}");

    // The table as a whole.
    execute(&mut locker, format!("COMMIT; LOCK TABLES {table} WRITE")).await;
    for store in [&store, &portable] {
        let mut onlooker = Candidate::new("onlooker", store);
        onlooker.session.limit_calls(Duration::from_secs(3));
        let error = onlooker.session.inspect().await.unwrap_err();
        assert!(error.is_retryable() && error.to_string().contains("1205"), "{error}");
    }
    execute(&mut locker, "UNLOCK TABLES").await;
    won(leader.session.renew(&renewal).await.unwrap());
}

/// The time is read after the lock was taken: what is written is valid for all of its duration, and what expired meanwhile
/// is not renewed.
#[tokio::test]
async fn a_wait_for_a_lock_neither_shortens_a_lease_nor_revives_one() {
    const WAIT: Duration = Duration::from_millis(600);
    for portable in [false, true] {
        let (store, table) = fresh_store().await;
        let store = if portable { store.without_mariadb_shortcuts() } else { store };
        let mut leader = Candidate::new("leader", &store);
        let term = leader.lead().await;
        let mut locker = admin().await;
        let mut locked = async |renewal| {
            let lock = format!("START TRANSACTION; SELECT * FROM {table} FOR UPDATE");
            execute(&mut locker, lock).await;
            let identity = leader.identity.clone();
            let (outcome, ()) = tokio::join!(leader.session.renew(&renewal), async {
                tokio::time::sleep(WAIT).await;
                execute(&mut locker, "COMMIT").await;
            });
            (outcome.unwrap(), identity)
        };
        let mut renewal = tenure::store::RenewRequest::new(
            tenure::Identity::new("leader").unwrap(),
            term.fence,
            Duration::from_secs(60),
        );
        let renewed = won(locked(renewal.clone()).await.0);
        assert!(renewed.ttl.unwrap() > Duration::from_secs(60) - WAIT / 2, "{renewed:?}");

        renewal.duration = WAIT / 2;
        let short = won(locked(renewal.clone()).await.0);
        assert!(short.ttl.unwrap() <= WAIT / 2);
        let expired = lost(locked(renewal).await.0).unwrap();
        assert_eq!((expired.version, expired.ttl), (short.version, Some(Duration::ZERO)));
    }
}

/// A pool may hand out a connection on which somebody left a transaction open: what is written there may be rolled back,
/// so it must not be reported as a success.
#[tokio::test]
async fn a_pooled_connection_with_an_open_transaction_wins_nothing() {
    let (store, table) = fresh_store().await;
    let options = sqlx::mysql::MySqlPoolOptions::new().max_connections(1);
    let pool = options.connect_lazy(&server().url()).unwrap();
    let pooled = MysqlStore::from_pool(pool.clone()).with_table(&table).unwrap();
    let mut candidate = Candidate::new("a", &pooled);

    sqlx::raw_sql("START TRANSACTION").execute(&pool).await.unwrap();
    let claim = candidate.claim_of(None);
    let error = candidate.session.acquire(&claim).await.unwrap_err();
    assert!(error.is_retryable() && error.to_string().contains("1568"), "{error}");
    assert_eq!(store.leaders().await.unwrap(), []);
    // That connection is gone; the next one is a fresh one.
    assert!(matches!(candidate.session.acquire(&claim).await.unwrap(), Outcome::Won(_)));
}

/// Two that lose must not wait for each other, nor must the leader with them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn claims_renewals_and_step_downs_side_by_side_never_deadlock() {
    let (store, table) = fresh_store().await;
    let deadlocks = "SELECT VARIABLE_VALUE FROM information_schema.GLOBAL_STATUS WHERE VARIABLE_NAME = 'Innodb_deadlocks'";
    let before: String = value(&mut admin().await, deadlocks).await;
    Candidate::new("first", &store).lead().await;
    let mut all = Vec::new();
    for number in 0..6 {
        let store = store.clone();
        all.push(tokio::spawn(async move {
            let mut candidate = Candidate::new(&format!("candidate {number}"), &store);
            for round in 0..60 {
                let seen = candidate.session.inspect().await.unwrap().unwrap();
                let claim = candidate.claim_of(Some(&seen));
                let outcome = candidate.session.acquire(&claim).await.unwrap();
                let fence = outcome.lease().unwrap().fence;
                let renewal = candidate.renewal_of(fence);
                candidate.session.renew(&renewal).await.unwrap();
                let release = candidate.release_of(fence);
                candidate.session.release(&release).await.unwrap();
                if round % 20 == number {
                    store.depose(&election()).await.unwrap();
                }
            }
        }));
    }
    for one in all {
        one.await.unwrap();
    }
    let after: String = value(&mut admin().await, deadlocks).await;
    assert_eq!(before, after, "on {table}");
}

/// A record that is there when its second row is missing, as after a restore by hand, is served like any other.
#[tokio::test]
async fn a_missing_second_row_is_made_again() {
    let (store, table) = fresh_store().await;
    let mut leader = Candidate::new("leader", &store);
    let term = leader.lead().await;
    let mut admin = admin().await;
    let rows = format!("SELECT COUNT(*) FROM {table}_hold");
    execute(&mut admin, format!("DELETE FROM {table}_hold")).await;
    let renewal = leader.renewal_of(term.fence);
    won(leader.session.renew(&renewal).await.unwrap());
    assert_eq!(value::<i64>(&mut admin, rows.clone()).await, 0);
    let next = leader.lead().await;
    assert!(next.fence > term.fence);
    let held: i64 = value(&mut admin, format!("SELECT held_fence FROM {table}_hold")).await;
    assert_eq!(held, i64::from(next.fence));
}

#[tokio::test]
async fn a_renewal_waits_for_the_application_only_as_long_as_it_must() {
    let (store, table) = fresh_store().await;
    let mut leader = Candidate::new("leader", &store);
    let term = leader.lead().await;
    let renewal = leader.renewal_of(term.fence);
    let mut writing = admin().await;
    execute(&mut writing, format!("START TRANSACTION; UPDATE {table} SET payload = 'x'")).await;
    let renewing = tokio::spawn(async move { leader.session.renew(&renewal).await });
    wait_for_a_lock(&mut admin().await, &table).await;
    execute(&mut writing, "COMMIT").await;
    assert_eq!(won(renewing.await.unwrap().unwrap()).payload, Payload::from("x"));
}

/// Whichever of the two ways of counting affected rows a driver or a proxy asks for, nothing is judged by it; and no mode
/// of the session's changes what is written.
#[tokio::test]
async fn modes_of_the_session_change_nothing() {
    let (_, table) = fresh_store().await;
    for mode in [
        "",
        "TRADITIONAL",
        "ANSI",
        "ORACLE",
        "NO_BACKSLASH_ESCAPES",
        "SIMULTANEOUS_ASSIGNMENT",
        "PAD_CHAR_TO_FULL_LENGTH,NO_ZERO_DATE,STRICT_ALL_TABLES",
    ] {
        let options = sqlx::mysql::MySqlPoolOptions::new().max_connections(1);
        let pool = options.connect_lazy(&server().url()).unwrap();
        let set = AssertSqlSafe(format!("SET SESSION sql_mode = '{mode}'"));
        sqlx::raw_sql(set).execute(&pool).await.unwrap();
        let store = MysqlStore::from_pool(pool).with_table(&table).unwrap();
        let mut session =
            store.session(&tenure::ElectionName::new(format!("mode {mode}")).unwrap());
        let candidate = Candidate::new(r"it's \ a", &store);
        let mut claim = candidate.claim_of(None);
        claim.payload = Payload::from((0..=255).collect::<Vec<u8>>());
        let term = won(session.acquire(&claim).await.unwrap());
        assert_eq!(
            (&term.payload, term.holder.as_ref()),
            (&claim.payload, Some(&candidate.identity))
        );
        let renewed = won(session.renew(&candidate.renewal_of(term.fence)).await.unwrap());
        assert!(renewed.ttl.unwrap() > LONG - Duration::from_secs(60), "{mode}: {renewed:?}");
        assert!(renewed.ttl.unwrap() <= LONG, "{mode}: {renewed:?}");
        won(session.release(&candidate.release_of(term.fence)).await.unwrap());
        store.ensure_schema().await.unwrap();
    }
}
