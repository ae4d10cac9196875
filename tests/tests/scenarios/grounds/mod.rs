//! The databases that elections are held on.

mod postgres;
mod sqlite;

pub(crate) use self::{postgres::PostgresServer, sqlite::SqliteFile};
