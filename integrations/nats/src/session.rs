//! One elector's own connection.

use std::{fmt, sync::Arc, time::Duration};

use tenure::{
    ElectionName, Lease, StoreError,
    store::{AcquireRequest, Hints, Outcome, PlaceRequest, ReleaseRequest, RenewRequest, Session},
};

use crate::{
    bucket::{Bucket, BucketError},
    entry::{Act, Entry, Memory},
    error::{NatsError, store_error},
    hints,
    link::{Link, within},
};

/// The session of a [`NatsStore`](crate::NatsStore): one elector's own connection, opened when it is first used, and anew
/// when it broke.
///
/// A renewal is one round trip: it is written on top of what the session wrote last, without a look before. So is a look.
/// An acquire takes two, since the server tells when it stored the value only to who reads it; so does a release, which looks
/// before it writes. The first call on a connection also looks at the bucket, and trusts nothing that was seen before.
///
/// A call that finds its connection broken is repeated once on a fresh one. That is harmless if the first one was executed
/// after all: an acquire then loses against itself, and the elector looks again; a renewal is written twice.
pub struct NatsSession {
    link: Link,
    bucket: Arc<Bucket>,
    election: ElectionName,
    memory: Memory,
    hints: bool,
}

impl NatsSession {
    pub(crate) fn new(
        link: Link,
        bucket: Arc<Bucket>,
        election: ElectionName,
        hints: bool,
    ) -> Self {
        Self { link, bucket, election, memory: Memory::default(), hints }
    }

    /// Does it within the time that a call has.
    async fn call(&mut self, act: Act<'_>) -> Result<Outcome, NatsError> {
        let patience = self.link.patience();
        let call = async {
            match self.attempt(act).await {
                (Err(error), true) if error.is_disconnect() => self.attempt(act).await.0,
                (outcome, _) => outcome,
            }
        };
        within(patience, call).await
    }

    /// One attempt, and whether it was made on a connection that had been idle. The connection is used again only if the
    /// server has answered.
    async fn attempt(&mut self, act: Act<'_>) -> (Result<Outcome, NatsError>, bool) {
        let Self { link, bucket, election, memory, .. } = self;
        let (mut connection, was_idle) = match link.take().await {
            Ok(taken) => taken,
            Err(error) => return (Err(error), false),
        };
        let outcome = Entry::new(&mut connection, memory, bucket, election).perform(act).await;
        if outcome.as_ref().err().is_none_or(NatsError::is_answer) {
            connection.keep();
        }
        (outcome, was_idle)
    }

    fn error(&self, attempt: &str, error: NatsError) -> StoreError {
        store_error(&format!("{attempt} {:?}", self.election), self.link.source(), error)
    }
}

impl Session for NatsSession {
    async fn inspect(&mut self) -> Result<Option<Lease>, StoreError> {
        let outcome = self.call(Act::Look).await;
        let outcome = outcome.map_err(|error| self.error("look at the lease of", error))?;
        Ok(outcome.lease().cloned())
    }

    async fn place(&mut self, request: &PlaceRequest) -> Result<Lease, StoreError> {
        let outcome = self.call(Act::Place(request)).await;
        let placed =
            outcome.and_then(|outcome| outcome.lease().cloned().ok_or(NatsError::Contended));
        placed.map_err(|error| self.error("place a record for", error))
    }

    async fn acquire(&mut self, request: &AcquireRequest) -> Result<Outcome, StoreError> {
        let outcome = self.call(Act::Acquire(request)).await;
        outcome.map_err(|error| self.error("acquire the lease of", error))
    }

    async fn renew(&mut self, request: &RenewRequest) -> Result<Outcome, StoreError> {
        match self.call(Act::Renew(request)).await {
            // The record went with its bucket, or somebody put something else in its place, which is proof that the term is
            // over. (It began in a bucket that was prepared and filled, so one that is not is another one.) What someone has
            // to mend shows at the next look.
            Err(
                NatsError::Bucket(
                    BucketError::Missing | BucketError::Unprepared | BucketError::Filling,
                )
                | NatsError::Value { .. },
            ) => Ok(Outcome::Lost(None)),
            outcome => outcome.map_err(|error| self.error("renew the lease of", error)),
        }
    }

    async fn release(&mut self, request: &ReleaseRequest) -> Result<Outcome, StoreError> {
        let outcome = self.call(Act::Release(request)).await;
        outcome.map_err(|error| self.error("release the lease of", error))
    }

    fn limit_calls(&mut self, limit: Duration) {
        self.link.limit_to(limit);
    }

    fn hints(&mut self) -> Hints {
        if !self.hints {
            return Hints::none();
        }
        hints::of(self.link.source().clone(), self.bucket.clone(), &self.election)
    }
}

impl fmt::Debug for NatsSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NatsSession")
            .field("election", &self.election)
            .field("bucket", &self.bucket.name)
            .finish_non_exhaustive()
    }
}
