//! One elector's own connection.

use std::{fmt, sync::Arc, time::Duration};

use sqlx::mysql::MySqlRow;
use tenure::{
    ElectionName, Lease, StoreError,
    store::{AcquireRequest, Outcome, PlaceRequest, ReleaseRequest, RenewRequest, Session},
};

use crate::{
    error::{is_gone, store_error},
    link::{Link, Message},
    record,
    table::Table,
};

/// The session of a [`MysqlStore`](crate::MysqlStore): one elector's own connection, opened when it is first used, and
/// anew when it broke.
///
/// Each operation is one message and one round trip. If a connection that has been idle turns out to be closed, the
/// operation is sent once more on a fresh one. That is harmless if the first one was executed after all: an acquire
/// then loses against itself, and the elector looks again; a renewal is written twice.
pub struct MysqlSession {
    link: Link,
    table: Arc<Table>,
    election: ElectionName,
}

impl MysqlSession {
    pub(crate) fn new(link: Link, table: Arc<Table>, election: ElectionName) -> Self {
        Self { link, table, election }
    }

    /// Sends a message and reads its answer by `read`.
    async fn ask<T>(
        &mut self,
        attempt: &str,
        message: &Message,
        read: fn(&[MySqlRow]) -> Result<T, sqlx::Error>,
    ) -> Result<T, StoreError> {
        let answer = self.link.ask(message).await.and_then(|rows| read(&rows));
        answer.map_err(|error| self.error(attempt, error))
    }

    fn error(&self, attempt: &str, error: sqlx::Error) -> StoreError {
        let attempt = format!("{attempt} {:?}", self.election);
        store_error(&attempt, &self.table, self.link.source(), error)
    }
}

impl Session for MysqlSession {
    async fn inspect(&mut self) -> Result<Option<Lease>, StoreError> {
        let message = self.table.inspect(&self.election);
        self.ask("look at the lease of", &message, record::found).await
    }

    async fn place(&mut self, request: &PlaceRequest) -> Result<Lease, StoreError> {
        let message = self.table.place(&self.election, request);
        match self.ask("place a record for", &message, record::outcome).await? {
            Outcome::Won(lease) | Outcome::Lost(Some(lease)) => Ok(lease),
            Outcome::Lost(None) => {
                let vanished = format!("the record of {:?} vanished again", self.election);
                Err(StoreError::transient(vanished))
            }
        }
    }

    async fn acquire(&mut self, request: &AcquireRequest) -> Result<Outcome, StoreError> {
        let message = self.table.acquire(&self.election, request);
        self.ask("acquire the lease of", &message, record::outcome).await
    }

    async fn renew(&mut self, request: &RenewRequest) -> Result<Outcome, StoreError> {
        let message = self.table.renew(&self.election, request);
        let answer = self.link.ask(&message).await;
        match answer.and_then(|rows| record::outcome(&rows)) {
            // The record went with its table, which is proof that the term is over. What someone has to mend shows at
            // the next look.
            Err(error) if is_gone(&error) => Ok(Outcome::Lost(None)),
            outcome => outcome.map_err(|error| self.error("renew the lease of", error)),
        }
    }

    async fn release(&mut self, request: &ReleaseRequest) -> Result<Outcome, StoreError> {
        let message = self.table.release(&self.election, request);
        self.ask("release the lease of", &message, record::outcome).await
    }

    fn limit_calls(&mut self, limit: Duration) {
        self.link.limit(limit);
    }
}

impl fmt::Debug for MysqlSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MysqlSession")
            .field("election", &self.election)
            .field("table", &self.table.name())
            .finish_non_exhaustive()
    }
}
