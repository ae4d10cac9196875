//! One record, and what may become of it.

use std::{collections::HashSet, time::Duration};

use tenure::{
    Fence, Identity, Lease, Payload, Version,
    store::{AcquireRequest, Observed, When},
};

use super::operation::{LONG, Operation};

/// How long the operations of one case take, at most.
const SLOWEST: Duration = Duration::from_secs(1_500);

/// The record as it has to be.
#[derive(Clone, Debug)]
pub(super) struct Record {
    pub(super) fence: Fence,
    pub(super) version: Version,
    holder: Option<Identity>,
    duration: Duration,
    released: bool,
    payload: Payload,
    /// How long it is still valid.
    left: Duration,
}

/// How an operation has to end.
#[derive(Debug)]
pub(super) enum Verdict {
    Wins(Write),
    Loses,
    /// There is no fence left.
    Fails,
    /// It would have lost, if there were a fence left: a store may say either.
    LosesOrFails,
    /// Nobody has to be told.
    Happens(Option<Record>),
}

/// What a success leaves, but for the version, which the store chooses.
#[derive(Debug)]
pub(super) struct Write {
    /// With the fence, where that stays.
    record: Record,
    /// The least fence that it may have, where there is a new one.
    new_fence: Option<Fence>,
    /// Whether the fence of a new term follows the store's clock.
    follows_clock: bool,
}

impl Verdict {
    pub(super) fn is_won(&self) -> bool {
        matches!(self, Self::Wins(_))
    }
}

#[derive(Debug)]
pub(super) struct Model {
    exact: bool,
    /// Whether the store tells when a lease has run out.
    clock: bool,
    record: Option<Record>,
    /// No version comes twice.
    versions: HashSet<Version>,
    /// The store's clock, as far as its fences have shown it.
    wall_clock: Option<Fence>,
}

impl Model {
    pub(super) fn new(exact: bool, clock: bool) -> Self {
        Self { exact, clock, record: None, versions: HashSet::new(), wall_clock: None }
    }

    pub(super) fn record(&self) -> Option<&Record> {
        self.record.as_ref()
    }

    /// How the operation has to end.
    pub(super) fn verdict(&self, operation: &Operation) -> Verdict {
        let record = self.record.as_ref();
        let term = |holder: &Identity, fence: Fence| {
            record.filter(|record| record.is_term(holder, fence)).cloned()
        };
        match operation {
            Operation::Inspect { .. } | Operation::List => Verdict::Loses,
            Operation::Acquire { request, .. } => self.acquire(request),
            Operation::Renew { request, .. } => {
                let valid = |record: &Record| !self.has_run_out(record);
                let Some(mut record) = term(&request.holder, request.fence).filter(valid) else {
                    return Verdict::Loses;
                };
                record.payload = request.payload.clone().unwrap_or(record.payload);
                record.lasts(request.duration);
                Verdict::wins(record)
            }
            Operation::Release { request, .. } => match term(&request.holder, request.fence) {
                Some(record) => Verdict::wins(Record { released: true, ..record }),
                None => Verdict::Loses,
            },
            Operation::Place { .. } if record.is_some() => Verdict::Loses,
            Operation::Place { request, .. } => {
                let least = request.floor.unwrap_or(Fence::MIN);
                let record = Record::new(None, request.duration, Payload::default());
                Verdict::Wins(Write { record, new_fence: Some(least), follows_clock: false })
            }
            Operation::Depose => match record.cloned() {
                Some(record) => Verdict::wins(Record { holder: None, ..record }),
                None => Verdict::Loses,
            },
            Operation::Forget => Verdict::Happens(None),
            Operation::Pass(time) => {
                let time = if self.exact { *time } else { Duration::ZERO };
                let mut record = record.cloned();
                record.iter_mut().for_each(|record| record.left = record.left.saturating_sub(time));
                Verdict::Happens(record)
            }
        }
    }

    fn acquire(&self, request: &AcquireRequest) -> Verdict {
        let record = self.record.as_ref();
        let now = record.map(|record| Observed::new(record.fence, record.version.clone()));
        let permitted = match (request.when, record) {
            (When::Unchanged, _) | (When::Expired, None) => true,
            (When::Expired, Some(record)) => self.has_run_out(record),
        };
        let observed = request.observed.as_ref().map(|observed| observed.fence);
        let least = Fence::next(observed, request.floor, 0);
        let wins = now == request.observed && permitted;
        let least = match least {
            Some(least) if wins => least,
            Some(_) => return Verdict::Loses,
            None if wins => return Verdict::Fails,
            None => return Verdict::LosesOrFails,
        };
        let holder = Some(request.holder.clone());
        let record = Record::new(holder, request.duration, request.payload.clone());
        Verdict::Wins(Write { record, new_fence: Some(least), follows_clock: true })
    }

    /// Whether the store knows that the lease has run out.
    fn has_run_out(&self, record: &Record) -> bool {
        self.clock && record.left.is_zero()
    }

    /// Takes over what the store has chosen, if it may choose that.
    pub(super) fn wrote(&mut self, write: &Write, lease: &Lease) -> Result<(), String> {
        let mut record = write.record.clone();
        if let Some(least) = write.new_fence {
            self.may_be_new(lease.fence, least, write.follows_clock)?;
            record.fence = lease.fence;
        }
        if !self.versions.insert(lease.version.clone()) {
            return Err(format!("a version comes twice: {lease:?}"));
        }
        record.version = lease.version.clone();
        self.becomes(Some(record));
        self.shows(Some(lease))
    }

    /// A new fence is the least possible one, or the store's clock, which does not go back.
    fn may_be_new(&mut self, fence: Fence, least: Fence, clock: bool) -> Result<(), String> {
        if fence == least && (self.wall_clock <= Some(fence) || !clock) {
            return Ok(());
        }
        if self.exact || fence <= least || clock && self.wall_clock > Some(fence) {
            return Err(format!("{fence} instead of {least} or later"));
        }
        self.wall_clock = self.wall_clock.max(Some(fence));
        Ok(())
    }

    pub(super) fn becomes(&mut self, record: Option<Record>) {
        self.record = record;
    }

    pub(super) fn pass(&mut self, time: Duration) {
        if let Some(record) = &mut self.record {
            record.left = record.left.saturating_sub(time);
        }
    }

    /// Whether that is the record.
    pub(super) fn shows(&self, found: Option<&Lease>) -> Result<(), String> {
        let (record, lease) = match (&self.record, found) {
            (None, None) => return Ok(()),
            (Some(record), Some(lease)) => (record, lease),
            (record, found) => return Err(format!("{found:?} in place of {record:?}")),
        };
        let same = record.holder == lease.holder
            && record.fence == lease.fence
            && record.version == lease.version
            && record.duration == lease.duration
            && record.released == lease.released
            && record.payload == lease.payload;
        if !same || !self.may_be_left(record, lease.ttl) {
            return Err(format!("{lease:?} in place of {record:?}"));
        }
        Ok(())
    }

    fn may_be_left(&self, record: &Record, ttl: Option<Duration>) -> bool {
        match ttl {
            None => !self.clock,
            Some(ttl) if self.exact => ttl == record.left,
            // What is written for a short time has yet to be waited for.
            Some(ttl) if record.duration != LONG => ttl <= record.left,
            Some(ttl) => ttl <= record.duration && ttl + SLOWEST >= record.left,
        }
    }
}

impl Verdict {
    fn wins(record: Record) -> Self {
        Self::Wins(Write { record, new_fence: None, follows_clock: false })
    }
}

impl Record {
    fn new(holder: Option<Identity>, duration: Duration, payload: Payload) -> Self {
        let version = Version::from_bytes(&[]);
        let mut record = Self {
            fence: Fence::MIN,
            version,
            holder,
            duration,
            released: false,
            payload,
            left: duration,
        };
        record.lasts(duration);
        record
    }

    fn lasts(&mut self, duration: Duration) {
        self.duration = duration;
        self.left = duration;
    }

    fn is_term(&self, holder: &Identity, fence: Fence) -> bool {
        !self.released && self.holder.as_ref() == Some(holder) && self.fence == fence
    }
}
