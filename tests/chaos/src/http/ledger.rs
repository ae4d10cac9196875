//! What the replicas have written.

use std::time::Duration;

use tenure::store::within;
use tenure_postgres::sqlx::{self, Connection, PgConnection, query_as};
use tokio::runtime::Builder;

use super::judge::{Author, Record};

/// How long the server waits for a transaction in which nothing happens, by the first statement that the examples make in it.
/// One that holds a term is given up after as much as its lease, if that is shorter.
pub(super) const PATIENCE: Duration = Duration::from_secs(2);

/// How long it is read. After a scenario that broke off the server may still be frozen.
const LIMIT: Duration = Duration::from_secs(20);

/// The ledger of the examples in this database, in the order of its numbers.
pub(crate) fn read(url: &str) -> Result<Vec<Record>, String> {
    let runtime = Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| error.to_string())?;
    match runtime.block_on(async { within(LIMIT, records(url)).await }) {
        Some(records) => records.map_err(|error| format!("the ledger cannot be read: {error}")),
        None => Err(format!("the ledger was not read within {LIMIT:?}")),
    }
}

async fn records(url: &str) -> Result<Vec<Record>, sqlx::Error> {
    let mut connection = PgConnection::connect(url).await?;
    let query = query_as(
        "SELECT id, fence, identity,
                (extract(epoch FROM pg_xact_commit_timestamp(xmin)) * 1000000)::bigint
         FROM jobs ORDER BY number",
    );
    let rows: Vec<(String, i64, String, i64)> = query.fetch_all(&mut connection).await?;
    let record = |(id, fence, identity, committed)| Record {
        id,
        author: Author { fence, identity },
        committed,
    };
    Ok(rows.into_iter().map(record).collect())
}
