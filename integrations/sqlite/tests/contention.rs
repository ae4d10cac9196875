//! Other writers on the file, abandoned calls, and a file that is replaced.
#![allow(clippy::unwrap_used)] // helpers of tests are tests

use std::{path::Path, time::Duration};

use futures::FutureExt;
use sqlx::{
    Connection, SqliteConnection, SqlitePool,
    sqlite::{SqliteConnectOptions, SqlitePoolOptions},
};
use tempfile::TempDir;
use tenure::{
    ElectionName, Identity, Lease, Store,
    store::{AcquireRequest, Outcome, RenewRequest, Session},
};
use tenure_sqlite::{SqliteSession, SqliteStore};
use tokio::time::sleep;

const LEASE: Duration = Duration::from_secs(600);
/// Far longer than anything here takes, on any machine.
const PATIENT: Duration = Duration::from_secs(60);

struct Database {
    directory: TempDir,
    store: SqliteStore,
}

impl Database {
    async fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("leases.db");
        let store = SqliteStore::new(path.to_str().unwrap()).unwrap();
        store.ensure_schema().await.unwrap();
        Self { directory, store }
    }

    /// The application, writing to the same file.
    async fn writer(&self) -> SqliteConnection {
        writer(&self.directory.path().join("leases.db")).await
    }

    async fn leader(&self) -> (SqliteSession, Lease) {
        let mut session = self.store.session(&ElectionName::new("an election").unwrap());
        session.limit_calls(PATIENT);
        let request = AcquireRequest::new(identity(), None, LEASE);
        let term = won(session.acquire(&request).await.unwrap());
        (session, term)
    }

    /// The instant at which the lease expires, which no session shows.
    async fn expires_at(&self) -> i64 {
        let select = "SELECT expires_at FROM leader_election";
        sqlx::query_scalar(select).fetch_one(&mut self.writer().await).await.unwrap()
    }
}

async fn writer(path: &Path) -> SqliteConnection {
    let options = SqliteConnectOptions::new().filename(path).busy_timeout(PATIENT);
    SqliteConnection::connect_with(&options).await.unwrap()
}

fn identity() -> Identity {
    Identity::new("the leader").unwrap()
}

fn renewal(term: &Lease) -> RenewRequest {
    RenewRequest::new(identity(), term.fence, LEASE)
}

#[track_caller]
fn won(outcome: Outcome) -> Lease {
    match outcome {
        Outcome::Won(lease) => lease,
        Outcome::Lost(by) => panic!("lost to {by:?}"),
    }
}

async fn execute(connection: &mut SqliteConnection, statements: &'static str) {
    sqlx::raw_sql(statements).execute(connection).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn renewals_get_through_beside_a_writer_that_never_rests() {
    let database = Database::new().await;
    let mut application = database.writer().await;
    execute(&mut application, "CREATE TABLE work (a)").await;
    let hammering = tokio::spawn(async move {
        loop {
            execute(
                &mut application,
                "BEGIN IMMEDIATE; INSERT INTO work VALUES (randomblob(9999))",
            )
            .await;
            sleep(Duration::from_millis(5)).await;
            execute(&mut application, "COMMIT").await;
        }
    });
    let (mut session, term) = database.leader().await;
    for _ in 0..20 {
        assert_eq!(won(session.renew(&renewal(&term)).await.unwrap()).fence, term.fence);
    }
    hammering.abort();
}

#[tokio::test]
async fn a_call_gives_up_before_its_limit_and_the_next_one_succeeds() {
    let database = Database::new().await;
    let (mut session, term) = database.leader().await;
    let mut hurried = database.store.session(&ElectionName::new("an election").unwrap());
    hurried.limit_calls(Duration::from_millis(200));
    let mut application = database.writer().await;
    execute(&mut application, "BEGIN IMMEDIATE").await;

    let error = hurried.renew(&renewal(&term)).await.unwrap_err();
    assert!(error.is_retryable() && error.to_string().contains("was writing to"), "{error}");
    let seen = hurried.inspect().await.unwrap();
    assert_eq!(
        seen.map(|lease| lease.version),
        Some(term.version.clone()),
        "readers are not blocked"
    );

    execute(&mut application, "COMMIT").await;
    won(hurried.renew(&renewal(&term)).await.unwrap());
    won(session.renew(&renewal(&term)).await.unwrap());
}

/// Whichever of the two gets the lock first.
#[tokio::test]
async fn a_renewal_that_was_abandoned_in_the_queue_does_not_shorten_the_next_one() {
    let database = Database::new().await;
    let (mut session, term) = database.leader().await;
    let mut application = database.writer().await;
    for _ in 0..5 {
        execute(&mut application, "BEGIN IMMEDIATE").await;
        let abandoned = renewal(&term);
        let wait = sleep(Duration::from_millis(50));
        tokio::select! {
            outcome = session.renew(&abandoned) => panic!("the file is locked: {outcome:?}"),
            () = wait => {}
        }
        // It reads the clock when it is first polled, later than the one that was abandoned.
        let request = renewal(&term);
        let mut next = std::pin::pin!(session.renew(&request));
        assert!(next.as_mut().now_or_never().is_none());
        execute(&mut application, "COMMIT").await;
        assert_eq!(won(next.await.unwrap()).ttl, Some(LEASE));

        let promised = database.expires_at().await;
        // Whatever was waiting for the lock has had it, once somebody else got it several times.
        for _ in 0..5 {
            execute(&mut application, "BEGIN IMMEDIATE; COMMIT").await;
            sleep(Duration::from_millis(30)).await;
        }
        assert!(database.expires_at().await >= promised, "the lease was shortened");
    }
}

#[tokio::test]
async fn a_leader_whose_file_was_replaced_learns_that_its_record_is_gone() {
    let database = Database::new().await;
    let (mut session, term) = database.leader().await;
    for file in ["leases.db", "leases.db-wal", "leases.db-shm"] {
        let _ = std::fs::remove_file(database.directory.path().join(file));
    }
    assert_eq!(session.renew(&renewal(&term)).await.unwrap(), Outcome::Lost(None));
    assert!(session.inspect().await.unwrap_err().is_fatal(), "there is no file");

    database.store.ensure_schema().await.unwrap();
    assert_eq!(session.renew(&renewal(&term)).await.unwrap(), Outcome::Lost(None));
}

#[tokio::test]
async fn a_pool_lends_a_connection_for_each_call() {
    let database = Database::new().await;
    let options = SqliteConnectOptions::new().filename(database.directory.path().join("leases.db"));
    let pool = SqlitePool::connect_with(options).await.unwrap();
    let store = SqliteStore::from_pool(pool.clone());
    store.ensure_schema().await.unwrap();
    store.ping().await.unwrap();

    let mut session = store.session(&ElectionName::new("an election").unwrap());
    let term = won(session.acquire(&AcquireRequest::new(identity(), None, LEASE)).await.unwrap());
    won(session.renew(&renewal(&term)).await.unwrap());
    assert_eq!(database.store.leaders().await.unwrap()[0].1.fence, term.fence);
    // As soon as the pool has taken it back.
    while pool.num_idle() < pool.size() as usize {
        sleep(Duration::from_millis(5)).await;
    }
}

/// What is written inside a transaction that somebody left open in the pool may never be committed: nobody else sees it,
/// and nobody may lead by it.
#[tokio::test]
async fn a_pooled_connection_with_an_open_transaction_wins_nothing() {
    let database = Database::new().await;
    let options = SqliteConnectOptions::new().filename(database.directory.path().join("leases.db"));
    let pool = SqlitePoolOptions::new().max_connections(1).connect_with(options).await.unwrap();
    let mut session =
        SqliteStore::from_pool(pool.clone()).session(&ElectionName::new("e").unwrap());
    let request = AcquireRequest::new(identity(), None, LEASE);

    sqlx::raw_sql("BEGIN").execute(&pool).await.unwrap();
    let error = session.acquire(&request).await.unwrap_err();
    assert!(error.is_retryable() && error.to_string().contains("open transaction"), "{error}");
    assert_eq!(database.store.leaders().await.unwrap(), []);

    // That transaction is over, and the pool's connection as good as new.
    won(session.acquire(&request).await.unwrap());
    assert_eq!(database.store.leaders().await.unwrap().len(), 1);
}
