//! The acceptance suite, on real servers, on every path to them.

#![allow(clippy::unwrap_used)] // a subject is for tests alone

mod common;

use sqlx::{AssertSqlSafe, Connection, PgConnection, Row, postgres::PgPoolOptions};
use tenure::{ElectionName, Term, store::HoldError};
use tenure_conformance::{BoxError, Isolation, Subject, Transaction, Unsupported, suite};
use tenure_postgres::{PostgresStore, sqlx};

use common::{Path, connect, execute, fresh_name, options_of, value};

mod direct {
    use super::*;

    suite!(async || Schema::new(Path::Direct));
}

mod pooled {
    use super::*;

    suite!(async || Schema::new(Path::Pooled));
}

mod postgres_18 {
    use super::*;

    suite!(async || Schema::new(Path::Postgres18));
}

/// With a pool of the application's, whose role and whose sessions have settings of their own.
mod settings {
    use super::*;

    suite!(async || Schema::with_settings(Path::Direct).await);
}

/// What version 0.1.0 created, `{schema}` being a schema's name.
const FIRST_SCHEMA: &str = "
    CREATE SCHEMA {schema};
    CREATE TABLE {table} (
        name        text COLLATE \"C\" PRIMARY KEY,
        holder      text COLLATE \"C\",
        fence       bigint NOT NULL,
        version     bigint NOT NULL,
        duration_us bigint NOT NULL,
        released    boolean NOT NULL DEFAULT false,
        acquired_at timestamptz NOT NULL,
        renewed_at  timestamptz NOT NULL,
        expires_at  timestamptz NOT NULL,
        payload     bytea NOT NULL DEFAULT ''
    ) WITH (fillfactor = 70)";

/// A schema of its own, with an awkward name.
struct Schema {
    path: Path,
    name: String,
    quoted: String,
    /// The role whose sessions have settings of their own.
    role: Option<String>,
}

impl Schema {
    fn new(path: Path) -> Self {
        let name = fresh_name("it's \"one\" \\ of");
        let quoted = format!("\"{}\"", name.replace('"', "\"\""));
        Self { path, name, quoted, role: None }
    }

    async fn with_settings(path: Path) -> Self {
        let schema = Self::new(path);
        let role = fresh_name("settings");
        let mut admin = path.admin().await;
        execute(&mut admin, format!("CREATE ROLE {role} LOGIN SUPERUSER")).await;
        for setting in [
            "standard_conforming_strings = off",
            "default_transaction_isolation = 'repeatable read'",
            "bytea_output = 'escape'",
            "intervalstyle = 'sql_standard'",
            "search_path = ''",
        ] {
            execute(&mut admin, format!("ALTER ROLE {role} SET {setting}")).await;
        }
        Self { role: Some(role), ..schema }
    }

    fn table(&self) -> String {
        format!("{}.\"Leader Election\"", self.quoted)
    }

    async fn run(&self, sql: &str) {
        let sql = sql.replace("{schema}", &self.quoted).replace("{table}", &self.table());
        execute(&mut self.path.admin().await, sql).await;
    }
}

impl Subject for Schema {
    type Store = PostgresStore;

    async fn store(&self) -> PostgresStore {
        let store = match &self.role {
            None => PostgresStore::new(&self.path.url()).unwrap(),
            Some(role) => {
                let options = options_of(&self.path.url_of(role, "postgres"));
                let pool = PgPoolOptions::new().max_connections(4).after_connect(|session, _| {
                    // The driver asks for UTC, so it has to be said afterwards.
                    Box::pin(async move {
                        execute(session, "SET TimeZone = 'Asia/Kathmandu'").await;
                        Ok(())
                    })
                });
                PostgresStore::from_pool(pool.connect_lazy_with(options))
            }
        };
        store
            .listen_url(&self.path.server().url())
            .unwrap()
            .with_table(&self.name, "Leader Election")
            .unwrap()
    }

    fn cut_points(&self) -> usize {
        4
    }

    async fn bytes(&self, election: &ElectionName) -> Result<Option<Vec<u8>>, Unsupported> {
        let sql = format!("SELECT l::text FROM {} AS l WHERE name = $1", self.table());
        let row: Option<String> = sqlx::query_scalar(AssertSqlSafe(sql))
            .bind(election.as_str())
            .fetch_optional(&mut self.path.admin().await)
            .await
            .unwrap();
        Ok(row.map(String::into_bytes))
    }

    async fn lose_record(&self, election: &ElectionName) -> Result<(), Unsupported> {
        let sql = format!("DELETE FROM {} WHERE name = $1", self.table());
        sqlx::query(AssertSqlSafe(sql))
            .bind(election.as_str())
            .execute(&mut self.path.admin().await)
            .await
            .unwrap();
        Ok(())
    }

    async fn back_up(&self) -> Result<(), Unsupported> {
        self.run(
            "DROP TABLE IF EXISTS {schema}.backup; CREATE TABLE {schema}.backup AS TABLE {table}",
        )
        .await;
        Ok(())
    }

    async fn restore(&self) -> Result<(), Unsupported> {
        self.run("DELETE FROM {table}; INSERT INTO {table} TABLE {schema}.backup").await;
        Ok(())
    }

    async fn drop_schema(&self) -> Result<(), Unsupported> {
        self.run("SET client_min_messages = warning; DROP SCHEMA IF EXISTS {schema} CASCADE").await;
        Ok(())
    }

    async fn begin(&self, isolation: Isolation) -> Result<impl Transaction, Unsupported> {
        self.run("CREATE SCHEMA IF NOT EXISTS {schema}").await;
        self.run(
            "CREATE TABLE IF NOT EXISTS {schema}.added (number bigint); \
             INSERT INTO {schema}.added SELECT 0 WHERE NOT EXISTS (SELECT FROM {schema}.added)",
        )
        .await;
        let mut connection = connect(&self.path.url_of_a_fresh_user().await).await;
        let level = match isolation {
            Isolation::ReadCommitted => "READ COMMITTED",
            Isolation::RepeatableRead => "REPEATABLE READ",
            Isolation::Serializable => "SERIALIZABLE",
        };
        execute(&mut connection, format!("BEGIN ISOLATION LEVEL {level}")).await;
        let store = self.store().await;
        Ok(UsersTransaction { connection, store, added: format!("{}.added", self.quoted) })
    }

    async fn upgrade(&self) -> Result<(), Unsupported> {
        self.run("ALTER TABLE {table} ADD COLUMN added_later bigint NOT NULL DEFAULT 0").await;
        Ok(())
    }

    async fn write_added(&self, election: &ElectionName, value: i64) -> Result<(), Unsupported> {
        let sql = format!("UPDATE {} SET added_later = $1 WHERE name = $2", self.table());
        sqlx::query(AssertSqlSafe(sql))
            .bind(value)
            .bind(election.as_str())
            .execute(&mut self.path.admin().await)
            .await
            .unwrap();
        Ok(())
    }

    async fn read_added(&self, election: &ElectionName) -> Result<i64, Unsupported> {
        let sql = format!("SELECT added_later FROM {} WHERE name = $1", self.table());
        let row = sqlx::query(AssertSqlSafe(sql)).bind(election.as_str());
        Ok(row.fetch_one(&mut self.path.admin().await).await.unwrap().get(0))
    }

    async fn first_schema(&self) -> Result<(), Unsupported> {
        self.drop_schema().await?;
        self.run(FIRST_SCHEMA).await;
        Ok(())
    }
}

/// Begun by hand on a connection of its own, and rolled back by the server when that closes.
struct UsersTransaction {
    connection: PgConnection,
    store: PostgresStore,
    added: String,
}

impl UsersTransaction {
    async fn run(&mut self, sql: String) -> Result<(), BoxError> {
        sqlx::raw_sql(AssertSqlSafe(sql)).execute(&mut self.connection).await?;
        Ok(())
    }
}

impl Transaction for UsersTransaction {
    async fn hold(&mut self, term: &Term) -> Result<(), HoldError> {
        self.store.hold_term(&mut self.connection, term).await
    }

    async fn count(&mut self) -> Result<i64, BoxError> {
        let sql = format!("SELECT number FROM {}", self.added);
        Ok(value(&mut self.connection, sql).await)
    }

    async fn add(&mut self) -> Result<(), BoxError> {
        self.run(format!("UPDATE {} SET number = number + 1", self.added)).await
    }

    async fn commit(mut self) -> Result<(), BoxError> {
        self.run("COMMIT".to_owned()).await?;
        self.connection.close().await?;
        Ok(())
    }
}
