//! Keeps the whole contract. The stores of a subject share nothing but the file, as those of several processes.

use std::{fs, path::PathBuf};

use sqlx::{AssertSqlSafe, Connection, SqliteConnection, sqlite::SqliteConnectOptions};
use tempfile::TempDir;
use tenure::ElectionName;
use tenure_conformance::{Subject, Unsupported, suite};
use tenure_sqlite::SqliteStore;

struct InAFile(TempDir);

impl InAFile {
    fn path(&self) -> PathBuf {
        self.0.path().join("leases.db")
    }

    async fn behind_the_stores_back(&self) -> SqliteConnection {
        let options = SqliteConnectOptions::new().filename(self.path());
        SqliteConnection::connect_with(&options).await.expect("the file can be opened")
    }

    async fn execute(&self, statements: &'static str) {
        let mut connection = self.behind_the_stores_back().await;
        sqlx::raw_sql(statements).execute(&mut connection).await.expect("it can be executed");
        connection.close().await.expect("it can be closed");
    }
}

impl Subject for InAFile {
    type Store = SqliteStore;

    async fn store(&self) -> SqliteStore {
        SqliteStore::new(self.path().to_str().expect("UTF-8")).expect("a path")
    }

    async fn bytes(&self, election: &ElectionName) -> Result<Option<Vec<u8>>, Unsupported> {
        let columns = [
            "name",
            "holder",
            "fence",
            "version",
            "duration_us",
            "released",
            "acquired_at",
            "renewed_at",
            "expires_at",
            "payload",
            "boot_id",
        ];
        let quoted = columns.map(|column| format!("quote({column})")).join(" || ',' || ");
        let select = format!("SELECT {quoted} FROM leader_election WHERE name = ?1");
        let mut connection = self.behind_the_stores_back().await;
        let found: Option<String> = sqlx::query_scalar(AssertSqlSafe(select))
            .bind(election.as_str())
            .fetch_optional(&mut connection)
            .await
            .expect("the table can be read");
        Ok(found.map(String::into_bytes))
    }

    async fn lose_record(&self, election: &ElectionName) -> Result<(), Unsupported> {
        let mut connection = self.behind_the_stores_back().await;
        sqlx::query("DELETE FROM leader_election WHERE name = ?1")
            .bind(election.as_str())
            .execute(&mut connection)
            .await
            .expect("a record can be deleted");
        Ok(())
    }

    async fn back_up(&self) -> Result<(), Unsupported> {
        self.execute(
            "DROP TABLE IF EXISTS backup; CREATE TABLE backup AS SELECT * FROM leader_election",
        )
        .await;
        Ok(())
    }

    async fn restore(&self) -> Result<(), Unsupported> {
        self.execute(
            "BEGIN IMMEDIATE; DELETE FROM leader_election; \
             INSERT INTO leader_election SELECT * FROM backup; COMMIT",
        )
        .await;
        Ok(())
    }

    /// The whole file, under the sessions that have it open.
    async fn drop_schema(&self) -> Result<(), Unsupported> {
        for file in ["leases.db", "leases.db-wal", "leases.db-shm"] {
            match fs::remove_file(self.0.path().join(file)) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => panic!("{error}"),
                _ => {}
            }
        }
        Ok(())
    }
}

suite!(async || InAFile(tempfile::tempdir().expect("a directory can be made")));
