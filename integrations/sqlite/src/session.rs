//! One elector's own connection.

use std::{fmt, sync::Arc, time::Duration};

use tenure::{
    ElectionName, Lease, StoreError,
    store::{AcquireRequest, Outcome, PlaceRequest, ReleaseRequest, RenewRequest, Session},
};

use crate::{
    clock::Reading,
    error::{is_gone, store_error},
    link::{Link, Source},
    record,
    table::{Statement, Table},
};

/// The session of a [`SqliteStore`](crate::SqliteStore): one elector's own connection, with its own thread, opened when it
/// is first used.
///
/// A call that is dropped while it waits for the file's lock may be executed later. That harms nobody: an acquire finds
/// that the record has changed, and a renewal finds that it was renewed since.
pub struct SqliteSession {
    link: Link,
    source: Source,
    table: Arc<Table>,
    election: ElectionName,
}

impl SqliteSession {
    pub(crate) fn new(
        source: Source,
        limit: Duration,
        table: Arc<Table>,
        election: ElectionName,
    ) -> Self {
        Self { link: Link::new(source.clone(), limit), source, table, election }
    }

    async fn look(&mut self) -> Result<Option<Lease>, sqlx::Error> {
        let now = Reading::now();
        let answer = self.link.ask(self.table.inspect(&self.election)).await;
        answer.and_then(|rows| record::found(&rows, now))
    }

    /// Executes a conditional write. Where it matched nothing it wrote nothing, and a look says what is in the way.
    async fn write(&mut self, write: Statement<'_>, now: Reading) -> Result<Outcome, sqlx::Error> {
        let answer = self.link.ask(write).await;
        match answer.and_then(|rows| record::found(&rows, now))? {
            Some(lease) => Ok(Outcome::Won(lease)),
            None => self.look().await.map(Outcome::Lost),
        }
    }

    async fn attempt(
        &mut self,
        attempt: &str,
        write: Statement<'_>,
        now: Reading,
    ) -> Result<Outcome, StoreError> {
        self.write(write, now).await.map_err(|error| self.error(attempt, error))
    }

    fn error(&self, attempt: &str, error: sqlx::Error) -> StoreError {
        store_error(&format!("{attempt} {:?}", self.election), &self.table, &self.source, error)
    }
}

impl Session for SqliteSession {
    async fn inspect(&mut self) -> Result<Option<Lease>, StoreError> {
        self.look().await.map_err(|error| self.error("look at the lease of", error))
    }

    async fn place(&mut self, request: &PlaceRequest) -> Result<Lease, StoreError> {
        let (election, now) = (self.election.clone(), Reading::now());
        let write = self.table.place(&election, request, now)?;
        match self.attempt("place a record for", write, now).await? {
            Outcome::Won(lease) | Outcome::Lost(Some(lease)) => Ok(lease),
            Outcome::Lost(None) => {
                Err(StoreError::transient(format!("the record of {election:?} vanished again")))
            }
        }
    }

    async fn acquire(&mut self, request: &AcquireRequest) -> Result<Outcome, StoreError> {
        let (election, now) = (self.election.clone(), Reading::now());
        let write = self.table.acquire(&election, request, now)?;
        self.attempt("acquire the lease of", write, now).await
    }

    async fn renew(&mut self, request: &RenewRequest) -> Result<Outcome, StoreError> {
        let (election, now) = (self.election.clone(), Reading::now());
        let write = self.table.renew(&election, request, now)?;
        match self.write(write, now).await {
            // The record went with its table or its file, which is proof that the term is over. What someone has to mend
            // shows at the next look.
            Err(error) if is_gone(&error, &self.source) => Ok(Outcome::Lost(None)),
            outcome => outcome.map_err(|error| self.error("renew the lease of", error)),
        }
    }

    async fn release(&mut self, request: &ReleaseRequest) -> Result<Outcome, StoreError> {
        let election = self.election.clone();
        let write = self.table.release(&election, request);
        self.attempt("release the lease of", write, Reading::now()).await
    }

    fn limit_calls(&mut self, limit: Duration) {
        self.link.limit(limit);
    }
}

impl fmt::Debug for SqliteSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqliteSession")
            .field("election", &self.election)
            .field("table", &self.table.name())
            .finish_non_exhaustive()
    }
}
