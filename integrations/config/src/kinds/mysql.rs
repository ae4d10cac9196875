//! `mysql:`, which is MySQL and MariaDB.

use tenure::DynStore;

use super::Kind;
use crate::{
    error::ElectionConfigError,
    options::{Known, Options},
};

const DATABASE: Known = Known::plain("database");
const TABLE: Known = Known::plain("table");

pub(super) const KIND: Kind = Kind {
    name: "mysql",
    form: "mysql://USER:PASSWORD@HOST/DATABASE",
    schemes: &["mysql", "mariadb"],
    options: &[DATABASE, TABLE],
    connect,
};

#[cfg(feature = "mysql")]
fn connect(url: &str, options: &Options) -> Result<DynStore, ElectionConfigError> {
    use tenure::Store;
    use tenure_mysql::MysqlStore;

    let mut store = MysqlStore::new(url).map_err(super::bad_url)?;
    if let Some(database) = options.text(DATABASE) {
        store = store.with_database(database).map_err(|error| options.refused(DATABASE, error))?;
    }
    if let Some(table) = options.text(TABLE) {
        store = store.with_table(table).map_err(|error| options.refused(TABLE, error))?;
    }
    Ok(store.into_dyn())
}

#[cfg(not(feature = "mysql"))]
fn connect(_: &str, _: &Options) -> Result<DynStore, ElectionConfigError> {
    super::feature_off("mysql")
}
