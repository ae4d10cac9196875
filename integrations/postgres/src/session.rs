//! One elector's own connection.

use std::{fmt, sync::Arc, time::Duration};

use sqlx::postgres::PgRow;
use tenure::{
    ElectionName, Lease, StoreError,
    store::{AcquireRequest, Outcome, PlaceRequest, ReleaseRequest, RenewRequest, Session},
};

use crate::{
    error::{is_missing_table, store_error},
    link::Link,
    record,
    table::Table,
};

/// The session of a [`PostgresStore`](crate::PostgresStore): one elector's own connection, opened when it is first used,
/// and anew when it broke.
///
/// Each operation is one message and one round trip. If a connection that has been idle turns out to be closed, the
/// operation is sent once more on a fresh one. That is harmless if the first one was executed after all: an acquire
/// then loses against itself, and the elector looks again; a renewal is written twice.
pub struct PostgresSession {
    link: Link,
    table: Arc<Table>,
    election: ElectionName,
}

impl PostgresSession {
    pub(crate) fn new(link: Link, table: Arc<Table>, election: ElectionName) -> Self {
        Self { link, table, election }
    }

    /// Sends a statement and reads its answer by `read`.
    async fn ask<T>(
        &mut self,
        attempt: &str,
        statement: &str,
        read: fn(&[PgRow]) -> Result<T, sqlx::Error>,
    ) -> Result<T, StoreError> {
        let answer = self.link.ask(statement).await.and_then(|rows| read(&rows));
        answer.map_err(|error| self.error(attempt, error))
    }

    fn error(&self, attempt: &str, error: sqlx::Error) -> StoreError {
        let attempt = format!("{attempt} {:?}", self.election);
        store_error(&attempt, &self.table, self.link.source(), error)
    }
}

impl Session for PostgresSession {
    async fn inspect(&mut self) -> Result<Option<Lease>, StoreError> {
        let statement = self.table.inspect(&self.election);
        self.ask("look at the lease of", &statement, record::found).await
    }

    async fn place(&mut self, request: &PlaceRequest) -> Result<Lease, StoreError> {
        let statement = self.table.place(&self.election, request);
        let placed = self.ask("place a record for", &statement, record::found).await?;
        placed.ok_or_else(|| {
            StoreError::transient(format!("the record of {:?} vanished again", self.election))
        })
    }

    async fn acquire(&mut self, request: &AcquireRequest) -> Result<Outcome, StoreError> {
        let statement = self.table.acquire(&self.election, request);
        self.ask("acquire the lease of", &statement, record::outcome).await
    }

    async fn renew(&mut self, request: &RenewRequest) -> Result<Outcome, StoreError> {
        let statement = self.table.renew(&self.election, request);
        let answer = self.link.ask(&statement).await;
        match answer.and_then(|rows| record::outcome(&rows)) {
            // The record went with its table, which is proof that the term is over. What someone has to mend shows at
            // the next look.
            Err(error) if is_missing_table(&error) => Ok(Outcome::Lost(None)),
            outcome => outcome.map_err(|error| self.error("renew the lease of", error)),
        }
    }

    async fn release(&mut self, request: &ReleaseRequest) -> Result<Outcome, StoreError> {
        let statement = self.table.release(&self.election, request);
        self.ask("release the lease of", &statement, record::outcome).await
    }

    fn limit_calls(&mut self, limit: Duration) {
        self.link.limit(limit);
    }
}

impl fmt::Debug for PostgresSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresSession")
            .field("election", &self.election)
            .field("table", &self.table.name())
            .finish_non_exhaustive()
    }
}
