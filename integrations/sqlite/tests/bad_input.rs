//! What can be wrong with a file: a typed error that says what to do.
#![allow(clippy::unwrap_used)] // helpers of tests are tests

use std::{error::Error, fs, path::Path, time::Duration};

use sqlx::{
    Connection, SqliteConnection, SqlitePool,
    sqlite::{SqliteConnectOptions, SqlitePoolOptions},
};
use tenure::{
    ElectionName, Identity, Store, StoreError,
    store::{AcquireRequest, Session},
};
use tenure_sqlite::{SqliteError, SqliteStore};

const LEASE: Duration = Duration::from_secs(60);

fn store(path: &Path) -> SqliteStore {
    SqliteStore::new(path.to_str().unwrap()).unwrap()
}

fn election() -> ElectionName {
    ElectionName::new("an election").unwrap()
}

fn claim() -> AcquireRequest {
    AcquireRequest::new(Identity::new("a candidate").unwrap(), None, LEASE)
}

async fn execute(path: &Path, statements: &'static str) {
    let options = SqliteConnectOptions::new().filename(path).create_if_missing(true);
    let mut connection = SqliteConnection::connect_with(&options).await.unwrap();
    sqlx::raw_sql(statements).execute(&mut connection).await.unwrap();
    connection.close().await.unwrap();
}

/// The error is fatal, has SQLite's code, and says this.
#[track_caller]
fn fatal<T: std::fmt::Debug>(result: Result<T, StoreError>, primary_code: i32, says: &str) {
    let error = result.unwrap_err();
    assert!(error.is_fatal(), "{error}");
    assert!(error.to_string().contains(says), "{error}");
    let cause = error.source().and_then(|source| source.downcast_ref::<SqliteError>());
    let code = cause.and_then(SqliteError::code).map(|code| code & 0xff);
    assert_eq!(code, Some(primary_code), "{error}");
}

#[tokio::test]
async fn a_missing_directory_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let store = store(&directory.path().join("missing/leases.db"));
    let says = format!("the directory {}/missing does not exist", directory.path().display());
    fatal(store.ensure_schema().await, 14, &says);
    fatal(store.session(&election()).inspect().await, 14, &says);
}

#[tokio::test]
async fn a_missing_file_is_not_created_by_a_session() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("leases.db");
    let store = store(&path);
    fatal(store.session(&election()).acquire(&claim()).await, 14, "call `ensure_schema()`");
    fatal(store.ping().await, 14, "leases.db");
    assert!(!path.exists());

    let url = format!("sqlite:{}?mode=rw", path.display());
    fatal(
        SqliteStore::new(url).unwrap().ensure_schema().await,
        14,
        "unless the URL says `mode=rw`",
    );
    assert!(!path.exists());
}

#[tokio::test]
async fn a_directory_is_no_file() {
    let directory = tempfile::tempdir().unwrap();
    fatal(store(directory.path()).ensure_schema().await, 14, "is a directory");
}

#[tokio::test]
async fn a_file_is_no_directory() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("notes.txt");
    fs::write(&path, "no directory").unwrap();
    fatal(store(&path.join("leases.db")).ensure_schema().await, 14, "cannot be reached");
}

/// A pipe, for one, is there and can't be opened as a file.
#[cfg(unix)]
#[tokio::test]
async fn what_is_there_and_cannot_be_opened_is_not_called_missing() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("leases.db");
    let _socket = std::os::unix::net::UnixListener::bind(&path).unwrap();
    fatal(store(&path).ensure_schema().await, 14, "may not be opened by this process");
}

/// In a process of its own: there is one current directory.
#[cfg(unix)]
#[test]
fn a_relative_path_cannot_be_completed_when_the_current_directory_is_gone() {
    const IS_GONE: &str = "TENURE_TEST_DIRECTORY_IS_GONE";
    if std::env::var_os(IS_GONE).is_some() {
        let error = SqliteStore::new("leases.db").unwrap_err();
        assert!(error.to_string().contains("\"leases.db\" is relative"), "{error}");
        assert!(SqliteStore::new("/var/lib/leases.db").is_ok());
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let output = std::process::Command::new("sh")
        .args(["-c", r#"mkdir gone && cd gone && rmdir ../gone && exec "$0" --exact "$1""#])
        .arg(std::env::current_exe().unwrap())
        .arg("a_relative_path_cannot_be_completed_when_the_current_directory_is_gone")
        .env(IS_GONE, "")
        .current_dir(directory.path())
        .output()
        .unwrap();
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && printed.contains("1 passed"), "{printed}");
}

#[tokio::test]
async fn a_file_of_another_kind_is_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("notes.txt");
    let text = "The quick brown fox jumps over the lazy dog. ".repeat(100);
    fs::write(&path, &text).unwrap();
    fatal(store(&path).ensure_schema().await, 26, "is not a SQLite database");
    fatal(store(&path).session(&election()).inspect().await, 26, "notes.txt");
    assert_eq!(fs::read_to_string(&path).unwrap(), text);
}

#[tokio::test]
async fn a_missing_table_says_how_to_create_it() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("leases.db");
    execute(&path, "CREATE TABLE something_else (a)").await;
    let store = store(&path).with_table("my \"leases\"").unwrap();
    let mut session = store.session(&election());
    let says = r#"the table "my \"leases\"" is missing: call `ensure_schema()`"#;
    fatal(session.inspect().await, 1, says);
    fatal(session.acquire(&claim()).await, 1, says);
    fatal(store.leaders().await, 1, says);
    fatal(store.depose(&election()).await, 1, says);
    fatal(store.ping().await, 1, says);

    store.ensure_schema().await.unwrap();
    store.ping().await.unwrap();
    assert_eq!(session.inspect().await.unwrap(), None);
}

#[tokio::test]
async fn a_table_of_another_kind_is_told_apart_from_none() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("leases.db");
    execute(&path, "CREATE TABLE leader_election (name TEXT, leader TEXT)").await;
    fatal(store(&path).ensure_schema().await, 1, "lacks a column");
    fatal(store(&path).session(&election()).inspect().await, 1, "`with_table()`");
}

#[tokio::test]
async fn columns_that_a_later_version_adds_are_ignored() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("leases.db");
    store(&path).ensure_schema().await.unwrap();
    execute(&path, "ALTER TABLE leader_election ADD COLUMN region TEXT NOT NULL DEFAULT ''").await;
    store(&path).ensure_schema().await.unwrap();
    store(&path).session(&election()).acquire(&claim()).await.unwrap();
    assert_eq!(store(&path).leaders().await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_record_that_tenure_did_not_write_is_an_error_and_not_a_lease() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("leases.db");
    store(&path).ensure_schema().await.unwrap();
    store(&path).session(&election()).acquire(&claim()).await.unwrap();
    for damage in [
        "UPDATE leader_election SET fence = 0",
        "UPDATE leader_election SET fence = 1, version = -1",
        "UPDATE leader_election SET version = 1, duration_us = -1",
        "UPDATE leader_election SET duration_us = 1, holder = ''",
    ] {
        execute(&path, damage).await;
        let error = store(&path).session(&election()).inspect().await.unwrap_err();
        assert!(
            error.is_fatal() && error.to_string().contains("did not write"),
            "{damage}: {error}"
        );
    }
}

#[tokio::test]
async fn a_database_that_is_opened_read_only_is_read_but_not_written() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("leases.db");
    store(&path).ensure_schema().await.unwrap();
    let options = SqliteConnectOptions::new().filename(&path).read_only(true);
    let store = SqliteStore::from_pool(SqlitePool::connect_with(options).await.unwrap());
    store.ensure_schema().await.unwrap();
    assert_eq!(store.session(&election()).inspect().await.unwrap(), None);
    fatal(store.session(&election()).acquire(&claim()).await, 8, "read-only");
}

/// As somebody whom permissions concern: for the superuser every file can be written.
#[cfg(unix)]
#[test]
fn a_file_that_may_not_be_written_says_so() {
    use std::os::unix::fs::PermissionsExt;

    const PATH: &str = "TENURE_TEST_READ_ONLY";
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    if let Some(path) = std::env::var_os(PATH) {
        let path = Path::new(&path);
        fatal(runtime.block_on(store(path).session(&election()).acquire(&claim())), 8, "read-only");
        let beside = path.with_file_name("another.db");
        fatal(runtime.block_on(store(&beside).ensure_schema()), 14, "create files in");
        return;
    }

    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("leases.db");
    runtime.block_on(store(&path).ensure_schema()).unwrap();
    let program = directory.path().join("this test");
    fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
    // Neither the file nor its directory, where SQLite would put the log.
    let only_read = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode));
    only_read(&path, 0o444).unwrap();
    only_read(directory.path(), 0o555).unwrap();

    let mut child = std::process::Command::new(&program);
    child.args(["--exact", "a_file_that_may_not_be_written_says_so"]).env(PATH, &path);
    child.current_dir("/");
    if rustix::process::getuid().is_root() {
        const NOBODY: u32 = 65_534;
        std::os::unix::process::CommandExt::uid(&mut child, NOBODY);
    }
    let output = child.output().unwrap();
    only_read(directory.path(), 0o755).unwrap();
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && printed.contains("1 passed"), "{printed}");
}

#[tokio::test]
async fn a_pool_without_a_free_connection_is_told_from_a_broken_database() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("leases.db");
    store(&path).ensure_schema().await.unwrap();
    let options =
        SqlitePoolOptions::new().max_connections(1).acquire_timeout(Duration::from_millis(100));
    let pool = options.connect_with(SqliteConnectOptions::new().filename(&path)).await.unwrap();
    let mut session = SqliteStore::from_pool(pool.clone()).session(&election());

    let taken = pool.acquire().await.unwrap();
    let error = session.inspect().await.unwrap_err();
    assert!(error.is_retryable() && error.to_string().contains("no connection free"), "{error}");
    drop(taken);
    assert_eq!(session.inspect().await.unwrap(), None);

    pool.close().await;
    assert!(session.inspect().await.unwrap_err().is_fatal());
}

#[tokio::test]
async fn a_store_shows_which_database_and_which_table_it_is() {
    let shown = format!("{:?}", SqliteStore::new("/srv/app.db").unwrap());
    assert_eq!(shown, r#"SqliteStore { file: "/srv/app.db", table: "leader_election" }"#);
    let pool = SqlitePool::connect_lazy("sqlite::memory:").unwrap();
    let shown = format!("{:?}", SqliteStore::from_pool(pool).with_table("leases").unwrap());
    assert_eq!(shown, r#"SqliteStore { pool: .., table: "leases" }"#);
    let session = store(Path::new("/srv/app.db")).session(&election());
    let shown = format!("{session:?}");
    assert!(shown.contains("an election") && shown.contains("leader_election"), "{shown}");
}

#[tokio::test]
async fn a_pools_database_that_is_missing_is_no_fault_of_a_path_of_ours() {
    let directory = tempfile::tempdir().unwrap();
    let missing = SqliteConnectOptions::new().filename(directory.path().join("leases.db"));
    let store = SqliteStore::from_pool(SqlitePool::connect_lazy_with(missing));
    let error = store.session(&election()).inspect().await.unwrap_err();
    let cause = error.source().and_then(|source| source.downcast_ref::<SqliteError>()).unwrap();
    assert!(matches!(cause.driver(), sqlx::Error::Database(_)), "{cause:?}");
    fatal(Err::<(), _>(error), 14, "the pool's database cannot be opened");
}

/// SQLite does not wait by itself for the lock that a switch of the mode needs.
#[tokio::test]
async fn whoever_creates_the_schema_waits_for_writers_and_goes_on() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("leases.db");
    execute(&path, "CREATE TABLE something_else (a)").await;
    let mut writer =
        SqliteConnection::connect_with(&SqliteConnectOptions::new().filename(&path)).await.unwrap();
    let writing = writer.begin_with("BEGIN IMMEDIATE").await.unwrap();
    let store = store(&path);
    let mut created = std::pin::pin!(store.ensure_schema());
    tokio::select! {
        created = &mut created => panic!("{created:?} beside a writer"),
        () = tokio::time::sleep(Duration::from_millis(300)) => {}
    }
    writing.commit().await.unwrap();
    created.await.unwrap();
    store.ping().await.unwrap();
}

#[test]
fn a_table_that_sqlite_would_refuse_is_refused_by_name() {
    let store = || SqliteStore::new("a.db").unwrap();
    for (name, says) in [("", "empty"), ("a\0b", "NUL"), ("SQLite_stat1", "SQLite_stat1")] {
        let error = store().with_table(name).unwrap_err().to_string();
        assert!(error.contains(says), "{name:?}: {error}");
    }
    store().with_table("one \"with\" quotes").unwrap();
}

/// Migration tools run it, and so do replicas that start beside each other.
#[tokio::test]
async fn the_schema_that_is_shown_can_be_created_by_hand_and_again() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("by hand.db");
    let by_hand = store(&path).with_table("a table").unwrap();
    let options = SqliteConnectOptions::new().filename(&path).create_if_missing(true);
    let mut connection = SqliteConnection::connect_with(&options).await.unwrap();
    for _ in 0..2 {
        let schema = sqlx::AssertSqlSafe(by_hand.schema_sql());
        sqlx::raw_sql(schema).execute(&mut connection).await.unwrap();
    }
    connection.close().await.unwrap();
    by_hand.session(&election()).acquire(&claim()).await.unwrap();
}
