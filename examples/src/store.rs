//! Stores by URL.

use tenure::{DynStore, MemoryStore, Store, StoreError};
use tenure_postgres::PostgresStore;
use tenure_sqlite::SqliteStore;

/// Why there is no store at a URL. No message contains the URL, which may contain a password.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// The URL names no store that the examples know.
    #[error(
        "no store is known for a URL that begins with {scheme:?}: give memory:, sqlite:PATH or \
         postgres://USER:PASSWORD@HOST/DATABASE"
    )]
    UnknownScheme {
        /// What stands in front of the first colon.
        scheme: String,
    },
    /// The URL is not one of SQLite.
    #[error(transparent)]
    Sqlite(#[from] tenure_sqlite::SetupError),
    /// The URL is not one of PostgreSQL.
    #[error(transparent)]
    Postgres(#[from] tenure_postgres::SetupError),
    /// The database cannot be reached, or refuses the schema.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Makes the store that the URL names and creates its schema, which is safe on every replica at once.
///
/// # Errors
/// [`ConnectError`] for an unknown or wrong URL, and if the database cannot be reached or refuses the schema.
pub async fn connect(url: &str) -> Result<DynStore, ConnectError> {
    let scheme = url.split_once(':').map_or("", |(scheme, _)| scheme);
    let store = match scheme {
        "memory" => MemoryStore::new().into_dyn(),
        "sqlite" => SqliteStore::new(url)?.into_dyn(),
        "postgres" | "postgresql" => PostgresStore::new(url)?.into_dyn(),
        _ => return Err(ConnectError::UnknownScheme { scheme: scheme.to_owned() }),
    };
    store.ensure_schema().await?;
    Ok(store)
}
