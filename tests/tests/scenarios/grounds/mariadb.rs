//! Elections on MariaDB.

use std::sync::OnceLock;

use serde_json::Value;
use tenure_mysql::sqlx::{ConnectOptions, Connection, mysql::MySqlConnectOptions, raw_sql};
use tenure_testbed::Mariadb;

use super::{
    super::{Ground, Hang, runtime},
    Frozen,
};

/// A private MariaDB server.
pub(crate) struct MariadbServer(Mariadb);

impl MariadbServer {
    pub(crate) fn new() -> Self {
        Self(Mariadb::start().unwrap())
    }

    /// The one that all tests of this program share that leave it alone. It goes away with the process.
    pub(crate) fn shared() -> &'static Self {
        static SERVER: OnceLock<MariadbServer> = OnceLock::new();
        SERVER.get_or_init(Self::new)
    }
}

impl Ground for MariadbServer {
    fn config(&self) -> Value {
        self.0.url().into()
    }

    fn hang(&self) -> Box<dyn Hang + '_> {
        self.0.stop();
        Box::new(Frozen(|| self.0.cont()))
    }

    fn drop_schema(&self) {
        runtime().block_on(async {
            let options: MySqlConnectOptions = self.0.url().parse().unwrap();
            let mut connection = options.connect().await.unwrap();
            raw_sql("DROP TABLE leader_election").execute(&mut connection).await.unwrap();
            connection.close().await.unwrap();
        });
    }
}
