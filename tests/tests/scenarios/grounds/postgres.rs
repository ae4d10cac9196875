//! Elections on PostgreSQL.

use std::sync::OnceLock;

use serde_json::{Value, json};
use tenure_postgres::sqlx::{
    ConnectOptions, Connection, PgConnection, postgres::PgConnectOptions, raw_sql,
};
use tenure_testbed::{PgBouncer, Postgres};

use super::{
    super::{Ground, Hang, runtime},
    Frozen,
};

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
        self.0.url().parse::<PgConnectOptions>().unwrap().connect().await.unwrap()
    }
}

impl Ground for PostgresServer {
    fn config(&self) -> Value {
        self.0.url().into()
    }

    fn hang(&self) -> Box<dyn Hang + '_> {
        self.0.stop();
        Box::new(Frozen(|| self.0.cont()))
    }

    fn drop_schema(&self) {
        runtime().block_on(async {
            let mut connection = self.connect().await;
            raw_sql("DROP TABLE leader_election").execute(&mut connection).await.unwrap();
            connection.close().await.unwrap();
        });
    }
}

/// A private PostgreSQL server behind a pooler of transactions. Candidates listen for hints on the direct way.
pub(crate) struct PooledPostgres {
    pooler: PgBouncer,
    server: PostgresServer,
}

impl PooledPostgres {
    pub(crate) fn new() -> Self {
        let server = PostgresServer::new();
        Self { pooler: PgBouncer::start(&server.0).unwrap(), server }
    }

    /// The one that all tests of this program share that leave it alone. It goes away with the process.
    pub(crate) fn shared() -> &'static Self {
        static SERVER: OnceLock<PooledPostgres> = OnceLock::new();
        SERVER.get_or_init(Self::new)
    }
}

impl Ground for PooledPostgres {
    fn config(&self) -> Value {
        json!({"url": self.pooler.url(), "listen_url": self.server.0.url()})
    }

    fn hang(&self) -> Box<dyn Hang + '_> {
        self.server.hang()
    }

    fn drop_schema(&self) {
        self.server.drop_schema();
    }
}
