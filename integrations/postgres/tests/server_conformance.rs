//! The acceptance suite, on a real server.

#![allow(clippy::unwrap_used)] // a subject is for tests alone

mod common;

use sqlx::AssertSqlSafe;
use tenure::ElectionName;
use tenure_conformance::{Subject, Unsupported, suite};
use tenure_postgres::{PostgresStore, sqlx};

use common::{admin, execute, fresh_name, server};

/// A schema of its own, with an awkward name.
struct Schema {
    name: String,
    url: String,
    quoted: String,
}

impl Schema {
    async fn new() -> Self {
        let name = fresh_name("it's \"one\" \\ of");
        let quoted = format!("\"{}\"", name.replace('"', "\"\""));
        Self { name, quoted, url: server().url() }
    }

    async fn run(&self, sql: &str) {
        execute(&mut admin().await, sql.replace("{schema}", &self.quoted)).await;
    }
}

impl Subject for Schema {
    type Store = PostgresStore;

    async fn store(&self) -> PostgresStore {
        PostgresStore::new(&self.url).unwrap().with_table(&self.name, "Leader Election").unwrap()
    }

    async fn bytes(&self, election: &ElectionName) -> Result<Option<Vec<u8>>, Unsupported> {
        let sql =
            format!("SELECT l::text FROM {}.\"Leader Election\" AS l WHERE name = $1", self.quoted);
        let row: Option<String> = sqlx::query_scalar(AssertSqlSafe(sql))
            .bind(election.as_str())
            .fetch_optional(&mut admin().await)
            .await
            .unwrap();
        Ok(row.map(String::into_bytes))
    }

    async fn lose_record(&self, election: &ElectionName) -> Result<(), Unsupported> {
        let sql = format!("DELETE FROM {}.\"Leader Election\" WHERE name = $1", self.quoted);
        sqlx::query(AssertSqlSafe(sql))
            .bind(election.as_str())
            .execute(&mut admin().await)
            .await
            .unwrap();
        Ok(())
    }

    async fn back_up(&self) -> Result<(), Unsupported> {
        self.run(
            "DROP TABLE IF EXISTS {schema}.backup; \
             CREATE TABLE {schema}.backup AS TABLE {schema}.\"Leader Election\"",
        )
        .await;
        Ok(())
    }

    async fn restore(&self) -> Result<(), Unsupported> {
        self.run(
            "DELETE FROM {schema}.\"Leader Election\"; \
             INSERT INTO {schema}.\"Leader Election\" TABLE {schema}.backup",
        )
        .await;
        Ok(())
    }

    async fn drop_schema(&self) -> Result<(), Unsupported> {
        self.run("SET client_min_messages = warning; DROP SCHEMA IF EXISTS {schema} CASCADE").await;
        Ok(())
    }
}

suite!(Schema::new);
