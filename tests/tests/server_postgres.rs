//! Elections across processes that share a PostgreSQL server.

mod scenarios;

use scenarios::{grounds::PostgresServer, run_all};

run_all!(shared: *PostgresServer::shared(), own: PostgresServer::new());
run_all!(clocked: *PostgresServer::shared());
