//! Elections across processes that share a PostgreSQL server behind a pooler of transactions, and are woken by hints.

mod scenarios;

use scenarios::{grounds::PooledPostgres, run_all};

run_all!(shared: *PooledPostgres::shared(), own: PooledPostgres::new());
run_all!(clocked: *PooledPostgres::shared());
