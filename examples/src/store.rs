//! Stores by URL.

use tenure::{DynStore, MemoryStore, Store, StoreError};
use tenure_postgres::PostgresStore;
use tenure_sqlite::SqliteStore;

/// Why there is no store at a URL. No message contains a password that stands in the URL.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// The URL names no store that the examples know.
    #[error(
        "no store is known for {url:?} (--store): give memory:, sqlite:PATH or \
         postgres://USER:PASSWORD@HOST/DATABASE"
    )]
    Unknown {
        /// What was given, without what may be a password.
        url: String,
    },
    /// The URL is one of SQLite, and ends where the path should begin.
    #[error("the path of the database is missing (--store): give sqlite:PATH")]
    NoPath,
    /// The URL is not one of SQLite.
    #[error(transparent)]
    Sqlite(tenure_sqlite::SetupError),
    /// The URL is not one of PostgreSQL.
    #[error(transparent)]
    Postgres(#[from] tenure_postgres::SetupError),
    /// The database cannot be reached, or refuses the schema.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<tenure_sqlite::SetupError> for ConnectError {
    fn from(error: tenure_sqlite::SetupError) -> Self {
        match error {
            // It advises to give the path alone, which is not a URL.
            tenure_sqlite::SetupError::NoPath => Self::NoPath,
            error => Self::Sqlite(error),
        }
    }
}

/// Makes the store that the URL names and creates its schema, which is safe on every replica at once.
///
/// # Errors
/// [`ConnectError`] for an unknown or wrong URL, and if the database cannot be reached or refuses the schema.
pub async fn connect(url: &str) -> Result<DynStore, ConnectError> {
    let scheme = url.split_once(':').map(|(scheme, _)| scheme);
    let store = match scheme {
        Some("memory") => MemoryStore::new().into_dyn(),
        Some("sqlite") => SqliteStore::new(url)?.into_dyn(),
        Some("postgres" | "postgresql") => PostgresStore::new(url)?.into_dyn(),
        _ => return Err(ConnectError::Unknown { url: without_password(url) }),
    };
    store.ensure_schema().await?;
    Ok(store)
}

/// All of the URL if it has no place for a password, which are `USER:PASSWORD@HOST` and `NAME=VALUE`; else its beginning.
fn without_password(url: &str) -> String {
    match url.split_inclusive([':', '=', '@']).next() {
        Some(beginning) if url.contains(['=', '@']) => format!("{beginning}…"),
        _ => url.to_owned(),
    }
}
