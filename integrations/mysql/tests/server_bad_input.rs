//! What goes wrong is said with the server's error number, and with what to do. Each error is one that a server gave.

#![allow(clippy::unwrap_used)] // helpers of tests are tests

mod common;

use std::{error::Error, time::Duration};

use sqlx::mysql::{MySqlConnectOptions, MySqlPoolOptions, MySqlSslMode};
use tenure::{
    ElectionName, Payload, StoreError,
    store::{Session, Store},
};
use tenure_mysql::{MysqlError, MysqlStore, sqlx};
use tenure_testbed::Mariadb;

use common::{Candidate, admin, connect, election, execute, fresh_name, fresh_store, server, won};

fn number(error: &StoreError) -> Option<u16> {
    error.source()?.downcast_ref::<MysqlError>()?.number()
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
    let store = MysqlStore::new(url).unwrap();
    store.session(&election()).inspect().await.unwrap_err()
}

/// The number is fatal, named in the message, and the message says what to do.
#[track_caller]
fn assert_fatal(error: &StoreError, expected: u16, advice: &str) {
    assert_eq!(number(error), Some(expected), "{error:?}");
    assert!(error.is_fatal(), "{error}");
    let message = error.to_string();
    assert!(message.contains(&expected.to_string()) && message.contains(advice), "{message}");
}

#[track_caller]
fn assert_transient(error: &StoreError, expected: u16, advice: &str) {
    assert_eq!(number(error), Some(expected), "{error:?}");
    assert!(error.is_retryable() && error.to_string().contains(advice), "{error}");
}

/// A user with a login and nothing else.
async fn fresh_user() -> String {
    let user = fresh_name("user");
    execute(&mut admin().await, format!("CREATE USER {user}")).await;
    user
}

#[tokio::test]
async fn an_unreachable_server_is_a_failure_that_passes() {
    // A port on which nobody listens any more.
    let addr = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let error = inspect(&format!("mysql://app:secret@{addr}/app")).await;
    assert!(error.is_retryable(), "{error}");
    assert!(error.to_string().contains("the server at 127.0.0.1:"), "{error}");
    assert!(error.to_string().contains("cannot be reached"), "{error}");
    assert!(!everything(&error).contains("secret"));

    let nowhere = MySqlConnectOptions::new().socket("/nowhere/mysqld.sock");
    let store = MysqlStore::from_options(nowhere);
    let error = store.session(&election()).inspect().await.unwrap_err();
    assert!(error.to_string().contains("the server at /nowhere/mysqld.sock"), "{error}");
}

#[tokio::test]
async fn a_wrong_password_is_refused_and_repeated_nowhere() {
    let user = fresh_name("user");
    let mut admin = admin().await;
    execute(
        &mut admin,
        format!("CREATE USER {user} IDENTIFIED BY 'right'; GRANT SELECT ON app.* TO {user}"),
    )
    .await;
    let error = inspect(&server().url_of(&format!("{user}:wr0ng"), "app")).await;
    assert_fatal(&error, 1045, "password");
    assert!(!everything(&error).contains("wr0ng"), "{}", everything(&error));

    let store = MysqlStore::new(&server().url_of(&format!("{user}:right"), "app")).unwrap();
    let store = store.with_table("no such table").unwrap();
    assert!(!format!("{store:?}").contains("right"));
    assert!(!format!("{:?}", store.session(&election())).contains("right"));
    assert_fatal(&store.ping().await.unwrap_err(), 1146, "ensure_schema");
}

#[tokio::test]
async fn an_unknown_user_or_database_is_fatal() {
    let error = inspect(&server().url_of("nobody_at_all", "app")).await;
    assert_fatal(&error, 1045, "login");
    let error = inspect(&server().url_of("root", "nowhere")).await;
    assert_fatal(&error, 1049, "no such database");
    // Who may not know what is there learns less.
    let error = inspect(&server().url_of(&fresh_user().await, "nowhere")).await;
    assert_fatal(&error, 1044, "database");
    let error = inspect(&format!("mysql://root@{}", server().addr())).await;
    assert_fatal(&error, 1046, "with_database");
    let store = MysqlStore::new(&server().url()).unwrap().with_database("nowhere").unwrap();
    assert_fatal(&store.ensure_schema().await.unwrap_err(), 1049, "create it");
}

#[tokio::test]
async fn a_server_without_encryption_does_not_get_to_see_what_is_to_be_encrypted() {
    let options: MySqlConnectOptions = server().url().parse().unwrap();
    let store = MysqlStore::from_options(options.ssl_mode(MySqlSslMode::Required));
    let error = store.ping().await.unwrap_err();
    assert!(error.is_fatal() && error.to_string().contains("ssl-mode"), "{error}");
}

#[tokio::test]
async fn a_missing_table_names_itself_and_what_creates_it() {
    let store = MysqlStore::new(&server().url()).unwrap().with_table("no such table").unwrap();
    let mut candidate = Candidate::new("a", &store);
    let claim = candidate.claim_of(None);
    let error = candidate.session.acquire(&claim).await.unwrap_err();
    assert_fatal(&error, 1146, "`no such table`");
    assert!(error.to_string().contains("ensure_schema()"), "{error}");
}

#[tokio::test]
async fn a_table_of_another_kind_is_not_taken_for_ours() {
    let table = fresh_name("other");
    let made = format!(
        "CREATE TABLE {table} (name VARBINARY(255), fence BIGINT); \
         CREATE TABLE {table}_hold (election VARBINARY(255))"
    );
    execute(&mut admin().await, made).await;
    let store = MysqlStore::new(&server().url()).unwrap().with_table(&table).unwrap();
    assert_fatal(&store.ensure_schema().await.unwrap_err(), 1054, "with_table");
    assert_fatal(&store.ping().await.unwrap_err(), 1054, "with_table");
}

/// Without transactions a lease could be taken twice.
#[tokio::test]
async fn a_table_of_another_engine_is_refused() {
    let (store, table) = fresh_store().await;
    execute(&mut admin().await, format!("ALTER TABLE {table} ENGINE = MyISAM")).await;
    for refused in [store.ensure_schema().await, store.ping().await] {
        let error = refused.unwrap_err();
        assert!(error.is_fatal() && error.to_string().contains("engine MyISAM"), "{error}");
        assert!(error.to_string().contains("ENGINE = InnoDB"), "{error}");
    }
}

#[tokio::test]
async fn a_user_without_privileges_is_told_what_to_grant_and_needs_no_more() {
    let (_, table) = fresh_store().await;
    let user = fresh_user().await;
    let mut admin = admin().await;
    // Or it may not even connect to the database.
    execute(&mut admin, format!("CREATE TABLE IF NOT EXISTS app.unrelated (a INT); GRANT SELECT ON app.unrelated TO {user}")).await;
    let store = MysqlStore::new(&server().url_of(&user, "app")).unwrap();
    let store = store.with_table(&table).unwrap();
    assert_fatal(&store.ensure_schema().await.unwrap_err(), 1142, "GRANT");
    let mut candidate = Candidate::new("a", &store);
    let advice = format!("GRANT SELECT, INSERT, UPDATE on `{table}` and `{table}_hold`");
    assert_fatal(&candidate.session.inspect().await.unwrap_err(), 1142, &advice);

    for table in [table.clone(), format!("{table}_hold")] {
        execute(&mut admin, format!("GRANT SELECT, INSERT, UPDATE ON app.{table} TO {user}")).await;
    }
    store.ensure_schema().await.unwrap();
    let term = candidate.lead().await;
    let renewal = candidate.renewal_of(term.fence);
    won(candidate.session.renew(&renewal).await.unwrap());
    let release = candidate.release_of(term.fence);
    won(candidate.session.release(&release).await.unwrap());
    candidate.lead().await;
    store.depose(&election()).await.unwrap().unwrap();
}

#[tokio::test]
async fn a_read_only_server_can_be_looked_at_and_not_led() {
    let server = Mariadb::start().unwrap();
    let mut admin = connect(&server.url()).await;
    let store = MysqlStore::new(&server.url()).unwrap();
    store.ensure_schema().await.unwrap();
    Candidate::new("a", &store).lead().await;
    let made =
        "CREATE USER app; GRANT SELECT, INSERT, UPDATE ON app.* TO app; SET GLOBAL read_only = 1";
    execute(&mut admin, made).await;

    let store = MysqlStore::new(&server.url_of("app", "app")).unwrap();
    let mut candidate = Candidate::new("b", &store);
    let seen = candidate.session.inspect().await.unwrap().unwrap();
    let claim = candidate.claim_of(Some(&seen));
    let error = candidate.session.acquire(&claim).await.unwrap_err();
    assert_fatal(&error, 1290, "read-only");
    store.ensure_schema().await.unwrap(); // it is there
    execute(&mut admin, "SET GLOBAL read_only = 0").await;
    candidate.lead().await;
}

/// Leases are written all the same: their transactions say that they write.
#[tokio::test]
async fn a_pool_that_only_reads_by_default_can_not_create_the_schema() {
    let options = MySqlPoolOptions::new().after_connect(|connection, _| {
        Box::pin(async {
            sqlx::raw_sql("SET SESSION tx_read_only = 1").execute(connection).await.map(drop)
        })
    });
    let table = fresh_name("leases");
    let store = MysqlStore::from_pool(options.connect_lazy(&server().url()).unwrap());
    let store = store.with_table(&table).unwrap();
    assert_fatal(&store.ensure_schema().await.unwrap_err(), 1792, "transaction_read_only");
    execute(&mut admin().await, store.schema_sql()).await;
    store.ensure_schema().await.unwrap();
    Candidate::new("a", &store).lead().await;
}

#[tokio::test]
async fn a_full_disk_is_fatal_and_the_lease_that_is_there_can_be_renewed() {
    let server = Mariadb::start_with(&[
        "--innodb-data-file-path=ibdata1:12M",
        "--innodb-file-per-table=OFF",
    ])
    .unwrap();
    let store = MysqlStore::new(&server.url()).unwrap();
    store.ensure_schema().await.unwrap();
    let mut leader = Candidate::new("a", &store);
    let term = leader.lead().await;
    let mut claim = leader.claim_of(None);
    claim.payload = Payload::from(vec![7; 64 * 1024]);
    let mut full = None;
    for number in 0..1_000 {
        let name = ElectionName::new(format!("election {number}")).unwrap();
        if let Err(error) = store.session(&name).acquire(&claim).await {
            full = Some(error);
            break;
        }
    }
    assert_fatal(&full.unwrap(), 1114, "full");
    won(leader.session.renew(&leader.renewal_of(term.fence)).await.unwrap());
}

#[tokio::test]
async fn a_server_whose_storage_is_read_only_says_so() {
    let server = Mariadb::start().unwrap();
    let store = MysqlStore::new(&server.url()).unwrap();
    store.ensure_schema().await.unwrap();
    Candidate::new("a", &store).lead().await;
    let mut server = server;
    server.restart_with(&["--innodb-read-only"]).unwrap();
    let mut candidate = Candidate::new("b", &store);
    let seen = candidate.session.inspect().await.unwrap().unwrap();
    let claim = candidate.claim_of(Some(&seen));
    let error = candidate.session.acquire(&claim).await.unwrap_err();
    assert_fatal(&error, 1036, "read-only");
}

/// Statement by statement, a server can't replicate what is written at READ COMMITTED.
#[tokio::test]
async fn a_binary_log_of_statements_is_refused_with_what_to_set() {
    let server = Mariadb::start_with(&["--log-bin", "--binlog-format=STATEMENT"]).unwrap();
    let store = MysqlStore::new(&server.url()).unwrap();
    store.ensure_schema().await.unwrap();
    let mut candidate = Candidate::new("a", &store);
    let claim = candidate.claim_of(None);
    let error = candidate.session.acquire(&claim).await.unwrap_err();
    assert_fatal(&error, 1665, "binlog_format");
}

#[tokio::test]
async fn a_server_without_a_free_connection_is_tried_again() {
    let server = Mariadb::start_with(&["--max-connections=10"]).unwrap();
    let store = MysqlStore::new(&server.url()).unwrap();
    store.ensure_schema().await.unwrap();
    let mut taken = Vec::new();
    let options: MySqlConnectOptions = server.url().parse().unwrap();
    while let Ok(connection) = sqlx::ConnectOptions::connect(&options).await {
        taken.push(connection);
    }
    let error = Candidate::new("a", &store).session.inspect().await.unwrap_err();
    assert_transient(&error, 1040, "no connection left");
    drop(taken);
}

#[tokio::test]
async fn a_user_who_has_used_up_its_connections_is_told_from_a_wrong_one() {
    let user = fresh_user().await;
    let limits =
        format!("GRANT ALL ON app.* TO {user}; ALTER USER {user} WITH MAX_USER_CONNECTIONS 1");
    execute(&mut admin().await, limits).await;
    let url = server().url_of(&user, "app");
    let _taken = connect(&url).await;
    assert_transient(&inspect(&url).await, 1226, "no connection left");
}

#[tokio::test]
async fn an_absurd_duration_is_refused_and_the_session_goes_on() {
    let (store, _) = fresh_store().await;
    let mut candidate = Candidate::new("a", &store);
    let mut claim = candidate.claim_of(None);
    claim.duration = Duration::MAX;
    let error = candidate.session.acquire(&claim).await.unwrap_err();
    assert_fatal(&error, 1690, "out of range");
    candidate.lead().await;
}

#[tokio::test]
async fn a_payload_that_the_server_does_not_take_is_said_to_be_too_long() {
    let server = Mariadb::start_with(&["--max-allowed-packet=16K"]).unwrap();
    let store = MysqlStore::new(&server.url()).unwrap();
    store.ensure_schema().await.unwrap();
    let mut candidate = Candidate::new("a", &store);
    let mut claim = candidate.claim_of(None);
    claim.payload = Payload::from(vec![7; 64 * 1024]);
    let error = candidate.session.acquire(&claim).await.unwrap_err();
    assert_fatal(&error, 1153, "max_allowed_packet");
}

#[tokio::test]
async fn names_and_payloads_of_any_kind_come_back_as_they_were() {
    const AWKWARD: &str = "'; DROP TABLE leader_election; -- \\ \" ` $1 ? \r\n\t \u{202e} 🦀 ";
    let (store, _) = fresh_store().await;
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

#[tokio::test]
async fn an_exhausted_pool_is_told_from_a_server_that_is_gone() {
    let (store, table) = fresh_store().await;
    let pool = MySqlPoolOptions::new()
        .max_connections(1)
        .acquire_timeout(Duration::from_millis(300))
        .connect_lazy(&server().url())
        .unwrap();
    let pooled = MysqlStore::from_pool(pool.clone()).with_table(&table).unwrap();
    let (host, port) = (server().addr().ip(), server().addr().port());
    let shown = format!("{pooled:?}");
    assert!(shown.contains(&host.to_string()) && shown.contains(&port.to_string()), "{shown}");
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
