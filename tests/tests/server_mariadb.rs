//! Elections across processes that share a MariaDB server.

mod scenarios;

use scenarios::{grounds::MariadbServer, run_all};

run_all!(shared: *MariadbServer::shared(), own: MariadbServer::new());
run_all!(clocked: *MariadbServer::shared());
