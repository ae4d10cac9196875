//! Somebody with all rights at a database.

use std::path::Path;

use tenure_mysql::sqlx::{
    self, AssertSqlSafe, ConnectOptions, Connection as _, MySqlConnection, query_scalar, raw_sql,
};
use tenure_postgres::sqlx::{PgConnection, postgres::PgConnectOptions};
use tenure_sqlite::sqlx::{SqliteConnection, sqlite::SqliteConnectOptions};
use tokio::runtime::Runtime;

use super::{PATIENCE, runtime};

/// A connection, on which locks can be held. Dropping it closes it, and rolls back what was not committed.
pub(crate) struct SqlSession {
    // Before the runtime, which closes it.
    connection: Connection,
    runtime: Runtime,
}

enum Connection {
    Postgres(PgConnection),
    Mysql(MySqlConnection),
    Sqlite(SqliteConnection),
}

impl SqlSession {
    pub(super) fn postgres(url: &str) -> Self {
        // A pooler does not know of that.
        let options = url.parse().map(|options: PgConnectOptions| options.extra_float_digits(None));
        Self::open(async { options?.connect().await.map(Connection::Postgres) })
    }

    pub(super) fn mysql(url: &str) -> Self {
        Self::open(async { MySqlConnection::connect(url).await.map(Connection::Mysql) })
    }

    pub(super) fn sqlite(file: &Path) -> Self {
        let options = SqliteConnectOptions::new().filename(file).busy_timeout(PATIENCE);
        Self::open(async { SqliteConnection::connect_with(&options).await.map(Connection::Sqlite) })
    }

    fn open(connecting: impl Future<Output = Result<Connection, sqlx::Error>>) -> Self {
        let runtime = runtime();
        let connection = runtime.block_on(connecting).expect("the database takes connections");
        Self { connection, runtime }
    }

    /// Executes this.
    pub(crate) fn execute(&mut self, sql: &str) {
        self.run(sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
    }

    /// Executes this if it can be.
    pub(super) fn try_execute(&mut self, sql: &str) {
        // Whoever asks does not care.
        let _ = self.run(sql);
    }

    fn run(&mut self, sql: &str) -> Result<(), sqlx::Error> {
        let sql = raw_sql(AssertSqlSafe(sql));
        match &mut self.connection {
            Connection::Postgres(connection) => {
                self.runtime.block_on(sql.execute(connection)).map(drop)
            }
            Connection::Mysql(connection) => {
                self.runtime.block_on(sql.execute(connection)).map(drop)
            }
            Connection::Sqlite(connection) => {
                self.runtime.block_on(sql.execute(connection)).map(drop)
            }
        }
    }

    /// Asks for a column of integers of 64 bits.
    pub(super) fn numbers(&mut self, sql: &str) -> Vec<i64> {
        let query = query_scalar(AssertSqlSafe(sql));
        let numbers = match &mut self.connection {
            Connection::Postgres(connection) => self.runtime.block_on(query.fetch_all(connection)),
            Connection::Mysql(connection) => {
                self.runtime.block_on(query_scalar(AssertSqlSafe(sql)).fetch_all(connection))
            }
            Connection::Sqlite(connection) => {
                self.runtime.block_on(query_scalar(AssertSqlSafe(sql)).fetch_all(connection))
            }
        };
        numbers.unwrap_or_else(|error| panic!("{sql}: {error}"))
    }
}
