//! `postgres:`, directly or through a pooler.

use tenure::DynStore;

use super::Kind;
use crate::{
    error::ElectionConfigError,
    options::{Known, Options},
};

const SCHEMA: Known = Known::plain("schema");
const TABLE: Known = Known::plain("table");
const LISTEN_URL: Known = Known::secret("listen_url");
const MAX_CONNECTION_AGE: Known = Known::plain("max_connection_age");

pub(super) const KIND: Kind = Kind {
    name: "postgres",
    form: "postgres://USER:PASSWORD@HOST/DATABASE",
    schemes: &["postgres", "postgresql"],
    options: &[SCHEMA, TABLE, LISTEN_URL, MAX_CONNECTION_AGE],
    connect,
};

#[cfg(feature = "postgres")]
fn connect(url: &str, options: &Options) -> Result<DynStore, ElectionConfigError> {
    use tenure::Store;
    use tenure_postgres::PostgresStore;

    use crate::scalar::Scalar;

    let mut store = PostgresStore::new(url).map_err(super::bad_url)?;
    let schema = options.text(SCHEMA).unwrap_or("public");
    // The schema by itself first, so that each error names the key that is wrong.
    store = store
        .with_table(schema, "leader_election")
        .map_err(|error| options.refused(SCHEMA, error))?;
    if let Some(table) = options.text(TABLE) {
        store = store.with_table(schema, table).map_err(|error| options.refused(TABLE, error))?;
    }
    if let Some(url) = options.text(LISTEN_URL) {
        store = store.listen_url(url).map_err(|error| options.refused(LISTEN_URL, error))?;
    }
    if let Some(age) = options.read(MAX_CONNECTION_AGE, Scalar::duration)? {
        store = store.max_connection_age(age);
    }
    Ok(store.into_dyn())
}

#[cfg(not(feature = "postgres"))]
fn connect(_: &str, _: &Options) -> Result<DynStore, ElectionConfigError> {
    super::feature_off("postgres")
}
