//! The records, and what the operations make of them.

use std::{collections::BTreeMap, time::Duration};

use tokio::sync::watch;

use crate::{
    instant::Instant,
    lease::{ElectionName, Fence, Identity, Lease, Payload, Version},
    store::{
        AcquireRequest, Observed, Outcome, PlaceRequest, ReleaseRequest, RenewRequest, StoreError,
        When,
    },
};

#[derive(Default)]
pub(super) struct Records {
    pub(super) table: BTreeMap<ElectionName, Record>,
    /// The last version given out, to any record: so that none repeats when a record is deleted or restored.
    version: u64,
    /// Wakes who listens to releases, for each election to which somebody has ever listened.
    released: BTreeMap<ElectionName, watch::Sender<()>>,
}

#[derive(Clone)]
pub(super) struct Record {
    holder: Option<Identity>,
    fence: Fence,
    version: u64,
    duration: Duration,
    released: bool,
    expires_at: Instant,
    payload: Payload,
}

impl Records {
    pub(super) fn read(&self, election: &ElectionName, now: Instant) -> Option<Lease> {
        self.table.get(election).map(|record| record.lease(now))
    }

    pub(super) fn list(&self, now: Instant) -> Vec<(ElectionName, Lease)> {
        let row =
            |(election, record): (&ElectionName, &Record)| (election.clone(), record.lease(now));
        self.table.iter().map(row).collect()
    }

    pub(super) fn place(
        &mut self,
        election: &ElectionName,
        request: &PlaceRequest,
        now: Instant,
    ) -> Lease {
        if let Some(record) = self.table.get(election) {
            return record.lease(now);
        }
        let record = Record {
            holder: None,
            fence: request.floor.unwrap_or(Fence::MIN),
            version: self.next_version(now),
            duration: request.duration,
            released: false,
            expires_at: now + request.duration,
            payload: Payload::default(),
        };
        self.put(election, record, now)
    }

    pub(super) fn acquire(
        &mut self,
        election: &ElectionName,
        request: &AcquireRequest,
        now: Instant,
    ) -> Result<Outcome, StoreError> {
        let found = self.table.get(election);
        let as_observed = found.map(Record::observed) == request.observed;
        let permitted = match request.when {
            When::Expired => found.is_none_or(|record| record.is_expired(now)),
            When::Unchanged => true,
        };
        if !as_observed || !permitted {
            return Ok(Outcome::Lost(found.map(|record| record.lease(now))));
        }
        let Some(fence) = Fence::next(found.map(|record| record.fence), request.floor, 0) else {
            return Err(StoreError::fatal(format!("no fence is left for election {election:?}")));
        };
        let record = Record {
            holder: Some(request.holder.clone()),
            fence,
            version: self.next_version(now),
            duration: request.duration,
            released: false,
            expires_at: now + request.duration,
            payload: request.payload.clone(),
        };
        Ok(Outcome::Won(self.put(election, record, now)))
    }

    pub(super) fn renew(
        &mut self,
        election: &ElectionName,
        request: &RenewRequest,
        now: Instant,
    ) -> Outcome {
        let version = self.next_version(now);
        let term = self.term(election, &request.holder, request.fence);
        let Some(record) = term.filter(|record| !record.is_expired(now)) else {
            return Outcome::Lost(self.read(election, now));
        };
        record.version = version;
        record.duration = request.duration;
        record.expires_at = now + request.duration;
        if let Some(payload) = &request.payload {
            record.payload = payload.clone();
        }
        Outcome::Won(record.lease(now))
    }

    /// Also of a lease that has expired: those who judge by watching alone need not wait for it then.
    pub(super) fn release(
        &mut self,
        election: &ElectionName,
        request: &ReleaseRequest,
        now: Instant,
    ) -> Outcome {
        let version = self.next_version(now);
        let Some(record) = self.term(election, &request.holder, request.fence) else {
            return Outcome::Lost(self.read(election, now));
        };
        record.version = version;
        record.released = true;
        let outcome = Outcome::Won(record.lease(now));
        if let Some(listeners) = self.released.get(election) {
            listeners.send_replace(());
        }
        outcome
    }

    /// Changes with each release from here on.
    pub(super) fn listen(&mut self, election: &ElectionName) -> watch::Receiver<()> {
        self.released.entry(election.clone()).or_default().subscribe()
    }

    pub(super) fn depose(&mut self, election: &ElectionName, now: Instant) -> Option<Lease> {
        let version = self.next_version(now);
        let record = self.table.get_mut(election)?;
        record.holder = None;
        record.version = version;
        Some(record.lease(now))
    }

    /// The record, if it is still that of the holder's term.
    fn term(
        &mut self,
        election: &ElectionName,
        holder: &Identity,
        fence: Fence,
    ) -> Option<&mut Record> {
        let theirs = |record: &&mut Record| {
            record.holder.as_ref() == Some(holder) && record.fence == fence && !record.released
        };
        self.table.get_mut(election).filter(theirs)
    }

    fn put(&mut self, election: &ElectionName, record: Record, now: Instant) -> Lease {
        let lease = record.lease(now);
        self.table.insert(election.clone(), record);
        lease
    }

    /// The clock in microseconds, and above every version that was given out.
    fn next_version(&mut self, now: Instant) -> u64 {
        self.version = (self.version + 1).max(now.as_nanos() / 1_000);
        self.version
    }
}

impl Record {
    fn is_expired(&self, now: Instant) -> bool {
        now >= self.expires_at
    }

    fn observed(&self) -> Observed {
        Observed::new(self.fence, self.version.into())
    }

    fn lease(&self, now: Instant) -> Lease {
        Lease {
            holder: self.holder.clone(),
            fence: self.fence,
            version: Version::from(self.version),
            duration: self.duration,
            released: self.released,
            ttl: Some(self.expires_at.saturating_since(now).min(self.duration)),
            payload: self.payload.clone(),
        }
    }
}
