//! What the statements cost, and what they do not depend on.

#![allow(clippy::unwrap_used)] // helpers of tests are tests

mod common;

use std::time::Duration;

use sqlx::{AssertSqlSafe, Row};
use tenure::{
    Payload,
    store::{Outcome, PlaceRequest, Session, When},
};
use tenure_postgres::{PostgresStore, sqlx};
use tenure_testbed::Proxy;

use common::{
    Candidate, LONG, Path, connect, election, execute, fresh_name, lost, on_each_path, url_at,
    value, wait_for, wait_for_a_lock, won,
};

on_each_path!(
    a_migration_tool_may_run_the_schema_any_number_of_times,
    looking_and_losing_write_nothing_not_even_to_the_log,
    thousands_of_renewals_take_one_round_trip_each_and_update_in_place,
    a_locked_row_is_an_error_in_time_and_not_a_hang,
    renewals_pass_a_transaction_that_holds_the_term_and_take_overs_wait,
    defaults_of_the_role_change_nothing,
    a_pooled_connection_with_an_open_transaction_wins_nothing
);

async fn a_migration_tool_may_run_the_schema_any_number_of_times(path: Path) {
    let schema = fresh_name("schema");
    let store = PostgresStore::new(&path.url()).unwrap();
    let store = store.with_table(&schema, "leader_election").unwrap();
    let mut admin = path.admin().await;
    execute(&mut admin, store.schema_sql()).await;
    execute(&mut admin, store.schema_sql()).await;
    store.ping().await.unwrap();
    Candidate::new("a", &store).lead().await;
}

/// On a server of its own, where nobody else writes.
async fn looking_and_losing_write_nothing_not_even_to_the_log(path: Path) {
    let mut private = path.start();
    let mut admin = connect(&private.server.url()).await;
    // Whatever the server writes by itself.
    for setting in [
        "autovacuum = off",
        "bgwriter_lru_maxpages = 0",
        "checkpoint_timeout = '1d'",
        "wal_level = minimal",
        "max_wal_senders = 0",
    ] {
        execute(&mut admin, format!("ALTER SYSTEM SET {setting}")).await;
    }
    private.server.restart().unwrap();
    let mut admin = connect(&private.server.url()).await;

    let store = PostgresStore::new(&private.url()).unwrap();
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
    execute(&mut admin, "CHECKPOINT").await;

    const POSITION: &str = "SELECT (pg_current_wal_insert_lsn() - '0/0')::text || ' ' || pg_snapshot_xmax(pg_current_snapshot())::text";
    let before: String = value(&mut admin, POSITION).await;
    for _ in 0..20 {
        rival.session.inspect().await.unwrap();
        for claim in &claims {
            lost(rival.session.acquire(claim).await.unwrap()).unwrap();
        }
        lost(rival.session.renew(&stranger.0).await.unwrap()).unwrap();
        lost(rival.session.release(&stranger.1).await.unwrap()).unwrap();
        rival.session.place(&PlaceRequest::new(LONG)).await.unwrap();
    }
    let after: String = value(&mut admin, POSITION).await;
    assert_eq!(before, after, "position in the log, next transaction id");
    assert_eq!(
        rival.session.inspect().await.unwrap().map(|lease| lease.version),
        Some(current.version)
    );
}

async fn thousands_of_renewals_take_one_round_trip_each_and_update_in_place(path: Path) {
    const RENEWALS: i64 = 3_000;
    let (_, table) = path.fresh_store().await;
    let (schema, name) = table.split_once('.').unwrap();
    let proxy = Proxy::start(path.addr()).unwrap();
    let url = url_at(proxy.addr(), "postgres", "postgres");
    let store = PostgresStore::new(&url).unwrap().with_table(schema, name).unwrap();
    let mut leader = Candidate::new("leader", &store);
    let mut claim = leader.claim_of(None);
    claim.payload = Payload::from("https://leader.eu-west.internal:8443");
    let term = won(leader.session.acquire(&claim).await.unwrap());
    let renewal = leader.renewal_of(term.fence);

    let before = proxy.round_trips();
    for _ in 0..RENEWALS {
        won(leader.session.renew(&renewal).await.unwrap());
    }
    assert_eq!(i64::try_from(proxy.round_trips() - before).unwrap(), RENEWALS);

    drop(leader);
    let mut admin = path.admin().await;
    let counted = format!(
        "SELECT n_tup_upd, n_tup_hot_upd, pg_total_relation_size(relid) FROM pg_stat_user_tables WHERE schemaname = '{schema}'"
    );
    // The server counts a little later.
    let (updated, in_place, bytes) = wait_for("the server's count", async || {
        let row = sqlx::query(AssertSqlSafe(counted.clone())).fetch_one(&mut admin).await.unwrap();
        let row: (i64, i64, i64) = (row.get(0), row.get(1), row.get(2));
        (row.0 >= RENEWALS).then_some(row)
    })
    .await;
    assert!(in_place * 100 >= updated * 99, "{in_place} of {updated} updates in place");
    assert!(bytes < 1024 * 1024, "{bytes} bytes");
}

async fn a_locked_row_is_an_error_in_time_and_not_a_hang(path: Path) {
    let (store, table) = path.fresh_store().await;
    let mut leader = Candidate::new("leader", &store);
    let term = leader.lead().await;
    let renewal = leader.renewal_of(term.fence);

    let mut locker = path.admin().await;
    execute(&mut locker, format!("BEGIN; SELECT FROM {table} FOR UPDATE")).await;
    leader.session.limit_calls(Duration::from_millis(400));
    let error = leader.session.renew(&renewal).await.unwrap_err();
    assert!(error.is_retryable(), "{error}");
    assert!(error.to_string().contains("55P03"), "{error}");
    // The table as a whole.
    execute(&mut locker, format!("LOCK TABLE {table}")).await;
    let error = leader.session.inspect().await.unwrap_err();
    assert!(error.is_retryable() && error.to_string().contains("55P03"), "{error}");

    execute(&mut locker, "COMMIT").await;
    won(leader.session.renew(&renewal).await.unwrap());
}

/// A renewal must pass whoever holds the term inside a transaction of its own; a take-over and a step-down must not.
async fn renewals_pass_a_transaction_that_holds_the_term_and_take_overs_wait(path: Path) {
    let (store, table) = path.fresh_store().await;
    let (schema, _) = table.split_once('.').unwrap();
    let mut leader = Candidate::new("leader", &store);
    let term = leader.lead().await;
    let mut holding = path.admin().await;
    execute(&mut holding, format!("BEGIN; SELECT FROM {table} FOR KEY SHARE")).await;

    let renewal = leader.renewal_of(term.fence);
    let renewed = won(leader.session.renew(&renewal).await.unwrap());
    let mut rival = Candidate::new("rival", &store);
    rival.session.limit_calls(Duration::from_millis(300));
    let claim = rival.claim_of(Some(&renewed));
    let error = rival.session.acquire(&claim).await.unwrap_err();
    assert!(error.to_string().contains("55P03"), "{error}");
    let deposing = tokio::spawn({
        let store = store.clone();
        async move { store.depose(&election()).await }
    });
    let mut admin = path.admin().await;
    wait_for_a_lock(&mut admin, schema).await;
    execute(&mut holding, "COMMIT").await;
    assert_eq!(deposing.await.unwrap().unwrap().unwrap().holder, None);
}

async fn defaults_of_the_role_change_nothing(path: Path) {
    let role = fresh_name("role");
    let mut admin = path.admin().await;
    execute(&mut admin, format!("CREATE ROLE {role} LOGIN SUPERUSER")).await;
    for setting in [
        "default_transaction_isolation = 'serializable'",
        "standard_conforming_strings = off",
        "backslash_quote = on",
        "bytea_output = 'escape'",
        "intervalstyle = 'sql_standard'",
        "timezone = 'Asia/Kathmandu'",
        "search_path = ''",
        "lc_numeric = 'C'",
        "transform_null_equals = on",
    ] {
        execute(&mut admin, format!("ALTER ROLE {role} SET {setting}")).await;
    }
    let (_, table) = path.fresh_store().await;
    let (schema, name) = table.split_once('.').unwrap();
    let store = PostgresStore::new(&path.url_of(&role, "postgres")).unwrap();
    let store = store.with_table(schema, name).unwrap();
    store.ensure_schema().await.unwrap();
    let mut candidate = Candidate::new(r"it's \ a", &store);
    let mut claim = candidate.claim_of(None);
    claim.payload = Payload::from((0..=255).collect::<Vec<u8>>());
    let term = won(candidate.session.acquire(&claim).await.unwrap());
    assert_eq!(term.payload, claim.payload);
    assert!(term.ttl.unwrap() > LONG - Duration::from_secs(60) && term.ttl.unwrap() <= LONG);

    // Under the role's isolation level a renewal that waited for another write would fail.
    let renewal = candidate.renewal_of(term.fence);
    let mut writing = path.admin().await;
    execute(&mut writing, format!("BEGIN; UPDATE {table} SET payload = payload")).await;
    let renewing = tokio::spawn(async move { candidate.session.renew(&renewal).await });
    wait_for_a_lock(&mut admin, schema).await;
    execute(&mut writing, "COMMIT").await;
    won(renewing.await.unwrap().unwrap());
}

/// A pool may hand out a connection on which somebody left a transaction open: what is written there may be rolled back,
/// so it must not be reported as a success.
async fn a_pooled_connection_with_an_open_transaction_wins_nothing(path: Path) {
    let (store, table) = path.fresh_store().await;
    let (schema, name) = table.split_once('.').unwrap();
    let options = sqlx::postgres::PgPoolOptions::new().max_connections(1);
    let pool = options.connect_lazy_with(path.options());
    let pooled = PostgresStore::from_pool(pool.clone()).with_table(schema, name).unwrap();
    let mut candidate = Candidate::new("a", &pooled);

    sqlx::raw_sql("BEGIN").execute(&pool).await.unwrap();
    let claim = candidate.claim_of(None);
    let error = candidate.session.acquire(&claim).await.unwrap_err();
    assert!(error.is_retryable(), "{error}");
    assert_eq!(store.leaders().await.unwrap(), []);
    // That connection is gone; the next one is a fresh one.
    assert!(matches!(candidate.session.acquire(&claim).await.unwrap(), Outcome::Won(_)));
}
