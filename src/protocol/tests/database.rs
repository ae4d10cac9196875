//! A model of a store: one record, with the contract of a store to the letter, and a clock of its own.

use std::time::Duration;

use crate::{
    instant::Instant,
    lease::{Fence, Identity, Lease, Version},
    protocol::{Call, Reply},
    store::{AcquireRequest, Observed, Outcome, PlaceRequest, When},
};

/// A clock that started some time ago and runs faster or slower than real time.
#[derive(Clone, Copy, Debug)]
pub(in crate::protocol) struct Skew {
    pub(in crate::protocol) ahead: Duration,
    /// Parts per million by which it is faster.
    pub(in crate::protocol) ppm: i32,
}

impl Skew {
    pub(in crate::protocol) const NONE: Self = Self { ahead: Duration::ZERO, ppm: 0 };

    pub(super) fn shows(self, real: Duration) -> Instant {
        let nanos = real.as_nanos() * self.rate() / 1_000_000;
        Instant::ORIGIN + self.ahead + Duration::from_nanos(u64::try_from(nanos).unwrap())
    }

    /// The first instant of real time at which it shows `local`.
    pub(super) fn reaches(self, local: Instant) -> Duration {
        let nanos = u128::from((local - self.ahead).as_nanos()) * 1_000_000;
        Duration::from_nanos(u64::try_from(nanos.div_ceil(self.rate())).unwrap_or(u64::MAX))
    }

    fn rate(self) -> u128 {
        u128::from(1_000_000_u32.checked_add_signed(self.ppm).unwrap())
    }
}

/// One record, with the contract of a store to the letter.
#[derive(Clone, Debug)]
pub(in crate::protocol) struct Database {
    pub(in crate::protocol) record: Option<Record>,
    clock: Skew,
    /// How far an operator has moved its clock, in nanoseconds.
    moved: i128,
    version: u64,
}

#[derive(Clone, Debug)]
pub(in crate::protocol) struct Record {
    pub(super) lease: Lease,
    /// In nanoseconds of the store's clock, which may be set back below its origin.
    expires_at: i128,
}

impl Database {
    pub(super) fn new(clock: Skew) -> Self {
        Self { record: None, clock, moved: 0, version: 0 }
    }

    pub(super) fn execute(&mut self, call: &Call, real: Duration) -> Reply {
        let now = self.now(real);
        match call {
            Call::Inspect => Reply::Inspected(self.lease(now)),
            Call::Place(request) => Reply::Placed(self.place(request, now)),
            Call::Acquire(request) => Reply::Acquired(self.acquire(request, now)),
            Call::Renew(request) => Reply::Renewed(self.write_if(now, |record| {
                let is_theirs = is_term(record, &request.holder, request.fence);
                (is_theirs && now < record.expires_at).then(|| {
                    record.expires_at = now + nanos(request.duration);
                    record.lease.duration = request.duration;
                })
            })),
            Call::Release(request) => Reply::Released(self.write_if(now, |record| {
                is_term(record, &request.holder, request.fence)
                    .then(|| record.lease.released = true)
            })),
        }
    }

    /// The record as it is now.
    pub(super) fn read(&self, real: Duration) -> Option<Lease> {
        self.lease(self.now(real))
    }

    /// An operator's step-down.
    pub(super) fn depose(&mut self) {
        let version = self.next_version();
        if let Some(record) = &mut self.record {
            record.lease.holder = None;
            record.lease.version = version;
        }
    }

    /// Sets the clock to another time.
    pub(super) fn move_clock(&mut self, by: Duration, back: bool) {
        self.moved += if back { -nanos(by) } else { nanos(by) };
    }

    fn place(&mut self, request: &PlaceRequest, now: i128) -> Lease {
        if self.record.is_none() {
            let fence = request.floor.unwrap_or(Fence::MIN);
            self.put(None, fence, request.duration, now);
        }
        self.lease(now).unwrap()
    }

    fn acquire(&mut self, request: &AcquireRequest, now: i128) -> Outcome {
        let found = self.record.as_ref();
        let is_as_observed = found.map(|r| Observed::from(&r.lease)) == request.observed;
        let is_permitted = match request.when {
            When::Expired => found.is_none_or(|record| now >= record.expires_at),
            When::Unchanged => true,
        };
        if !is_as_observed || !is_permitted {
            return Outcome::Lost(self.lease(now));
        }
        let wall_clock_ms = i64::try_from(now / 1_000_000).unwrap();
        let known = found.map(|record| record.lease.fence);
        let fence = Fence::next(known, request.floor, wall_clock_ms).unwrap();
        let holder = Some(request.holder.clone());
        self.put(holder, fence, request.duration, now);
        Outcome::Won(self.lease(now).unwrap())
    }

    fn write_if(&mut self, now: i128, write: impl FnOnce(&mut Record) -> Option<()>) -> Outcome {
        let version = self.next_version();
        match self.record.as_mut().and_then(|record| write(record).map(|()| record)) {
            Some(record) => {
                record.lease.version = version;
                Outcome::Won(self.lease(now).unwrap())
            }
            None => Outcome::Lost(self.lease(now)),
        }
    }

    fn put(&mut self, holder: Option<Identity>, fence: Fence, duration: Duration, now: i128) {
        let lease = Lease::new(holder, fence, self.next_version(), duration);
        let expires_at = now + nanos(duration);
        self.record = Some(Record { lease, expires_at });
    }

    fn lease(&self, now: i128) -> Option<Lease> {
        let record = self.record.as_ref()?;
        let left = u64::try_from((record.expires_at - now).max(0)).unwrap();
        let mut lease = record.lease.clone();
        lease.ttl = Some(Duration::from_nanos(left).min(lease.duration));
        Some(lease)
    }

    fn next_version(&mut self) -> Version {
        self.version += 1;
        self.version.into()
    }

    fn now(&self, real: Duration) -> i128 {
        i128::from(self.clock.shows(real).as_nanos()) + self.moved
    }
}

fn is_term(record: &Record, holder: &Identity, fence: Fence) -> bool {
    record.lease.is_held_by(holder) && record.lease.fence == fence
}

fn nanos(duration: Duration) -> i128 {
    i128::try_from(duration.as_nanos()).unwrap()
}
