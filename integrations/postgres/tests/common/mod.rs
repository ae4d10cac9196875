//! One server for each test program, and what its tests have in common.

#![allow(dead_code, unused_imports, unused_macros, clippy::unwrap_used)] // no test program needs all of it, and it is for tests alone

use std::{
    net::SocketAddr,
    sync::{
        OnceLock,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use sqlx::{AssertSqlSafe, ConnectOptions, PgConnection, Row, postgres::PgConnectOptions};
use tenure::{
    ElectionName, Fence, Identity, Lease,
    store::{AcquireRequest, Observed, Outcome, ReleaseRequest, RenewRequest, Session, Store},
};
use tenure_postgres::{PostgresSession, PostgresStore, sqlx};
use tenure_testbed::{PgBouncer, Postgres};

/// Does not run out during a test.
pub(crate) const LONG: Duration = Duration::from_secs(600);

/// A way to a server: each test takes every one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Path {
    /// To Debian's version.
    Direct,
    /// To the same server, through a pooler of transactions.
    Pooled,
    /// To PostgreSQL 18.
    Postgres18,
}

/// Makes a test of each function for each path, in modules that are named for the paths.
macro_rules! on_each_path {
    ($($test:ident),* $(,)?) => {
        on_each_path!(@module direct Direct $($test)*);
        on_each_path!(@module pooled Pooled $($test)*);
        on_each_path!(@module postgres_18 Postgres18 $($test)*);
    };
    (@module $module:ident $path:ident $($test:ident)*) => {
        mod $module {
            $(
                #[tokio::test]
                async fn $test() {
                    super::$test(super::Path::$path).await;
                }
            )*
        }
    };
}
pub(crate) use on_each_path;

impl Path {
    /// The server that all tests of this program share on this path. It goes away with the process.
    pub(crate) fn server(self) -> &'static Postgres {
        static DEBIAN: OnceLock<Postgres> = OnceLock::new();
        static POSTGRES_18: OnceLock<Postgres> = OnceLock::new();
        match self {
            Self::Direct | Self::Pooled => DEBIAN.get_or_init(|| Postgres::start().unwrap()),
            Self::Postgres18 => POSTGRES_18.get_or_init(|| Postgres::start_18().unwrap()),
        }
    }

    fn pooler(self) -> &'static PgBouncer {
        static POOLER: OnceLock<PgBouncer> = OnceLock::new();
        POOLER.get_or_init(|| PgBouncer::start(self.server()).unwrap())
    }

    /// Where this path begins.
    pub(crate) fn addr(self) -> SocketAddr {
        match self {
            Self::Direct | Self::Postgres18 => self.server().addr(),
            Self::Pooled => self.pooler().addr(),
        }
    }

    pub(crate) fn url(self) -> String {
        self.url_of("postgres", "postgres")
    }

    pub(crate) fn url_of(self, user: &str, database: &str) -> String {
        url_at(self.addr(), user, database)
    }

    /// A server that no other test uses, to be reached on this path.
    pub(crate) fn start(self) -> Private {
        let server = match self {
            Self::Direct | Self::Pooled => Postgres::start(),
            Self::Postgres18 => Postgres::start_18(),
        };
        let server = server.unwrap();
        let pooler = (self == Self::Pooled).then(|| PgBouncer::start(&server).unwrap());
        Private { server, pooler }
    }

    /// As a superuser of the caller's own, for whom a pooler keeps connections of his own: a transaction occupies one of the
    /// few that everybody else shares, and tests run beside each other.
    pub(crate) async fn url_of_a_fresh_user(self) -> String {
        let user = fresh_name("user");
        execute(&mut self.admin().await, format!("CREATE ROLE {user} LOGIN SUPERUSER")).await;
        self.url_of(&user, "postgres")
    }

    /// As an application would write them that knows of the pooler.
    pub(crate) fn options(self) -> PgConnectOptions {
        options_of(&self.url())
    }

    /// A superuser's connection to the server itself.
    pub(crate) async fn admin(self) -> PgConnection {
        connect(&self.server().url()).await
    }

    /// A store with a schema of its own, in place.
    pub(crate) async fn fresh_store(self) -> (PostgresStore, String) {
        let schema = fresh_name("schema");
        let store = PostgresStore::new(&self.url()).unwrap();
        let store = store.with_table(&schema, "leader_election").unwrap();
        store.ensure_schema().await.unwrap();
        (store, format!("{schema}.leader_election"))
    }
}

/// A server of a test's own, with its pooler if there is one in between.
pub(crate) struct Private {
    pub(crate) server: Postgres,
    pub(crate) pooler: Option<PgBouncer>,
}

impl Private {
    pub(crate) fn url(&self) -> String {
        self.pooler.as_ref().map_or_else(|| self.server.url(), PgBouncer::url)
    }
}

pub(crate) fn url_at(addr: SocketAddr, user: &str, database: &str) -> String {
    format!("postgres://{user}@{addr}/{database}")
}

/// A name that no other test uses, for schemas, roles and databases.
pub(crate) fn fresh_name(what: &str) -> String {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    format!("{what}_{}", NUMBER.fetch_add(1, Ordering::Relaxed))
}

pub(crate) fn options_of(url: &str) -> PgConnectOptions {
    url.parse::<PgConnectOptions>().unwrap().extra_float_digits(None)
}

pub(crate) async fn connect(url: &str) -> PgConnection {
    options_of(url).connect().await.unwrap()
}

/// Makes a call as an elector does, which gives it up after a while. `None` if it had to.
pub(crate) async fn in_time<T>(limit: Duration, call: impl Future<Output = T>) -> Option<T> {
    tokio::select! {
        answer = call => Some(answer),
        () = tokio::time::sleep(limit) => None,
    }
}

pub(crate) async fn execute(connection: &mut PgConnection, sql: impl Into<String>) {
    let sql = sql.into();
    sqlx::raw_sql(AssertSqlSafe(sql.clone()))
        .execute(connection)
        .await
        .unwrap_or_else(|error| panic!("{sql}: {error}"));
}

/// The one value that a query gives. In the simple protocol, which is safe on every path.
pub(crate) async fn value<T>(connection: &mut PgConnection, sql: impl Into<String>) -> T
where
    T: for<'r> sqlx::Decode<'r, sqlx::Postgres> + sqlx::Type<sqlx::Postgres>,
{
    sqlx::raw_sql(AssertSqlSafe(sql.into())).fetch_one(connection).await.unwrap().get(0)
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
