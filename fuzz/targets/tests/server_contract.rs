//! The stores of databases against the model of one record: the same sequences of operations that the fuzzer has found for
//! the in-process store, and others that are drawn anew each time.

#![allow(clippy::unwrap_used)] // helpers of tests are tests

mod support;

use std::{
    future::Future,
    sync::{
        LazyLock,
        atomic::{AtomicU32, Ordering},
    },
};

use sqlx::{AssertSqlSafe, Connection, MySqlConnection, PgConnection, SqliteConnection};
use tempfile::TempDir;
use tenure::ElectionName;
use tenure_fuzz_targets::contract::{Ground, play};
use tenure_mysql::MysqlStore;
use tenure_nats::NatsStore;
use tenure_postgres::{PostgresStore, sqlx};
use tenure_sqlite::SqliteStore;
use tenure_testbed::{Mariadb, Nats, PgBouncer, Postgres};

/// Beside the corpus.
const CASES: u32 = 60;
const MOST_OPERATIONS: usize = 25;

/// Each case has an election of its own, in one table.
fn keeps_its_contract<G: Ground, F: Future<Output = G>>(ground: impl FnOnce() -> F) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let ground = runtime.block_on(ground());
    let number = AtomicU32::new(0);
    let run = |bytes: &[u8]| {
        let name = format!("election {}", number.fetch_add(1, Ordering::Relaxed));
        let election = ElectionName::new(name).unwrap();
        runtime.block_on(play(bytes, &ground, &election, MOST_OPERATIONS));
    };
    support::replay_with(support::target("contract"), run);
    support::try_anything(CASES, 400, run);
}

#[test]
fn sqlite_keeps_its_contract() {
    keeps_its_contract(async || {
        let directory = tempfile::tempdir().unwrap();
        let ground = Sqlite(directory);
        tenure::Store::ensure_schema(&ground.store()).await.unwrap();
        ground
    });
}

#[test]
fn postgresql_keeps_its_contract() {
    keeps_its_contract(async || OnPostgres::at(POSTGRES.url(), "direct").await);
}

#[test]
fn postgresql_behind_a_pooler_keeps_its_contract() {
    static POOLER: LazyLock<PgBouncer> = LazyLock::new(|| PgBouncer::start(&POSTGRES).unwrap());
    keeps_its_contract(async || OnPostgres::at(POOLER.url(), "pooled").await);
}

#[test]
fn mariadb_keeps_its_contract() {
    keeps_its_contract(async || OnMariadb::with("shortcuts", |store| store).await);
}

#[test]
fn mariadb_asked_as_mysql_keeps_its_contract() {
    keeps_its_contract(async || {
        OnMariadb::with("plain", MysqlStore::without_mariadb_shortcuts).await
    });
}

#[test]
fn nats_keeps_its_contract() {
    static SERVER: LazyLock<Nats> = LazyLock::new(|| Nats::start_current().unwrap());
    keeps_its_contract(async || {
        let store = NatsStore::new(&SERVER.url()).unwrap();
        store.ensure_schema().await.unwrap();
        let client = async_nats::connect(SERVER.url()).await.unwrap();
        OnNats { store, client }
    });
}

static POSTGRES: LazyLock<Postgres> = LazyLock::new(|| Postgres::start().unwrap());
static MARIADB: LazyLock<Mariadb> = LazyLock::new(|| Mariadb::start().unwrap());

struct Sqlite(TempDir);

impl Sqlite {
    fn path(&self) -> String {
        self.0.path().join("leases.db").to_str().unwrap().to_owned()
    }
}

impl Ground for Sqlite {
    type Store = SqliteStore;

    fn store(&self) -> SqliteStore {
        SqliteStore::new(self.path()).unwrap()
    }

    async fn forget(&self, election: &ElectionName) {
        let mut admin =
            SqliteConnection::connect(&format!("sqlite:{}", self.path())).await.unwrap();
        let delete = sqlx::query("DELETE FROM leader_election WHERE name = ?1");
        delete.bind(election.as_str()).execute(&mut admin).await.unwrap();
        admin.close().await.unwrap();
    }
}

struct OnPostgres {
    url: String,
    schema: &'static str,
}

impl OnPostgres {
    async fn at(url: String, schema: &'static str) -> Self {
        let ground = Self { url, schema };
        ground.store().ensure_schema().await.unwrap();
        ground
    }
}

impl Ground for OnPostgres {
    type Store = PostgresStore;

    fn store(&self) -> PostgresStore {
        PostgresStore::new(&self.url).unwrap().with_table(self.schema, "leases").unwrap()
    }

    async fn forget(&self, election: &ElectionName) {
        let mut admin = PgConnection::connect(&POSTGRES.url()).await.unwrap();
        let delete = format!("DELETE FROM {}.leases WHERE name = $1", self.schema);
        let delete = sqlx::query(AssertSqlSafe(delete)).bind(election.as_str());
        delete.execute(&mut admin).await.unwrap();
        admin.close().await.unwrap();
    }
}

struct OnMariadb {
    table: &'static str,
    asked: fn(MysqlStore) -> MysqlStore,
}

impl OnMariadb {
    async fn with(table: &'static str, asked: fn(MysqlStore) -> MysqlStore) -> Self {
        let ground = Self { table, asked };
        ground.store().ensure_schema().await.unwrap();
        ground
    }
}

impl Ground for OnMariadb {
    type Store = MysqlStore;

    fn store(&self) -> MysqlStore {
        let store = MysqlStore::new(&MARIADB.url()).unwrap().with_table(self.table).unwrap();
        (self.asked)(store)
    }

    async fn forget(&self, election: &ElectionName) {
        let mut admin = MySqlConnection::connect(&MARIADB.url()).await.unwrap();
        let delete = format!("DELETE FROM {} WHERE name = ?", self.table);
        let delete = sqlx::query(AssertSqlSafe(delete)).bind(election.as_str().as_bytes());
        delete.execute(&mut admin).await.unwrap();
        admin.close().await.unwrap();
    }
}

struct OnNats {
    store: NatsStore,
    client: async_nats::Client,
}

impl Ground for OnNats {
    type Store = NatsStore;

    fn store(&self) -> NatsStore {
        self.store.clone()
    }

    /// As `nats kv del` does it: by a mark on top.
    async fn forget(&self, election: &ElectionName) {
        let key = election.as_str().replace(' ', "=20");
        let mut headers = async_nats::HeaderMap::new();
        headers.insert("KV-Operation", "DEL");
        let subject = format!("$KV.leader_election.{key}");
        let reply = self.client.request_with_headers(subject, headers, "".into()).await.unwrap();
        assert!(reply.payload.starts_with(br#"{"stream""#), "{:?}", reply.payload);
    }
}
