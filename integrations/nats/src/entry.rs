//! The entry of one election in its bucket: what is done to it through one connection.

use serde_json::Map;
use tenure::{
    ElectionName, Fence, Identity, Lease, Payload,
    store::{AcquireRequest, Observed, Outcome, PlaceRequest, ReleaseRequest, RenewRequest, When},
};

use crate::{
    api::Last, bucket::Bucket, error::NatsError, key::key_of, link::Connection, value::Record,
};

/// How often a write is tried again because somebody else wrote in between.
const ATTEMPTS: usize = 4;

/// What stands under a key.
#[derive(Clone, Debug)]
pub(crate) enum Found {
    Record(Record),
    /// Nothing. A write expects this revision.
    Vacant(u64),
}

impl Found {
    fn lease(&self) -> Option<Lease> {
        match self {
            Self::Record(record) => Some(record.lease()),
            Self::Vacant(_) => None,
        }
    }

    fn revision(&self) -> u64 {
        match self {
            Self::Record(record) => record.revision,
            Self::Vacant(revision) => *revision,
        }
    }

    fn is(&self, observed: Option<&Observed>) -> bool {
        match (self, observed) {
            (Self::Record(record), Some(observed)) => Observed::from(&record.lease()) == *observed,
            (Self::Vacant(_), None) => true,
            _ => false,
        }
    }
}

/// What a session knows from earlier calls. Nothing of it has to be true any more: what is written expects that it is.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    found: Option<Found>,
    /// The revision that was seen last, also if what was found then has been forgotten since.
    revision: u64,
    /// When the bucket was created.
    bucket_created: Option<String>,
}

/// What is to be done.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Act<'a> {
    Look,
    Place(&'a PlaceRequest),
    Acquire(&'a AcquireRequest),
    Renew(&'a RenewRequest),
    Release(&'a ReleaseRequest),
    Depose,
}

/// One election's entry.
pub(crate) struct Entry<'a> {
    connection: &'a mut Connection,
    memory: &'a mut Memory,
    bucket: &'a Bucket,
    election: &'a ElectionName,
    stream: String,
    subject: String,
}

impl<'a> Entry<'a> {
    pub(crate) fn new(
        connection: &'a mut Connection,
        memory: &'a mut Memory,
        bucket: &'a Bucket,
        election: &'a ElectionName,
    ) -> Self {
        let (stream, subject) = (bucket.stream(), bucket.subject(election));
        Self { connection, memory, bucket, election, stream, subject }
    }

    /// Who only looks, wins nothing.
    pub(crate) async fn perform(&mut self, act: Act<'_>) -> Result<Outcome, NatsError> {
        self.check().await?;
        match act {
            Act::Look => self.lost().await,
            Act::Place(request) => self.place(request).await,
            Act::Acquire(request) => self.acquire(request).await,
            Act::Renew(request) => self.renew(request).await,
            Act::Release(request) => self.release(request).await,
            Act::Depose => self.depose().await,
        }
    }

    async fn place(&mut self, request: &PlaceRequest) -> Result<Outcome, NatsError> {
        for _ in 0..ATTEMPTS {
            let expected = match self.look().await? {
                Found::Record(record) => return Ok(Outcome::Lost(Some(record.lease()))),
                Found::Vacant(revision) => revision,
            };
            let nobodys = Record {
                revision: 0,
                holder: None,
                fence: request.floor.unwrap_or(Fence::MIN),
                duration: request.duration,
                payload: Payload::default(),
                released: false,
                nonce: String::new(),
                added: Map::new(),
            };
            if let Some(placed) = self.write(expected, nobodys).await? {
                return Ok(Outcome::Won(placed.lease()));
            }
        }
        Err(NatsError::Contended)
    }

    /// Writes the least fence that it may have, and reads back the one that it got: as everybody else will.
    async fn acquire(&mut self, request: &AcquireRequest) -> Result<Outcome, NatsError> {
        let observed = request.observed.as_ref();
        if observed.is_some() && request.when == When::Expired {
            // There is no clock here by which it could have.
            return self.lost().await;
        }
        let fence = Fence::next(observed.map(|observed| observed.fence), request.floor, 0);
        let mut claim = Record {
            revision: 0,
            holder: Some(request.holder.clone()),
            fence: fence.ok_or(NatsError::LastFence)?,
            duration: request.duration,
            payload: request.payload.clone(),
            released: false,
            nonce: nonce()?,
            added: Map::new(),
        };
        // A second time where what was remembered is as it was observed, but was not there any more.
        for _ in 0..2 {
            let found = match &self.memory.found {
                Some(found) if found.is(observed) => found.clone(),
                _ => self.look().await?,
            };
            if !found.is(observed) {
                return Ok(Outcome::Lost(found.lease()));
            }
            if let Found::Record(record) = &found {
                claim.added = record.added.clone();
            }
            let stored = self.store(found.revision(), claim.unsettled()).await?;
            if let Some(revision) = stored {
                let found = self.look().await?;
                return Ok(match found.lease() {
                    Some(term) if found.revision() == revision => Outcome::Won(term),
                    other => Outcome::Lost(other),
                });
            }
        }
        self.lost().await
    }

    async fn renew(&mut self, request: &RenewRequest) -> Result<Outcome, NatsError> {
        self.change_term(&request.holder, request.fence, |record| {
            record.duration = request.duration;
            if let Some(payload) = &request.payload {
                record.payload = payload.clone();
            }
        })
        .await
    }

    async fn release(&mut self, request: &ReleaseRequest) -> Result<Outcome, NatsError> {
        // What is remembered may be old by now: this call is also made when a term has ended because nothing could be written.
        self.memory.found = None;
        self.change_term(&request.holder, request.fence, |record| record.released = true).await
    }

    async fn depose(&mut self) -> Result<Outcome, NatsError> {
        for _ in 0..ATTEMPTS {
            let Found::Record(mut record) = self.look().await? else {
                return Ok(Outcome::Lost(None));
            };
            record.holder = None;
            if let Some(deposed) = self.write(record.revision, record).await? {
                return Ok(Outcome::Won(deposed.lease()));
            }
        }
        Err(NatsError::Contended)
    }

    /// Writes on top of what is remembered, without a look, and looks only if that is not what is there any more. What
    /// it finds then may be an earlier write of its own, whose reply was lost: that is no success, but something to write
    /// on top of.
    async fn change_term(
        &mut self,
        holder: &Identity,
        fence: Fence,
        change: impl Fn(&mut Record),
    ) -> Result<Outcome, NatsError> {
        for _ in 0..ATTEMPTS {
            let remembered = self.memory.found.clone();
            let mut record = match remembered {
                Some(Found::Record(record)) if record.is_term(holder, fence) => record,
                _ => match self.look().await? {
                    Found::Record(record) if record.is_term(holder, fence) => record,
                    other => return Ok(Outcome::Lost(other.lease())),
                },
            };
            change(&mut record);
            if let Some(changed) = self.write(record.revision, record).await? {
                return Ok(Outcome::Won(changed.lease()));
            }
            // It may be another bucket, whose revisions need not be lower.
            self.connection.checked = false;
        }
        Err(NatsError::Contended)
    }

    async fn lost(&mut self) -> Result<Outcome, NatsError> {
        Ok(Outcome::Lost(self.look().await?.lease()))
    }

    /// Reads what stands there.
    async fn look(&mut self) -> Result<Found, NatsError> {
        self.check().await?;
        let last = match self.connection.last(&self.stream, &self.subject).await {
            Err(error) => return Err(self.explain(error).await),
            Ok(last) => last,
        };
        let found = match last {
            Last::Vacant { revision } => Found::Vacant(revision),
            Last::Stored { revision, stored_ms, data } => {
                let record = Record::decode(&data, revision, stored_ms);
                Found::Record(record.map_err(|source| {
                    self.memory.found = None;
                    NatsError::Value { key: key_of(self.election), source }
                })?)
            }
        };
        if found.revision() < self.memory.revision {
            // This may be another bucket than the one that was seen before.
            self.connection.checked = false;
            self.check().await?;
        }
        self.remember(found.clone());
        Ok(found)
    }

    fn remember(&mut self, found: Found) {
        self.memory.revision = found.revision();
        self.memory.found = Some(found);
    }

    /// Writes a record with the fence that it has. `None` if what is there is not what was expected.
    async fn write(
        &mut self,
        expected: u64,
        mut record: Record,
    ) -> Result<Option<Record>, NatsError> {
        record.nonce = nonce()?;
        let Some(revision) = self.store(expected, record.settled()).await? else {
            return Ok(None);
        };
        record.revision = revision;
        self.remember(Found::Record(record.clone()));
        Ok(Some(record))
    }

    async fn store(&mut self, expected: u64, value: Vec<u8>) -> Result<Option<u64>, NatsError> {
        let stored = self.connection.store(&self.stream, &self.subject, expected, value).await;
        match stored {
            Ok(Some(revision)) => Ok(Some(revision)),
            Ok(None) => {
                self.memory.found = None;
                Ok(None)
            }
            Err(error) => Err(self.explain(error).await),
        }
    }

    /// Finds out whether the bucket is gone, or sealed, where that may be the cause: it is not said in the same words
    /// everywhere.
    async fn explain(&mut self, error: NatsError) -> NatsError {
        let gone = error.is_no_responders() || error.is_sealed() || error.is_missing_stream();
        if !gone {
            return error;
        }
        self.connection.checked = false;
        let found = self.check().await.err();
        found.filter(|found| matches!(found, NatsError::Bucket(_))).unwrap_or(error)
    }

    /// Looks at the bucket, once for each connection and whenever there is reason to. What was seen there before is forgotten:
    /// if a crash, or a restore from a backup, has thrown it back, the same revision may be that of another record now.
    async fn check(&mut self) -> Result<(), NatsError> {
        if self.connection.checked {
            return Ok(());
        }
        self.memory.found = None;
        let created = self.bucket.check(self.connection).await?;
        let before = self.memory.bucket_created.replace(created.clone());
        if let Some(before) = before.filter(|before| *before != created) {
            let (election, bucket) = (&self.election, &self.bucket.name);
            tracing::warn!(%election, %bucket, before, created, "the bucket was deleted and created anew: all its leases are lost");
        }
        self.connection.checked = true;
        Ok(())
    }
}

fn nonce() -> Result<String, NatsError> {
    Ok(format!("{:016x}", getrandom::u64()?))
}
