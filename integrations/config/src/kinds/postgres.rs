//! `postgres:`, directly or through a pooler.

use tenure::DynStore;

use super::Kind;
use crate::{
    error::ElectionConfigError,
    options::{Known, Options},
};

const SCHEMA: Known = Known::plain("schema");
const TABLE: Known = Known::plain("table");

pub(super) const KIND: Kind = Kind {
    name: "postgres",
    schemes: &["postgres", "postgresql"],
    options: &[SCHEMA, TABLE],
    connect,
};

#[cfg(feature = "postgres")]
fn connect(url: &str, options: &Options) -> Result<DynStore, ElectionConfigError> {
    use tenure::Store;
    use tenure_postgres::PostgresStore;

    let store = PostgresStore::new(url).map_err(super::bad_url)?;
    let (schema, table) = (options.text(SCHEMA), options.text(TABLE));
    let store = store
        .with_table(schema.unwrap_or("public"), table.unwrap_or("leader_election"))
        .map_err(|error| options.refused(if schema.is_some() { SCHEMA } else { TABLE }, error))?;
    Ok(store.into_dyn())
}

#[cfg(not(feature = "postgres"))]
fn connect(_: &str, _: &Options) -> Result<DynStore, ElectionConfigError> {
    super::feature_off("postgres")
}
