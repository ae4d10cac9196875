//! The databases that elections are held on.

mod mariadb;
mod nats;
mod postgres;
mod sqlite;

pub(crate) use self::{
    mariadb::MariadbServer,
    nats::NatsServer,
    postgres::{PooledPostgres, PostgresServer},
    sqlite::SqliteFile,
};
