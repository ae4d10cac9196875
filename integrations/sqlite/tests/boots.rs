//! The host's clock starts anew with every boot: what was written before says nothing about now.
#![allow(clippy::unwrap_used)] // helpers of tests are tests

use std::{path::PathBuf, time::Duration};

use sqlx::{AssertSqlSafe, Connection, SqliteConnection, sqlite::SqliteConnectOptions};
use tempfile::TempDir;
use tenure::{
    ElectionName, Identity, Lease, Store,
    store::{AcquireRequest, Observed, Outcome, RenewRequest, Session, When},
};
use tenure_sqlite::{SqliteSession, SqliteStore};

const LEASE: Duration = Duration::from_secs(600);

struct Database(TempDir);

impl Database {
    /// With a lease that was written during another boot, and expired or not by the clock of that one.
    async fn with_lease_of_another_boot(expires_at: i64) -> (Self, SqliteSession, Lease) {
        let database = Self(tempfile::tempdir().unwrap());
        let store = SqliteStore::new(database.path().to_str().unwrap()).unwrap();
        store.ensure_schema().await.unwrap();
        let mut session = store.session(&ElectionName::new("an election").unwrap());
        let term = won(session.acquire(&claim("the leader", None)).await.unwrap());
        let update = format!(
            "UPDATE leader_election SET boot_id = 'another boot', expires_at = {expires_at}, \
             renewed_at = {expires_at} - duration_us"
        );
        let options = SqliteConnectOptions::new().filename(database.path());
        let mut connection = SqliteConnection::connect_with(&options).await.unwrap();
        sqlx::raw_sql(AssertSqlSafe(update)).execute(&mut connection).await.unwrap();
        (database, session, term)
    }

    fn path(&self) -> PathBuf {
        self.0.path().join("leases.db")
    }
}

fn claim(name: &str, seen: Option<&Lease>) -> AcquireRequest {
    let identity = Identity::new(name).unwrap();
    AcquireRequest::new(identity, seen.map(Observed::from), LEASE)
}

#[track_caller]
fn won(outcome: Outcome) -> Lease {
    match outcome {
        Outcome::Won(lease) => lease,
        Outcome::Lost(by) => panic!("lost to {by:?}"),
    }
}

#[tokio::test]
async fn a_lease_of_another_boot_never_counts_as_expired() {
    for expires_at in [i64::from(u8::MAX), i64::MAX] {
        let (_database, mut session, term) = Database::with_lease_of_another_boot(expires_at).await;
        let seen = session.inspect().await.unwrap().unwrap();
        assert_eq!(seen.ttl, None, "there is no clock to judge it by");
        assert_eq!((seen.fence, seen.duration), (term.fence, LEASE));

        let mut early = claim("a rival", Some(&seen));
        early.when = When::Expired;
        let outcome = session.acquire(&early).await.unwrap();
        assert!(matches!(outcome, Outcome::Lost(Some(_))), "{outcome:?}");
    }
}

#[tokio::test]
async fn a_lease_of_another_boot_that_was_watched_is_taken_over_into_this_one() {
    let (_database, mut session, term) = Database::with_lease_of_another_boot(i64::MAX).await;
    let seen = session.inspect().await.unwrap().unwrap();
    let successor = won(session.acquire(&claim("a rival", Some(&seen))).await.unwrap());
    assert!(successor.fence > term.fence);
    assert_eq!(successor.ttl, Some(LEASE));
    let shown = session.inspect().await.unwrap().unwrap();
    assert!(shown.ttl.is_some_and(|ttl| ttl <= LEASE), "{shown:?}");
}

/// A process outlives no boot, but it may be moved to another namespace's clock with its leader's term still running.
#[tokio::test]
async fn a_leader_renews_into_its_own_boot() {
    let (_database, mut session, term) = Database::with_lease_of_another_boot(1).await;
    let request = RenewRequest::new(Identity::new("the leader").unwrap(), term.fence, LEASE);
    let renewed = won(session.renew(&request).await.unwrap());
    assert_eq!(renewed.ttl, Some(LEASE));
}
