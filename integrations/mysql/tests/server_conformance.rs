//! The acceptance suite, on a real server, with everything on which the store must not depend turned one way and another.

#![allow(clippy::unwrap_used)] // a subject is for tests alone

mod common;

use std::sync::OnceLock;

use sqlx::{
    AssertSqlSafe, MySql,
    mysql::{MySqlConnectOptions, MySqlPoolOptions},
};
use tenure::{ElectionName, Term, store::HoldError};
use tenure_conformance::{BoxError, Isolation, Subject, Transaction, Unsupported, suite};
use tenure_mysql::{MysqlStore, sqlx};
use tenure_testbed::Mariadb;

use common::{connect, execute, fresh_name};

/// An awkward name.
const TABLE: &str = "it's \"one\" \\ of `é";

/// What version 0.1.0 created.
const FIRST_SCHEMA: &str = "
CREATE TABLE {table} (
    name        VARBINARY(255) NOT NULL PRIMARY KEY,
    holder      VARBINARY(255) NULL,
    fence       BIGINT NOT NULL,
    version     BIGINT NOT NULL,
    duration_us BIGINT NOT NULL,
    released    BOOLEAN NOT NULL DEFAULT FALSE,
    acquired_us BIGINT NOT NULL,
    renewed_us  BIGINT NOT NULL,
    expires_us  BIGINT NOT NULL,
    payload     MEDIUMBLOB NOT NULL
) ENGINE = InnoDB;
CREATE TABLE {hold} (
    election    VARBINARY(255) NOT NULL PRIMARY KEY,
    held_fence  BIGINT NULL
) ENGINE = InnoDB";

/// Where the server comes from, and how the store is made.
#[derive(Clone, Copy)]
struct Path {
    server: fn() -> &'static Mariadb,
    connection: fn(MySqlConnectOptions) -> MySqlConnectOptions,
    store: fn(MySqlConnectOptions) -> MysqlStore,
}

const PLAIN: Path =
    Path { server: common::server, connection: |options| options, store: MysqlStore::from_options };

/// A database of its own.
struct Database {
    path: Path,
    url: String,
    options: MySqlConnectOptions,
    name: String,
    /// Quoted, like those of the tables, which include it.
    database: String,
    table: String,
    hold: String,
}

impl Database {
    async fn new(path: Path) -> Self {
        let server = (path.server)();
        let quoted = |name: &str| format!("`{}`", name.replace('`', "``"));
        let name = fresh_name("a`database");
        let database = quoted(&name);
        let this = Self {
            path,
            url: server.url(),
            options: (path.connection)(server.url().parse().unwrap()),
            table: format!("{database}.{}", quoted(TABLE)),
            hold: format!("{database}.{}", quoted(&format!("{TABLE}_hold"))),
            name,
            database,
        };
        this.run(
            "CREATE DATABASE {database}; \
             CREATE TABLE {database}.counted (number BIGINT NOT NULL) ENGINE = InnoDB; \
             INSERT INTO {database}.counted VALUES (0); COMMIT",
        )
        .await;
        this
    }

    /// A statement with the names of the tables put in.
    fn sql(&self, statement: &str) -> String {
        let names =
            [("{database}", &self.database), ("{table}", &self.table), ("{hold}", &self.hold)];
        names.iter().fold(statement.to_owned(), |sql, (name, quoted)| sql.replace(name, quoted))
    }

    async fn run(&self, statement: &str) {
        execute(&mut connect(&self.url).await, self.sql(statement)).await;
    }

    /// One with the name of an election as its parameter.
    async fn run_on(&self, election: &ElectionName, statement: &str) {
        let mut connection = connect(&self.url).await;
        sqlx::query(AssertSqlSafe(self.sql(statement)))
            .bind(election.as_str().as_bytes())
            .execute(&mut connection)
            .await
            .unwrap();
        execute(&mut connection, "COMMIT").await;
    }

    async fn ask_of<T>(&self, election: &ElectionName, query: &str) -> Option<T>
    where
        T: for<'r> sqlx::Decode<'r, MySql> + sqlx::Type<MySql> + Send + Unpin,
    {
        sqlx::query_scalar(AssertSqlSafe(self.sql(query)))
            .bind(election.as_str().as_bytes())
            .fetch_optional(&mut connect(&self.url).await)
            .await
            .unwrap()
    }
}

impl Subject for Database {
    type Store = MysqlStore;

    async fn store(&self) -> MysqlStore {
        let store = (self.path.store)(self.options.clone());
        store.with_database(&self.name).unwrap().with_table(TABLE).unwrap()
    }

    fn cut_points(&self) -> usize {
        4
    }

    async fn bytes(&self, election: &ElectionName) -> Result<Option<Vec<u8>>, Unsupported> {
        let query = "SELECT CONCAT_WS('|', HEX(name), HEX(holder), fence, version, duration_us, released, \
                                      acquired_us, renewed_us, expires_us, HEX(payload)) \
                     FROM {table} WHERE name = ?";
        Ok(self.ask_of::<String>(election, query).await.map(String::into_bytes))
    }

    /// Whoever deletes a record deletes both its rows.
    async fn lose_record(&self, election: &ElectionName) -> Result<(), Unsupported> {
        self.run_on(election, "DELETE FROM {table} WHERE name = ?").await;
        self.run_on(election, "DELETE FROM {hold} WHERE election = ?").await;
        Ok(())
    }

    async fn back_up(&self) -> Result<(), Unsupported> {
        self.run(
            "DROP TABLE IF EXISTS {database}.backup, {database}.hold_backup; \
             CREATE TABLE {database}.backup SELECT * FROM {table}; \
             CREATE TABLE {database}.hold_backup SELECT * FROM {hold}",
        )
        .await;
        Ok(())
    }

    async fn restore(&self) -> Result<(), Unsupported> {
        self.run(
            "START TRANSACTION; DELETE FROM {table}; DELETE FROM {hold}; \
             INSERT INTO {table} SELECT * FROM {database}.backup; \
             INSERT INTO {hold} SELECT * FROM {database}.hold_backup; COMMIT",
        )
        .await;
        Ok(())
    }

    async fn drop_schema(&self) -> Result<(), Unsupported> {
        self.run("DROP TABLE IF EXISTS {table}, {hold}").await;
        Ok(())
    }

    async fn begin(&self, isolation: Isolation) -> Result<impl Transaction, Unsupported> {
        let pool =
            MySqlPoolOptions::new().max_connections(1).connect_lazy_with(self.options.clone());
        let level = match isolation {
            Isolation::ReadCommitted => "READ COMMITTED",
            Isolation::RepeatableRead => "REPEATABLE READ",
            Isolation::Serializable => "SERIALIZABLE",
        };
        let set = AssertSqlSafe(format!("SET SESSION TRANSACTION ISOLATION LEVEL {level}"));
        sqlx::raw_sql(set).execute(&pool).await.unwrap();
        Ok(OfTheApplication {
            store: self.store().await,
            transaction: pool.begin().await.unwrap(),
            counted: self.sql("{database}.counted"),
        })
    }

    async fn upgrade(&self) -> Result<(), Unsupported> {
        self.run("ALTER TABLE {table} ADD COLUMN later BIGINT NOT NULL DEFAULT 1").await;
        Ok(())
    }

    async fn write_added(&self, election: &ElectionName, value: i64) -> Result<(), Unsupported> {
        let statement = format!("UPDATE {{table}} SET later = {value} WHERE name = ?");
        self.run_on(election, &statement).await;
        Ok(())
    }

    async fn read_added(&self, election: &ElectionName) -> Result<i64, Unsupported> {
        let query = "SELECT later FROM {table} WHERE name = ?";
        Ok(self.ask_of(election, query).await.unwrap())
    }

    async fn first_schema(&self) -> Result<(), Unsupported> {
        self.drop_schema().await?;
        self.run(FIRST_SCHEMA).await;
        Ok(())
    }
}

struct OfTheApplication {
    store: MysqlStore,
    transaction: sqlx::Transaction<'static, MySql>,
    counted: String,
}

impl Transaction for OfTheApplication {
    async fn hold(&mut self, term: &Term) -> Result<(), HoldError> {
        self.store.hold_term(&mut self.transaction, term).await
    }

    async fn count(&mut self) -> Result<i64, BoxError> {
        let sql = format!("SELECT number FROM {}", self.counted);
        Ok(sqlx::query_scalar(AssertSqlSafe(sql)).fetch_one(&mut *self.transaction).await?)
    }

    async fn add(&mut self) -> Result<(), BoxError> {
        let sql = format!("UPDATE {} SET number = number + 1", self.counted);
        sqlx::query(AssertSqlSafe(sql)).execute(&mut *self.transaction).await?;
        Ok(())
    }

    async fn commit(self) -> Result<(), BoxError> {
        Ok(self.transaction.commit().await?)
    }
}

/// As it is installed: REPEATABLE READ.
mod mariadb {
    use super::*;

    suite!(async || Database::new(PLAIN).await, unsupported: ["hints::*"]);
}

/// What MySQL understands, and nothing else.
mod portable {
    use super::*;

    const PATH: Path = Path {
        store: |options| MysqlStore::from_options(options).without_mariadb_shortcuts(),
        ..PLAIN
    };

    suite!(async || Database::new(PATH).await, unsupported: ["hints::*"]);
}

/// Connections of the application's, with the settings of the application.
mod pool {
    use super::*;

    const PATH: Path = Path {
        store: |options| {
            let pool = MySqlPoolOptions::new().max_connections(4).after_connect(|connection, _| {
                Box::pin(async {
                    let settings =
                        "SET SESSION autocommit = 0, completion_type = 1, time_zone = '-03:30'";
                    sqlx::raw_sql(settings).execute(connection).await.map(drop)
                })
            });
            MysqlStore::from_pool(pool.connect_lazy_with(options))
        },
        ..PLAIN
    };

    suite!(async || Database::new(PATH).await, unsupported: ["hints::*"]);
}

mod read_committed {
    use super::*;

    const PATH: Path = Path {
        server: || {
            static SERVER: OnceLock<Mariadb> = OnceLock::new();
            let options = ["--transaction-isolation=READ-COMMITTED"];
            SERVER.get_or_init(|| Mariadb::start_with(&options).unwrap())
        },
        ..PLAIN
    };

    suite!(async || Database::new(PATH).await, unsupported: ["hints::*"]);
}

mod serializable {
    use super::*;

    const PATH: Path = Path {
        server: || {
            static SERVER: OnceLock<Mariadb> = OnceLock::new();
            let options = ["--transaction-isolation=SERIALIZABLE"];
            SERVER.get_or_init(|| Mariadb::start_with(&options).unwrap())
        },
        ..PLAIN
    };

    suite!(async || Database::new(PATH).await, unsupported: ["hints::*"]);
}

/// REPEATABLE READ in which a lock on what has changed since is refused.
mod snapshot_isolation {
    use super::*;

    const PATH: Path = Path {
        server: || {
            static SERVER: OnceLock<Mariadb> = OnceLock::new();
            let options = ["--innodb-snapshot-isolation=ON"];
            SERVER.get_or_init(|| Mariadb::start_with(&options).unwrap())
        },
        ..PLAIN
    };

    suite!(async || Database::new(PATH).await, unsupported: ["hints::*"]);
}

/// Whatever else a server can be set to.
mod odd_settings {
    use super::*;

    const PATH: Path = Path {
        server: || {
            static SERVER: OnceLock<Mariadb> = OnceLock::new();
            let options = [
                "--sql-mode=ANSI_QUOTES,EMPTY_STRING_IS_NULL,HIGH_NOT_PRECEDENCE,IGNORE_SPACE,NO_BACKSLASH_ESCAPES,\
                 NO_UNSIGNED_SUBTRACTION,PIPES_AS_CONCAT,SIMULTANEOUS_ASSIGNMENT,TIME_ROUND_FRACTIONAL",
                "--default-time-zone=+05:45",
                "--sysdate-is-now",
                "--log-bin",
                "--binlog-format=MIXED",
                "--character-set-server=latin1",
                "--completion-type=CHAIN",
                "--innodb-rollback-on-timeout",
                "--autocommit=0",
            ];
            SERVER.get_or_init(|| Mariadb::start_with(&options).unwrap())
        },
        connection: |options| {
            options
                .timezone(None)
                .set_names(false)
                .pipes_as_concat(false)
                .no_engine_substitution(false)
        },
        ..PLAIN
    };

    suite!(async || Database::new(PATH).await, unsupported: ["hints::*"]);
}
