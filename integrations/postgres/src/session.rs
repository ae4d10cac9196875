//! One elector's own connection.

use std::{fmt, sync::Arc, time::Duration};

use sqlx::postgres::{PgConnectOptions, PgRow};
use tenure::{
    ElectionName, Lease, StoreError,
    store::{AcquireRequest, Hints, Outcome, PlaceRequest, ReleaseRequest, RenewRequest, Session},
};

use crate::{
    error::{is_full_of_notifications, is_missing_table, store_error},
    hints::hints,
    link::Link,
    record,
    table::{Table, Told},
};

/// The session of a [`PostgresStore`](crate::PostgresStore): one elector's own connection, opened when it is first used,
/// and anew when it broke.
///
/// Each operation is one message and one round trip. If a connection that has been idle turns out to be closed, the
/// operation is sent once more on a fresh one. That is harmless if the first one was executed after all: an acquire
/// then loses against itself, and the elector looks again; a renewal is written twice.
pub struct PostgresSession {
    link: Link,
    listen: Option<Arc<PgConnectOptions>>,
    table: Arc<Table>,
    election: ElectionName,
}

impl PostgresSession {
    pub(crate) fn new(
        link: Link,
        listen: Option<Arc<PgConnectOptions>>,
        table: Arc<Table>,
        election: ElectionName,
    ) -> Self {
        Self { link, listen, table, election }
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
        let telling = self.table.release(&self.election, request, Told::Listeners);
        let mut answer = self.link.ask(&telling).await;
        if answer.as_ref().is_err_and(is_full_of_notifications) {
            // Somebody has not listened for very long. The release is worth more than the hint.
            let silent = self.table.release(&self.election, request, Told::Nobody);
            answer = self.link.ask(&silent).await;
        }
        answer
            .and_then(|rows| record::outcome(&rows))
            .map_err(|error| self.error("release the lease of", error))
    }

    fn limit_calls(&mut self, limit: Duration) {
        self.link.limit(limit);
    }

    /// Nothing is connected before the stream is polled.
    fn hints(&mut self) -> Hints {
        match &self.listen {
            Some(options) => hints(options.clone(), &self.table, &self.election),
            None => Hints::none(),
        }
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
