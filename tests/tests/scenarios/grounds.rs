//! The databases that elections are held on.

use std::{path::PathBuf, sync::OnceLock};

use tempfile::TempDir;
use tenure_postgres::sqlx::{
    AssertSqlSafe, ConnectOptions, Connection, PgConnection, SqliteConnection,
    postgres::PgConnectOptions, raw_sql, sqlite::SqliteConnectOptions,
};
use tenure_testbed::Postgres;
use tokio::runtime::Runtime;

use super::{Ground, Hang, runtime};

/// A SQLite file.
pub(crate) struct SqliteFile {
    directory: TempDir,
}

impl SqliteFile {
    pub(crate) fn new() -> Self {
        Self { directory: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.directory.path().join("elections.db")
    }

    pub(crate) async fn connect(&self) -> SqliteConnection {
        SqliteConnectOptions::new().filename(self.path()).connect().await.unwrap()
    }
}

impl Ground for SqliteFile {
    fn url(&self) -> String {
        format!("sqlite:{}", self.path().display())
    }

    /// Somebody else writes, and does not come to an end.
    fn hang(&self) -> Box<dyn Hang + '_> {
        let runtime = runtime();
        let connection = runtime.block_on(async {
            let mut connection = self.connect().await;
            raw_sql("BEGIN IMMEDIATE").execute(&mut connection).await.unwrap();
            connection
        });
        Box::new(Writer { runtime, connection: Some(connection) })
    }

    fn execute(&self, sql: &str) {
        runtime().block_on(async {
            let mut connection = self.connect().await;
            raw_sql(AssertSqlSafe(sql.to_owned())).execute(&mut connection).await.unwrap();
            connection.close().await.unwrap();
        });
    }
}

struct Writer {
    runtime: Runtime,
    connection: Option<SqliteConnection>,
}

impl Hang for Writer {}

impl Drop for Writer {
    fn drop(&mut self) {
        if let Some(connection) = self.connection.take() {
            // Rolls back.
            let _ = self.runtime.block_on(connection.close());
        }
    }
}

/// A private PostgreSQL server.
pub(crate) struct PostgresServer(pub(crate) Postgres);

impl PostgresServer {
    pub(crate) fn new() -> Self {
        Self(Postgres::start().unwrap())
    }

    /// The one that all tests of this program share that leave it alone. It goes away with the process.
    pub(crate) fn shared() -> &'static Self {
        static SERVER: OnceLock<PostgresServer> = OnceLock::new();
        SERVER.get_or_init(Self::new)
    }

    pub(crate) async fn connect(&self) -> PgConnection {
        self.url().parse::<PgConnectOptions>().unwrap().connect().await.unwrap()
    }
}

impl Ground for PostgresServer {
    fn url(&self) -> String {
        self.0.url()
    }

    fn hang(&self) -> Box<dyn Hang + '_> {
        self.0.stop();
        Box::new(Stopped(&self.0))
    }

    fn execute(&self, sql: &str) {
        runtime().block_on(async {
            let mut connection = self.connect().await;
            raw_sql(AssertSqlSafe(sql.to_owned())).execute(&mut connection).await.unwrap();
            connection.close().await.unwrap();
        });
    }
}

struct Stopped<'a>(&'a Postgres);

impl Hang for Stopped<'_> {}

impl Drop for Stopped<'_> {
    fn drop(&mut self) {
        self.0.cont();
    }
}
