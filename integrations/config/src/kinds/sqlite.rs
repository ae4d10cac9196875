//! `sqlite:`, a file on this host.

use tenure::DynStore;

use super::Kind;
use crate::{
    error::ElectionConfigError,
    options::{Known, Options},
};

const TABLE: Known = Known::plain("table");

pub(super) const KIND: Kind =
    Kind { name: "sqlite", form: "sqlite:PATH", schemes: &["sqlite"], options: &[TABLE], connect };

#[cfg(feature = "sqlite")]
fn connect(url: &str, options: &Options) -> Result<DynStore, ElectionConfigError> {
    use tenure::Store;
    use tenure_sqlite::SqliteStore;

    let mut store = SqliteStore::new(url).map_err(super::bad_url)?;
    if let Some(table) = options.text(TABLE) {
        store = store.with_table(table).map_err(|error| options.refused(TABLE, error))?;
    }
    Ok(store.into_dyn())
}

#[cfg(not(feature = "sqlite"))]
fn connect(_: &str, _: &Options) -> Result<DynStore, ElectionConfigError> {
    super::feature_off("sqlite")
}
