//! Leases in a table of MySQL or MariaDB, for [tenure].

mod error;
mod hold;
mod link;
mod literal;
mod record;
mod session;
mod setup;
mod store;
mod table;

pub use sqlx;

pub use self::{error::MysqlError, session::MysqlSession, setup::SetupError, store::MysqlStore};
