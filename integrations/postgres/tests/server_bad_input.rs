//! What goes wrong is said with its SQLSTATE, and with what to do.

#![allow(clippy::unwrap_used)] // helpers of tests are tests

mod common;

use std::{error::Error, time::Duration};

use sqlx::postgres::PgPoolOptions;
use tenure::{
    ElectionName, Payload, StoreError,
    store::{Session, Store},
};
use tenure_postgres::{PostgresError, PostgresStore, sqlx};
use tenure_testbed::PgBouncer;

use common::{Candidate, Path, election, execute, fresh_name, on_each_path, wait_for_a_lock, won};

on_each_path!(
    a_wrong_password_is_refused_and_repeated_nowhere,
    an_unknown_user_or_database_is_fatal,
    a_missing_table_names_itself_and_what_creates_it,
    a_table_of_another_kind_is_not_taken_for_ours,
    a_table_that_somebody_else_has_just_created_is_taken,
    a_record_that_was_spoiled_is_an_error_until_it_is_mended,
    a_role_without_privileges_is_told_what_to_grant_and_needs_no_more,
    a_read_only_database_can_be_looked_at_and_not_led,
    an_absurd_duration_is_refused_and_the_session_goes_on,
    names_and_payloads_of_any_kind_come_back_as_they_were,
    an_exhausted_pool_is_told_from_a_server_that_is_gone
);

fn sqlstate(error: &StoreError) -> Option<&str> {
    error.source()?.downcast_ref::<PostgresError>()?.sqlstate()
}

/// All that an error says, in every form.
fn everything(error: &StoreError) -> String {
    let mut said = format!("{error} {error:?}");
    let mut source = error.source();
    while let Some(cause) = source {
        said += &format!(" {cause} {cause:?}");
        source = cause.source();
    }
    said
}

async fn inspect(url: &str) -> StoreError {
    let store = PostgresStore::new(url).unwrap();
    store.session(&election()).inspect().await.unwrap_err()
}

/// `code` is fatal, named in the message, and the message says what to do.
#[track_caller]
fn assert_fatal(error: &StoreError, code: &str, advice: &str) {
    assert_eq!(sqlstate(error), Some(code), "{error:?}");
    assert!(error.is_fatal(), "{error:?}");
    let message = error.to_string();
    assert!(message.contains(code) && message.contains(advice), "{message}");
}

/// A pooler has one code for whatever it refuses itself.
fn refusal(path: Path, code: &str) -> &str {
    if path == Path::Pooled { "08P01" } else { code }
}

/// A role with a login and nothing else, on a server where everybody is trusted.
async fn fresh_role(path: Path, more: &str) -> String {
    let role = fresh_name("role");
    execute(&mut path.admin().await, format!("CREATE ROLE {role} LOGIN {more}")).await;
    role
}

#[tokio::test]
async fn an_unreachable_server_is_a_failure_that_passes() {
    // A port on which nobody listens any more.
    let addr = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let error = inspect(&format!("postgres://app:secret@{addr}/app")).await;
    assert!(error.is_retryable(), "{error}");
    assert!(error.to_string().contains("the server at 127.0.0.1:"), "{error}");
    assert!(error.to_string().contains("cannot be reached"), "{error}");
    assert!(!everything(&error).contains("secret"));
}

async fn a_wrong_password_is_refused_and_repeated_nowhere(path: Path) {
    let mut admin = path.admin().await;
    // Two paths may share a server.
    let _ = sqlx::raw_sql("CREATE ROLE scram").execute(&mut admin).await;
    let user = match path {
        Path::Pooled => PgBouncer::WITH_PASSWORD.to_owned(),
        Path::Direct | Path::Postgres18 => fresh_name("user"),
    };
    execute(&mut admin, format!("CREATE ROLE {user} LOGIN PASSWORD 'right' IN ROLE scram")).await;
    let error = inspect(&path.url_of(&format!("{user}:wr0ng"), "postgres")).await;
    assert_fatal(&error, refusal(path, "28P01"), "password");
    assert!(!everything(&error).contains("wr0ng"), "{}", everything(&error));

    let store = PostgresStore::new(&path.url_of(&format!("{user}:right"), "postgres")).unwrap();
    assert!(!format!("{store:?}").contains("right"));
    assert!(!format!("{:?}", store.session(&election())).contains("right"));
    let error = store.ping().await.unwrap_err();
    assert_fatal(&error, "42P01", "ensure_schema");
}

async fn an_unknown_user_or_database_is_fatal(path: Path) {
    let error = inspect(&path.url_of("nobody_at_all", "postgres")).await;
    assert_fatal(&error, refusal(path, "28000"), "user");
    let error = inspect(&path.url_of("postgres", "nowhere")).await;
    assert_fatal(&error, refusal(path, "3D000"), "database");
}

async fn a_missing_table_names_itself_and_what_creates_it(path: Path) {
    let store = PostgresStore::new(&path.url()).unwrap();
    let store = store.with_table("no such schema", "no such table").unwrap();
    let mut candidate = Candidate::new("a", &store);
    let claim = candidate.claim_of(None);
    let error = candidate.session.acquire(&claim).await.unwrap_err();
    assert_fatal(&error, "42P01", "\"no such schema\".\"no such table\"");
    assert!(error.to_string().contains("ensure_schema()"), "{error}");
}

async fn a_table_of_another_kind_is_not_taken_for_ours(path: Path) {
    let schema = fresh_name("schema");
    let sql =
        format!("CREATE SCHEMA {schema}; CREATE TABLE {schema}.other (name text, fence bigint)");
    execute(&mut path.admin().await, sql).await;
    let store = PostgresStore::new(&path.url()).unwrap().with_table(&schema, "other").unwrap();
    assert_fatal(&store.ensure_schema().await.unwrap_err(), "42703", "with_table");
    assert_fatal(&store.ping().await.unwrap_err(), "42703", "lacks a column");
}

/// `IF NOT EXISTS` does not see what another session has not committed yet, and waits for it.
async fn a_table_that_somebody_else_has_just_created_is_taken(path: Path) {
    let schema = fresh_name("schema");
    let store = PostgresStore::new(&path.url()).unwrap().with_table(&schema, "leases").unwrap();
    let (mut other, mut admin) = (path.admin().await, path.admin().await);
    execute(&mut admin, format!("CREATE SCHEMA {schema}")).await;
    execute(&mut other, format!("BEGIN; {}", store.schema_sql())).await;
    let (created, ()) = tokio::join!(store.ensure_schema(), async {
        wait_for_a_lock(&mut admin, &schema).await;
        execute(&mut other, "COMMIT").await;
    });
    created.unwrap();
    Candidate::new("a", &store).lead().await;
}

/// By somebody's own hand. What it says is not guessed at: that might be two leaders.
async fn a_record_that_was_spoiled_is_an_error_until_it_is_mended(path: Path) {
    let (store, table) = path.fresh_store().await;
    let mut leader = Candidate::new("leader", &store);
    let term = leader.lead().await;
    let mut admin = path.admin().await;
    for (spoiled, mended) in [
        ("version = -1", "version = 7"),
        ("holder = ''", "holder = 'leader'"),
        ("fence = -1", "fence = 9"),
    ] {
        execute(&mut admin, format!("UPDATE {table} SET {spoiled}")).await;
        let error = leader.session.inspect().await.unwrap_err();
        let cause = error.source().and_then(|source| source.downcast_ref::<PostgresError>());
        let driver = cause.unwrap().driver();
        assert!(matches!(driver, sqlx::Error::Decode(_)), "{spoiled}: {error:?}");
        store.leaders().await.unwrap_err();
        execute(&mut admin, format!("UPDATE {table} SET {mended}")).await;
        let shown = leader.session.inspect().await.unwrap().unwrap();
        assert_eq!(shown.holder, term.holder);
    }
}

async fn a_role_without_privileges_is_told_what_to_grant_and_needs_no_more(path: Path) {
    let (_, table) = path.fresh_store().await;
    let (schema, _) = table.split_once('.').unwrap();
    let role = fresh_role(path, "").await;
    let mut admin = path.admin().await;
    let store = PostgresStore::new(&path.url_of(&role, "postgres")).unwrap();
    let store = store.with_table(schema, "leader_election").unwrap();
    assert_fatal(&store.ensure_schema().await.unwrap_err(), "42501", "GRANT");

    execute(&mut admin, format!("GRANT USAGE ON SCHEMA {schema} TO {role}")).await;
    let mut candidate = Candidate::new("a", &store);
    let error = candidate.session.inspect().await.unwrap_err();
    assert_fatal(
        &error,
        "42501",
        &format!("GRANT SELECT, INSERT, UPDATE ON \"{schema}\".\"leader_election\""),
    );

    execute(&mut admin, format!("GRANT SELECT, INSERT, UPDATE ON {table} TO {role}")).await;
    store.ensure_schema().await.unwrap();
    let term = candidate.lead().await;
    let renewal = candidate.renewal_of(term.fence);
    won(candidate.session.renew(&renewal).await.unwrap());
    let release = candidate.release_of(term.fence);
    won(candidate.session.release(&release).await.unwrap());
    candidate.lead().await;
    store.depose(&election()).await.unwrap().unwrap();
}

async fn a_read_only_database_can_be_looked_at_and_not_led(path: Path) {
    let (store, table) = path.fresh_store().await;
    Candidate::new("a", &store).lead().await;
    let (schema, _) = table.split_once('.').unwrap();
    let role = fresh_role(path, "SUPERUSER").await;
    execute(
        &mut path.admin().await,
        format!("ALTER ROLE {role} SET default_transaction_read_only = on"),
    )
    .await;

    let store = PostgresStore::new(&path.url_of(&role, "postgres")).unwrap();
    let store = store.with_table(schema, "leader_election").unwrap();
    let mut candidate = Candidate::new("b", &store);
    let seen = candidate.session.inspect().await.unwrap().unwrap();
    let claim = candidate.claim_of(Some(&seen));
    let error = candidate.session.acquire(&claim).await.unwrap_err();
    assert_fatal(&error, "25006", "read-only");
    store.ensure_schema().await.unwrap(); // it is there
}

async fn an_absurd_duration_is_refused_and_the_session_goes_on(path: Path) {
    let (store, _) = path.fresh_store().await;
    let mut candidate = Candidate::new("a", &store);
    let mut claim = candidate.claim_of(None);
    claim.duration = Duration::MAX;
    let error = candidate.session.acquire(&claim).await.unwrap_err();
    assert!(error.is_fatal() && error.to_string().contains("SQLSTATE 22"), "{error}");
    candidate.lead().await;
}

async fn names_and_payloads_of_any_kind_come_back_as_they_were(path: Path) {
    const AWKWARD: &str = "'; DROP TABLE leader_election; -- \\ \" $1 $$ \r\n\t \u{202e} 🦀";
    let (store, _) = path.fresh_store().await;
    let name = ElectionName::new(AWKWARD).unwrap();
    let mut session = store.session(&name);
    let candidate = Candidate::new(AWKWARD, &store);
    let mut claim = candidate.claim_of(None);
    claim.payload = Payload::from((0..=255).collect::<Vec<u8>>());
    let lease = won(session.acquire(&claim).await.unwrap());
    assert_eq!(
        (lease.holder.as_ref(), &lease.payload),
        (Some(&candidate.identity), &claim.payload)
    );
    assert_eq!(store.leaders().await.unwrap()[0].0, name);
}

async fn an_exhausted_pool_is_told_from_a_server_that_is_gone(path: Path) {
    let (store, table) = path.fresh_store().await;
    let (schema, _) = table.split_once('.').unwrap();
    let pool = PgPoolOptions::new()
        .max_connections(1)
        .acquire_timeout(Duration::from_millis(300))
        .connect_lazy_with(path.options());
    let pooled = PostgresStore::from_pool(pool.clone());
    let pooled = pooled.with_table(schema, "leader_election").unwrap();
    let (shown, port) = (format!("{pooled:?}"), path.addr().port());
    assert!(shown.contains(&port.to_string()) && shown.contains(schema), "{shown}");
    let mut candidate = Candidate::new("a", &pooled);
    candidate.lead().await;

    let held = pool.acquire().await.unwrap();
    let error = candidate.session.inspect().await.unwrap_err();
    assert!(error.is_retryable() && error.to_string().contains("pool"), "{error}");
    // A store with connections of its own does not notice.
    Candidate::new("b", &store).lead().await;
    drop(held);
    candidate.lead().await;

    pool.close().await;
    let error = candidate.session.inspect().await.unwrap_err();
    assert!(error.is_fatal() && error.to_string().contains("closed"), "{error}");
}
