//! One server for each test program, and what its tests have in common.

#![allow(dead_code, clippy::unwrap_used)] // no test program needs all of it, and it is for tests alone

use std::{
    sync::{
        OnceLock,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use sqlx::{AssertSqlSafe, ConnectOptions, PgConnection, postgres::PgConnectOptions};
use tenure::{
    ElectionName, Fence, Identity, Lease,
    store::{AcquireRequest, Observed, Outcome, ReleaseRequest, RenewRequest, Session, Store},
};
use tenure_postgres::{PostgresSession, PostgresStore, sqlx};
use tenure_testbed::Postgres;

/// Does not run out during a test.
pub(crate) const LONG: Duration = Duration::from_secs(600);

/// The server that all tests of this program share. It goes away with the process.
pub(crate) fn server() -> &'static Postgres {
    static SERVER: OnceLock<Postgres> = OnceLock::new();
    SERVER.get_or_init(|| Postgres::start().unwrap())
}

/// A name that no other test uses, for schemas, roles and databases.
pub(crate) fn fresh_name(what: &str) -> String {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    format!("{what}_{}", NUMBER.fetch_add(1, Ordering::Relaxed))
}

/// A superuser's connection.
pub(crate) async fn admin() -> PgConnection {
    connect(&server().url()).await
}

pub(crate) async fn connect(url: &str) -> PgConnection {
    url.parse::<PgConnectOptions>().unwrap().connect().await.unwrap()
}

pub(crate) async fn execute(connection: &mut PgConnection, sql: impl Into<String>) {
    let sql = sql.into();
    sqlx::raw_sql(AssertSqlSafe(sql.clone()))
        .execute(connection)
        .await
        .unwrap_or_else(|error| panic!("{sql}: {error}"));
}

/// The one value that a query gives.
pub(crate) async fn value<T>(connection: &mut PgConnection, sql: impl Into<String>) -> T
where
    T: for<'r> sqlx::Decode<'r, sqlx::Postgres> + sqlx::Type<sqlx::Postgres> + Send + Unpin,
{
    sqlx::query_scalar(AssertSqlSafe(sql.into())).fetch_one(connection).await.unwrap()
}

/// Asks again and again until there is an answer.
pub(crate) async fn wait_for<T>(what: &str, mut ask: impl AsyncFnMut() -> Option<T>) -> T {
    for _ in 0..6_000 {
        if let Some(answer) = ask().await {
            return answer;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("waited in vain for {what}");
}

/// Whether a statement on this schema waits for a lock.
pub(crate) async fn waits_for_a_lock(admin: &mut PgConnection, schema: &str) -> bool {
    let sql = format!(
        "SELECT count(*) > 0 FROM pg_stat_activity \
         WHERE wait_event_type = 'Lock' AND query LIKE '%\"{schema}\"%'"
    );
    value(admin, sql).await
}

pub(crate) async fn wait_for_a_lock(admin: &mut PgConnection, schema: &str) {
    wait_for("somebody to wait", async || waits_for_a_lock(admin, schema).await.then_some(()))
        .await;
}

/// A store with a schema of its own, in place.
pub(crate) async fn fresh_store() -> (PostgresStore, String) {
    let schema = fresh_name("schema");
    let store = PostgresStore::new(&server().url()).unwrap();
    let store = store.with_table(&schema, "leader_election").unwrap();
    store.ensure_schema().await.unwrap();
    (store, format!("{schema}.leader_election"))
}

pub(crate) fn election() -> ElectionName {
    ElectionName::new("billing").unwrap()
}

/// One candidate and its session.
pub(crate) struct Candidate {
    pub(crate) identity: Identity,
    pub(crate) session: PostgresSession,
}

impl Candidate {
    pub(crate) fn new(name: &str, store: &PostgresStore) -> Self {
        Self { identity: Identity::new(name).unwrap(), session: store.session(&election()) }
    }

    pub(crate) fn claim_of(&self, observed: Option<&Lease>) -> AcquireRequest {
        AcquireRequest::new(self.identity.clone(), observed.map(Observed::from), LONG)
    }

    pub(crate) fn renewal_of(&self, fence: Fence) -> RenewRequest {
        RenewRequest::new(self.identity.clone(), fence, LONG)
    }

    pub(crate) fn release_of(&self, fence: Fence) -> ReleaseRequest {
        ReleaseRequest::new(self.identity.clone(), fence)
    }

    /// Claims whatever is there.
    pub(crate) async fn lead(&mut self) -> Lease {
        let seen = self.session.inspect().await.unwrap();
        won(self.session.acquire(&self.claim_of(seen.as_ref())).await.unwrap())
    }
}

pub(crate) fn won(outcome: Outcome) -> Lease {
    match outcome {
        Outcome::Won(lease) => lease,
        Outcome::Lost(by) => panic!("lost to {by:?}"),
    }
}

pub(crate) fn lost(outcome: Outcome) -> Option<Lease> {
    match outcome {
        Outcome::Won(lease) => panic!("won {lease:?}"),
        Outcome::Lost(by) => by,
    }
}
