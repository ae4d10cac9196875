//! Elections in a SQLite file.

use std::path::PathBuf;

use serde_json::Value;
use tempfile::TempDir;
use tenure_sqlite::sqlx::{
    ConnectOptions, Connection, SqliteConnection, raw_sql, sqlite::SqliteConnectOptions,
};
use tokio::runtime::Runtime;

use super::super::{Ground, Hang, runtime};

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
    fn config(&self) -> Value {
        format!("sqlite:{}", self.path().display()).into()
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

    fn drop_schema(&self) {
        runtime().block_on(async {
            let mut connection = self.connect().await;
            raw_sql("DROP TABLE leader_election").execute(&mut connection).await.unwrap();
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
