//! The lease record, with the contract of a store to the letter.

use std::time::Duration;

use tenure::{
    Fence, Identity, Lease, Version,
    protocol::{Call, Reply},
    store::{AcquireRequest, Observed, Outcome, PlaceRequest, ReleaseRequest, RenewRequest, When},
};

use crate::time::{Moment, Skew, StoreClock};

/// What kind of store keeps the record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(clippy::exhaustive_enums)] // the kinds of stores there are
pub enum StoreKind {
    /// It has a clock by which leases expire, and which fences follow: PostgreSQL, MariaDB, SQLite.
    Database,
    /// The same, but fences are counted 1, 2, 3: `MemoryStore`.
    Memory,
    /// It shows no clock and compares revisions: NATS. Fences follow the time at which a value was stored all the same.
    Revisions,
}

/// A record as it stands in the store.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Row {
    /// What a session reads, but for how long it is still valid.
    pub lease: Lease,
    /// In nanoseconds of the store's clock, which can be set back.
    pub expires_at: i64,
}

/// What a write was.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums)] // an audit must know them all
pub enum Write {
    /// A record was put where there was none.
    Placed,
    /// A new term.
    Acquired {
        /// What the holder believed to be there.
        observed: Option<Observed>,
        /// What else it wanted.
        when: When,
    },
    /// A term was extended.
    Renewed,
    /// A term was given back.
    Released,
    /// An operator took the holder out.
    Deposed,
    /// An operator deleted the record.
    Deleted,
    /// The store was restored from a backup.
    Restored,
}

/// A line of the record's own log.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Commit {
    /// When, in true time.
    pub at: Moment,
    /// What the store's clock showed.
    pub store_time: i64,
    /// What was done.
    pub write: Write,
    /// The record afterwards.
    pub row: Option<Row>,
}

/// A record, its clock, and its log.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Store {
    kind: StoreKind,
    clock: StoreClock,
    row: Option<Row>,
    /// The last version given out.
    version: u64,
    log: Vec<Commit>,
}

impl Store {
    /// A store without a record.
    #[must_use]
    pub fn new(kind: StoreKind, clock: Skew) -> Self {
        Self { kind, clock: StoreClock::new(clock), row: None, version: 0, log: Vec::new() }
    }

    /// Everything that was ever written, in this order.
    #[must_use]
    pub fn log(&self) -> &[Commit] {
        &self.log
    }

    /// The record as it is.
    #[must_use]
    pub fn row(&self) -> Option<&Row> {
        self.row.as_ref()
    }

    /// The highest fence that there ever was.
    #[must_use]
    pub fn highest_fence(&self) -> Option<Fence> {
        self.log.iter().filter_map(|commit| commit.row.as_ref()).map(|row| row.lease.fence).max()
    }

    /// Does what a call asks for.
    pub fn execute(&mut self, call: &Call, at: Moment) -> Reply {
        let now = self.clock.shows(at);
        match call {
            Call::Inspect => Reply::Inspected(self.read(now)),
            Call::Place(request) => Reply::Placed(self.place(request, at, now)),
            Call::Acquire(request) => match self.acquire(request, at, now) {
                Some(outcome) => Reply::Acquired(outcome),
                None => Reply::Failed,
            },
            Call::Renew(request) => Reply::Renewed(self.renew(request, at, now)),
            Call::Release(request) => Reply::Released(self.release(request, at, now)),
        }
    }

    fn place(&mut self, request: &PlaceRequest, at: Moment, now: i64) -> Lease {
        if let Some(row) = &self.row {
            return self.lease(row, now);
        }
        let fence = request.floor.unwrap_or(Fence::MIN);
        let version = self.next_version(now);
        let lease = Lease::new(None, fence, version, request.duration);
        self.put(lease, now, Write::Placed, at)
    }

    fn acquire(&mut self, request: &AcquireRequest, at: Moment, now: i64) -> Option<Outcome> {
        let found = self.row.as_ref();
        let as_observed = found.map(|row| Observed::from(&row.lease)) == request.observed;
        let permitted = match (request.when, self.kind) {
            (When::Unchanged, _) => true,
            (When::Expired, StoreKind::Revisions) => found.is_none(),
            (When::Expired, _) => found.is_none_or(|row| row.expires_at <= now),
        };
        if !as_observed || !permitted {
            return Some(Outcome::Lost(self.read(now)));
        }
        let wall_clock_ms = match self.kind {
            StoreKind::Memory => 0,
            StoreKind::Database | StoreKind::Revisions => now / 1_000_000,
        };
        let fence = Fence::next(found.map(|row| row.lease.fence), request.floor, wall_clock_ms)?;
        let version = self.next_version(now);
        let holder = Some(request.holder.clone());
        let mut lease = Lease::new(holder, fence, version, request.duration);
        lease.payload = request.payload.clone();
        let write = Write::Acquired { observed: request.observed.clone(), when: request.when };
        Some(Outcome::Won(self.put(lease, now, write, at)))
    }

    fn renew(&mut self, request: &RenewRequest, at: Moment, now: i64) -> Outcome {
        let version = self.next_version(now);
        let has_clock = self.kind != StoreKind::Revisions;
        let term = self.term(&request.holder, request.fence);
        let Some(row) = term.filter(|row| !has_clock || now < row.expires_at) else {
            return Outcome::Lost(self.read(now));
        };
        let mut lease = row.lease.clone();
        lease.version = version;
        lease.duration = request.duration;
        if let Some(payload) = &request.payload {
            lease.payload = payload.clone();
        }
        Outcome::Won(self.put(lease, now, Write::Renewed, at))
    }

    /// Also of a lease that has expired.
    fn release(&mut self, request: &ReleaseRequest, at: Moment, now: i64) -> Outcome {
        let version = self.next_version(now);
        let Some(row) = self.term(&request.holder, request.fence) else {
            return Outcome::Lost(self.read(now));
        };
        let mut row = row.clone();
        row.lease.version = version;
        row.lease.released = true;
        let lease = self.lease(&row, now);
        self.commit(Some(row), Write::Released, at, now);
        Outcome::Won(lease)
    }

    /// An operator's step-down.
    pub fn depose(&mut self, at: Moment) -> Option<Lease> {
        let now = self.clock.shows(at);
        let version = self.next_version(now);
        let mut row = self.row.clone()?;
        row.lease.holder = None;
        row.lease.version = version;
        let lease = self.lease(&row, now);
        self.commit(Some(row), Write::Deposed, at, now);
        Some(lease)
    }

    /// A careless operator's mistake.
    pub fn delete(&mut self, at: Moment) {
        let now = self.clock.shows(at);
        self.commit(None, Write::Deleted, at, now);
    }

    /// Puts the record back as it was before the last `writes` writes.
    pub fn restore(&mut self, writes: usize, at: Moment) {
        let now = self.clock.shows(at);
        let last_kept = self.log.len().checked_sub(writes + 1);
        if let Some(backup) = last_kept.map(|last| self.log[last].row.clone()) {
            self.commit(backup, Write::Restored, at, now);
        }
    }

    /// Sets the clock ahead, or back.
    pub fn set_clock_ahead(&mut self, nanos: i64) {
        self.clock.set_ahead(nanos);
    }

    fn term(&self, holder: &Identity, fence: Fence) -> Option<&Row> {
        let is_theirs = |row: &&Row| row.lease.is_held_by(holder) && row.lease.fence == fence;
        self.row.as_ref().filter(is_theirs)
    }

    fn read(&self, now: i64) -> Option<Lease> {
        self.row.as_ref().map(|row| self.lease(row, now))
    }

    fn lease(&self, row: &Row, now: i64) -> Lease {
        let mut lease = row.lease.clone();
        if self.kind != StoreKind::Revisions {
            let left = u64::try_from(row.expires_at.saturating_sub(now)).unwrap_or(0);
            lease.ttl = Some(Duration::from_nanos(left).min(lease.duration));
        }
        lease
    }

    fn put(&mut self, lease: Lease, now: i64, write: Write, at: Moment) -> Lease {
        let duration = i64::try_from(lease.duration.as_nanos()).unwrap_or(i64::MAX);
        let row = Row { lease, expires_at: now.saturating_add(duration) };
        let lease = self.lease(&row, now);
        self.commit(Some(row), write, at, now);
        lease
    }

    fn commit(&mut self, row: Option<Row>, write: Write, at: Moment, store_time: i64) {
        self.row.clone_from(&row);
        self.log.push(Commit { at, store_time, write, row });
    }

    /// The clock in microseconds, and above every version that was given out; on a store that compares revisions, the
    /// next one and something that no other write has.
    fn next_version(&mut self, now: i64) -> Version {
        let micros = u64::try_from(now / 1_000).unwrap_or(0);
        match self.kind {
            StoreKind::Database | StoreKind::Memory => {
                self.version = (self.version + 1).max(micros);
                Version::from(self.version)
            }
            StoreKind::Revisions => {
                self.version += 1;
                let nonce = self.version.wrapping_mul(0x9e37_79b9_7f4a_7c15);
                let version = [self.version.to_be_bytes(), nonce.to_be_bytes()].concat();
                Version::from_bytes(&version)
            }
        }
    }
}
