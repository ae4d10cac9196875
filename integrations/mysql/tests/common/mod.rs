//! One server for each test program, and what its tests have in common.

#![allow(dead_code, clippy::unwrap_used)] // no test program needs all of it, and it is for tests alone

use std::{
    sync::{
        OnceLock,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use sqlx::{AssertSqlSafe, ConnectOptions, MySqlConnection, mysql::MySqlConnectOptions};
use tenure::{
    ElectionName, Fence, Identity, Lease,
    store::{AcquireRequest, Observed, Outcome, ReleaseRequest, RenewRequest, Session, Store},
};
use tenure_mysql::{MysqlSession, MysqlStore, sqlx};
use tenure_testbed::Mariadb;

/// Does not run out during a test.
pub(crate) const LONG: Duration = Duration::from_secs(600);

/// The server that all tests of this program share. It goes away with the process.
pub(crate) fn server() -> &'static Mariadb {
    static SERVER: OnceLock<Mariadb> = OnceLock::new();
    SERVER.get_or_init(|| Mariadb::start().unwrap())
}

/// A name that no other test uses, for tables, users and databases.
pub(crate) fn fresh_name(what: &str) -> String {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    format!("{what}_{}", NUMBER.fetch_add(1, Ordering::Relaxed))
}

/// A connection that may do everything.
pub(crate) async fn admin() -> MySqlConnection {
    connect(&server().url()).await
}

pub(crate) async fn connect(url: &str) -> MySqlConnection {
    url.parse::<MySqlConnectOptions>().unwrap().connect().await.unwrap()
}

pub(crate) async fn execute(connection: &mut MySqlConnection, sql: impl Into<String>) {
    let sql = sql.into();
    sqlx::raw_sql(AssertSqlSafe(sql.clone()))
        .execute(connection)
        .await
        .unwrap_or_else(|error| panic!("{sql}: {error}"));
}

/// The one value that a query gives.
pub(crate) async fn value<T>(connection: &mut MySqlConnection, sql: impl Into<String>) -> T
where
    T: for<'r> sqlx::Decode<'r, sqlx::MySql> + sqlx::Type<sqlx::MySql> + Send + Unpin,
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

/// Whether a statement on this table waits: each would be done in a fraction of this time. InnoDB's own list of waits is
/// renewed only when nobody has looked at it for a while.
pub(crate) async fn waits_for_a_lock(admin: &mut MySqlConnection, table: &str) -> bool {
    let sql = format!(
        "SELECT COUNT(*) FROM information_schema.PROCESSLIST \
         WHERE COMMAND = 'Query' AND TIME_MS > 100 AND INFO LIKE '%`{table}%' AND ID <> CONNECTION_ID()"
    );
    value::<i64>(admin, sql).await > 0
}

pub(crate) async fn wait_for_a_lock(admin: &mut MySqlConnection, table: &str) {
    wait_for("somebody to wait", async || waits_for_a_lock(admin, table).await.then_some(())).await;
}

/// A store with tables of its own, in place.
pub(crate) async fn fresh_store() -> (MysqlStore, String) {
    let table = fresh_name("leases");
    let store = MysqlStore::new(&server().url()).unwrap().with_table(&table).unwrap();
    store.ensure_schema().await.unwrap();
    (store, table)
}

pub(crate) fn election() -> ElectionName {
    ElectionName::new("billing").unwrap()
}

/// One candidate and its session.
pub(crate) struct Candidate {
    pub(crate) identity: Identity,
    pub(crate) session: MysqlSession,
}

impl Candidate {
    pub(crate) fn new(name: &str, store: &MysqlStore) -> Self {
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
