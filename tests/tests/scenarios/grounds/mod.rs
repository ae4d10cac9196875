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

/// A server that is frozen while this is there; the function lets it go on.
struct Frozen<F: Fn()>(F);

impl<F: Fn()> super::Hang for Frozen<F> {}

impl<F: Fn()> Drop for Frozen<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}
