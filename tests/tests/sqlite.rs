//! Elections across processes that share a SQLite file.

mod scenarios;

use scenarios::{grounds::SqliteFile, run_all};

run_all!(shared: SqliteFile::new(), own: SqliteFile::new());
