//! What SQLite refuses while it is at work, each produced for real: what it counts as, and what it says.
#![allow(clippy::unwrap_used)] // helpers of tests are tests

use std::{error::Error, fs, path::Path, time::Duration};

use sqlx::{
    Connection, SqliteConnection,
    sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions},
};
use tempfile::TempDir;
use tenure::{
    Candidacy, ElectionName, Elector, Fence, Identity, Store, StoreError, Term, TermEnd,
    store::{AcquireRequest, HoldError, Observed, Outcome, PlaceRequest, Session},
};
use tenure_sqlite::{SqliteError, SqliteStore};

const LEASE: Duration = Duration::from_secs(600);
const SOON: Duration = Duration::from_millis(200);

struct Database {
    directory: TempDir,
    store: SqliteStore,
}

impl Database {
    async fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let store = SqliteStore::new(directory.path().join("leases.db").to_str().unwrap()).unwrap();
        store.ensure_schema().await.unwrap();
        Self { directory, store }
    }

    fn options(&self) -> SqliteConnectOptions {
        let file = SqliteConnectOptions::new().filename(self.directory.path().join("leases.db"));
        file.journal_mode(SqliteJournalMode::Wal)
    }

    async fn connection(&self) -> SqliteConnection {
        SqliteConnection::connect_with(&self.options().busy_timeout(SOON)).await.unwrap()
    }

    async fn execute(&self, statements: &'static str) {
        sqlx::raw_sql(statements).execute(&mut self.connection().await).await.unwrap();
    }

    async fn leading(&self) -> (Candidacy, Term) {
        let elector = Elector::builder("an election", self.store.clone()).lease_duration(LEASE);
        let candidacy = elector.build().unwrap().spawn();
        let term = candidacy.leadership().leading().await.unwrap();
        (candidacy, term)
    }
}

fn election() -> ElectionName {
    ElectionName::new("an election").unwrap()
}

fn claim(observed: Option<Observed>) -> AcquireRequest {
    let mut request = AcquireRequest::new(Identity::new("a candidate").unwrap(), observed, LEASE);
    request.payload = vec![0; 65_536].into();
    request
}

/// SQLite's extended code, whether it passes by itself, and a part of what it says.
#[track_caller]
fn is(error: &StoreError, code: i32, passes: bool, says: &str) {
    let cause = error.source().and_then(|source| source.downcast_ref::<SqliteError>());
    assert_eq!(cause.and_then(SqliteError::code), Some(code), "{error}");
    assert_eq!(error.is_retryable(), passes, "{error}");
    assert!(error.to_string().contains(says), "{error}");
}

#[tokio::test]
async fn a_lock_that_is_held_for_too_long_passes() {
    let database = Database::new().await;
    let mut other = database.connection().await;
    let writing = other.begin_with("BEGIN IMMEDIATE").await.unwrap();
    let mut session = database.store.session(&election());
    session.limit_calls(SOON);
    let error = session.acquire(&claim(None)).await.unwrap_err();
    is(&error, 5, true, "a transaction of another connection was writing");
    drop(writing);
}

/// A candidate that is kept away by a hold shows what keeps it away.
#[tokio::test]
async fn a_candidate_that_is_blocked_by_a_hold_says_so() {
    let database = Database::new().await;
    let (_leader, term) = database.leading().await;
    let mut connection = database.connection().await;
    let mut transaction = connection.begin().await.unwrap();
    database.store.hold_term(&mut transaction, &term).await.unwrap();
    database.store.hold_term(&mut transaction, &term).await.unwrap();

    // Another election in the same file: the lock is the whole file's.
    let follower = Elector::builder("another election", database.store.clone());
    let follower = follower.lease_duration(Duration::from_secs(3)).build().unwrap().spawn();
    let mut status = follower.leadership().watch();
    let blocked = |status: &tenure::Status| match status.last_error() {
        Some(tenure::LastError::Store(error)) => error.to_string().contains("holding a term"),
        _ => false,
    };
    status.wait_for(blocked).await.unwrap();
    transaction.commit().await.unwrap();
    follower.leadership().leading().await.unwrap();
}

#[tokio::test]
async fn a_transaction_that_reads_from_an_old_snapshot_is_to_be_repeated() {
    let database = Database::new().await;
    let (_leader, term) = database.leading().await;
    let mut connection = database.connection().await;
    let mut transaction = connection.begin().await.unwrap();
    sqlx::query("SELECT * FROM leader_election").fetch_all(&mut *transaction).await.unwrap();
    database.store.session(&ElectionName::new("b").unwrap()).acquire(&claim(None)).await.unwrap();
    match database.store.hold_term(&mut transaction, &term).await {
        Err(HoldError::Store(error)) => is(&error, 517, true, "roll back, and repeat it"),
        held => panic!("{held:?}"),
    }
    transaction.rollback().await.unwrap();

    let mut transaction = connection.begin().await.unwrap();
    database.store.hold_term(&mut transaction, &term).await.unwrap();
    transaction.commit().await.unwrap();
}

#[tokio::test]
async fn without_a_transaction_nothing_is_held() {
    let database = Database::new().await;
    let (_leader, term) = database.leading().await;
    let mut connection = database.connection().await;
    let held = database.store.hold_term(&mut connection, &term).await;
    assert!(matches!(held, Err(HoldError::NotInTransaction)), "{held:?}");
    // Nothing was left open either.
    sqlx::raw_sql("BEGIN; COMMIT").execute(&mut connection).await.unwrap();
}

/// By its own reading of the clock, from before the wait, the lease would still be valid.
#[tokio::test]
async fn a_term_that_ends_while_its_hold_waits_for_the_lock_is_not_held() {
    let database = Database::new().await;
    let elector = Elector::builder(election(), database.store.clone());
    let candidacy = elector.lease_duration(Duration::from_secs(3)).build().unwrap().spawn();
    let term = candidacy.leadership().leading().await.unwrap();
    let patient = database.options().busy_timeout(Duration::from_secs(60));
    let mut connection = SqliteConnection::connect_with(&patient).await.unwrap();
    let mut transaction = connection.begin().await.unwrap();

    let mut other = database.connection().await;
    let writing = other.begin_with("BEGIN IMMEDIATE").await.unwrap();
    let (held, ()) = tokio::join!(database.store.hold_term(&mut transaction, &term), async {
        term.ended().await;
        // It would claim the lease for its next term.
        candidacy.shutdown().await.unwrap();
        writing.commit().await.unwrap();
    });
    assert!(matches!(held, Err(HoldError::Ended(TermEnd::Expired))), "{held:?}");
}

/// As another driver would use it, in a transaction that this one knows nothing of.
#[tokio::test]
async fn the_text_that_holds_a_term_answers_a_row_while_it_is_current() {
    let database = Database::new().await;
    let awkward = ElectionName::new("it's \"one\"; -- ?1 é").unwrap();
    let elector = Elector::builder(awkward.clone(), database.store.clone()).label("o'brien");
    let candidacy = elector.lease_duration(LEASE).build().unwrap().spawn();
    let term = candidacy.leadership().leading().await.unwrap();
    let mut connection = database.connection().await;
    let mut rows = async || {
        let text = sqlx::AssertSqlSafe(database.store.hold_sql(&term));
        sqlx::raw_sql("BEGIN").execute(&mut connection).await.unwrap();
        let rows = sqlx::raw_sql(text).fetch_all(&mut connection).await.unwrap().len();
        sqlx::raw_sql("ROLLBACK").execute(&mut connection).await.unwrap();
        rows
    };
    assert_eq!(rows().await, 1);
    database.store.depose(&awkward).await.unwrap();
    assert_eq!(rows().await, 0);
}

#[tokio::test]
async fn a_full_disk_needs_somebody() {
    let database = Database::new().await;
    let full = database.options().pragma("max_page_count", "6");
    let pool = SqlitePoolOptions::new().max_connections(1).connect_with(full).await.unwrap();
    let mut session = SqliteStore::from_pool(pool).session(&election());
    let error = session.acquire(&claim(None)).await.unwrap_err();
    is(&error, 13, false, "is full");
    assert_eq!(session.inspect().await.unwrap(), None);
}

#[tokio::test]
async fn a_damaged_file_needs_somebody() {
    let database = Database::new().await;
    database.store.session(&election()).acquire(&claim(None)).await.unwrap();
    database.execute("PRAGMA wal_checkpoint(TRUNCATE)").await;
    let path = database.directory.path().join("leases.db");
    let mut bytes = fs::read(&path).unwrap();
    // All but the first page, which says what kind of file it is.
    bytes[4_096..].fill(0xff);
    fs::write(&path, bytes).unwrap();
    let error = database.store.session(&election()).inspect().await.unwrap_err();
    is(&error, 11, false, "restore it from a backup");
}

/// A write that the system refuses, here since the file would become larger than this process may make one.
#[cfg(unix)]
#[test]
fn a_write_that_the_system_refuses_is_tried_again() {
    const PATH: &str = "TENURE_TEST_LIMITED";
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    if let Some(path) = std::env::var_os(PATH) {
        let store = SqliteStore::new(Path::new(&path).to_str().unwrap()).unwrap();
        runtime.block_on(async {
            let mut session = store.session(&election());
            let mut observed = None;
            for _ in 0..50 {
                match session.acquire(&claim(observed)).await {
                    Ok(Outcome::Won(lease)) => observed = Some(Observed::from(&lease)),
                    Ok(lost) => panic!("{lost:?}"),
                    Err(error) => return is(&error, 778, true, "look at the disk"),
                }
            }
            panic!("the file grows without a limit");
        });
        return;
    }

    let database = runtime.block_on(Database::new());
    let limited = std::process::Command::new("sh")
        .args(["-c", r#"trap '' XFSZ; ulimit -f 150; exec "$0" --exact "$1""#])
        .arg(std::env::current_exe().unwrap())
        .arg("a_write_that_the_system_refuses_is_tried_again")
        .env(PATH, database.directory.path().join("leases.db"))
        // Under the limit the profile that `cargo xtask cover` has every process write would be cut off.
        .env("LLVM_PROFILE_FILE", "/dev/null")
        .output()
        .unwrap();
    let printed = String::from_utf8_lossy(&limited.stdout);
    assert!(limited.status.success() && printed.contains("1 passed"), "{printed}");
}

/// A trigger of somebody else's swallows it.
#[tokio::test]
async fn a_record_that_is_gone_as_soon_as_it_is_placed_is_tried_again() {
    let database = Database::new().await;
    database
        .execute(
            "CREATE TRIGGER swallow BEFORE INSERT ON leader_election BEGIN SELECT RAISE(IGNORE); END",
        )
        .await;
    let mut session = database.store.session(&election());
    let error = session.place(&PlaceRequest::new(LEASE)).await.unwrap_err();
    assert!(error.is_retryable() && error.to_string().contains("vanished again"), "{error}");
    database.execute("DROP TRIGGER swallow").await;
    session.place(&PlaceRequest::new(LEASE)).await.unwrap();
}

#[tokio::test]
async fn there_is_no_fence_above_the_highest_and_no_lease_for_all_time() {
    let database = Database::new().await;
    let mut session = database.store.session(&election());
    let Outcome::Won(lease) = session.acquire(&claim(None)).await.unwrap() else { panic!() };
    let mut observed = Observed::from(&lease);
    observed.fence = Fence::try_from(i64::MAX).unwrap();
    let error = session.acquire(&claim(Some(observed))).await.unwrap_err();
    assert!(error.is_fatal() && error.to_string().contains("no fence is left"), "{error}");

    let error = session.place(&PlaceRequest::new(Duration::MAX)).await.unwrap_err();
    assert!(error.is_fatal() && error.to_string().contains("too long for SQLite"), "{error}");
}

#[tokio::test]
async fn a_connection_that_is_interrupted_holds_nothing() {
    let database = Database::new().await;
    let (_leader, term) = database.leading().await;
    let mut connection = database.connection().await;
    connection.lock_handle().await.unwrap().set_progress_handler(1, || false);
    match database.store.hold_term(&mut connection, &term).await {
        Err(HoldError::Store(error)) => is(&error, 9, true, "SQLite was interrupted"),
        held => panic!("{held:?}"),
    }
}
