//! A term that is held in a transaction of the user's.

use sqlx::SqliteConnection;
use tenure::{Term, store::HoldError};

use crate::{
    clock::Reading,
    error::{is_open_transaction, store_error},
    link::Source,
    record,
    table::Table,
};

/// The statement writes, though nothing new: SQLite takes the file's write lock for it, for as long as the transaction
/// lasts, and refuses it if the transaction reads from a snapshot that is not the newest any more.
pub(crate) async fn hold_term(
    table: &Table,
    source: &Source,
    connection: &mut SqliteConnection,
    term: &Term,
) -> Result<(), HoldError> {
    if let Some(end) = term.end() {
        return Err(HoldError::Ended(end));
    }
    let attempt = format!("hold the term of {:?} with fence {}", term.election(), term.fence());
    let failed = |error| store_error(&attempt, table, source, error);
    if !is_in_transaction(connection).await.map_err(failed)? {
        return Err(HoldError::NotInTransaction);
    }
    let now = Reading::now();
    let held = table.hold(term, now).fetch_optional(&mut *connection).await.map_err(failed)?;
    if held.is_some() {
        // The wait for the lock may have outlived the term.
        return term.end().map_or(Ok(()), |end| Err(HoldError::Ended(end)));
    }
    let rows = table.inspect(term.election()).fetch_all(connection).await;
    let current = rows.and_then(|rows| record::found(&rows, now)).map_err(failed)?;
    Err(HoldError::NotCurrent { fence: term.fence(), current: current.map(Box::new) })
}

/// Asks SQLite itself, since transactions may have been begun behind the driver's back. In an open one `BEGIN` fails, and
/// changes nothing.
async fn is_in_transaction(connection: &mut SqliteConnection) -> Result<bool, sqlx::Error> {
    match sqlx::raw_sql("BEGIN").execute(&mut *connection).await {
        Ok(_) => sqlx::raw_sql("ROLLBACK").execute(connection).await.map(|_| false),
        Err(error) if is_open_transaction(&error) => Ok(true),
        Err(error) => Err(error),
    }
}
