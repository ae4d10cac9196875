//! Keeps the whole contract. The stores of a subject share nothing but the file, as those of several processes.

use std::{fs, path::PathBuf};

use sqlx::{
    AssertSqlSafe, Connection, Sqlite, SqliteConnection,
    sqlite::{SqliteConnectOptions, SqlitePoolOptions},
};
use tempfile::TempDir;
use tenure::{ElectionName, Term, store::HoldError};
use tenure_conformance::{BoxError, Isolation, Subject, Transaction, Unsupported};
use tenure_sqlite::SqliteStore;

/// What version 0.1.0 created. Never to be changed: tables like it are out there.
const FIRST_SCHEMA: &str = "
    CREATE TABLE leader_election (
      name TEXT NOT NULL PRIMARY KEY,
      holder TEXT,
      fence INTEGER NOT NULL,
      version INTEGER NOT NULL,
      duration_us INTEGER NOT NULL,
      released INTEGER NOT NULL,
      acquired_at INTEGER NOT NULL,
      renewed_at INTEGER NOT NULL,
      expires_at INTEGER NOT NULL,
      payload BLOB NOT NULL,
      boot_id TEXT NOT NULL
    ) STRICT
";

struct InAFile(TempDir);

impl InAFile {
    async fn new() -> Self {
        let subject = Self(tempfile::tempdir().expect("a directory can be made"));
        subject
            .execute(
                "CREATE TABLE application (count INTEGER NOT NULL); \
                 INSERT INTO application VALUES (0)",
            )
            .await;
        subject
    }

    fn path(&self) -> PathBuf {
        self.0.path().join("leases.db")
    }

    async fn behind_the_stores_back(&self) -> SqliteConnection {
        let options = SqliteConnectOptions::new().filename(self.path()).create_if_missing(true);
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

    fn cut_points(&self) -> usize {
        3
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

    async fn begin(&self, isolation: Isolation) -> Result<impl Transaction, Unsupported> {
        if isolation != Isolation::Serializable {
            return Err(Unsupported("all transactions of SQLite are serializable"));
        }
        let options = SqliteConnectOptions::new().filename(self.path());
        let pool = SqlitePoolOptions::new().max_connections(1).connect_with(options).await;
        let transaction = pool.expect("the file can be opened").begin().await.expect("begins");
        Ok(OfTheApplication { store: self.store().await, transaction })
    }

    async fn upgrade(&self) -> Result<(), Unsupported> {
        self.execute("ALTER TABLE leader_election ADD COLUMN later INTEGER NOT NULL DEFAULT 1")
            .await;
        Ok(())
    }

    async fn write_added(&self, election: &ElectionName, value: i64) -> Result<(), Unsupported> {
        sqlx::query("UPDATE leader_election SET later = ?2 WHERE name = ?1")
            .bind(election.as_str())
            .bind(value)
            .execute(&mut self.behind_the_stores_back().await)
            .await
            .expect("the column can be written");
        Ok(())
    }

    async fn read_added(&self, election: &ElectionName) -> Result<i64, Unsupported> {
        let value = sqlx::query_scalar("SELECT later FROM leader_election WHERE name = ?1");
        let mut connection = self.behind_the_stores_back().await;
        let value = value.bind(election.as_str()).fetch_one(&mut connection).await;
        Ok(value.expect("the column can be read"))
    }

    async fn first_schema(&self) -> Result<(), Unsupported> {
        self.execute("DROP TABLE leader_election").await;
        self.execute(FIRST_SCHEMA).await;
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

mod sqlite {
    use super::*;

    tenure_conformance::suite!(InAFile::new, unsupported: [
        "hints::*",
        "hold::no_late_write_under_read_committed",
        "hold::no_late_write_under_repeatable_read",
        "hold::several_transactions_hold_one_term",
    ]);
}

/// A transaction of the application's own, on the same file.
struct OfTheApplication {
    store: SqliteStore,
    transaction: sqlx::Transaction<'static, Sqlite>,
}

impl Transaction for OfTheApplication {
    async fn hold(&mut self, term: &Term) -> Result<(), HoldError> {
        self.store.hold_term(&mut self.transaction, term).await
    }

    async fn count(&mut self) -> Result<i64, BoxError> {
        let count = sqlx::query_scalar("SELECT count FROM application");
        Ok(count.fetch_one(&mut *self.transaction).await?)
    }

    async fn add(&mut self) -> Result<(), BoxError> {
        let add = sqlx::query("UPDATE application SET count = count + 1");
        add.execute(&mut *self.transaction).await?;
        Ok(())
    }

    async fn commit(self) -> Result<(), BoxError> {
        Ok(self.transaction.commit().await?)
    }
}
