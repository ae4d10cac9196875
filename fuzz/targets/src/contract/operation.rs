//! What candidates, operators and time may do.

use std::time::Duration;

use tenure::{
    Fence, Identity, Lease, Payload, Version,
    store::{AcquireRequest, Observed, PlaceRequest, ReleaseRequest, RenewRequest, When},
};

use super::model::Record;
use crate::input::Input;

/// Does not run out during a case.
pub(super) const LONG: Duration = Duration::from_secs(3_000);
/// Runs out soon, and is waited for.
const SHORT: Duration = Duration::from_millis(8);
const PAYLOADS: [&[u8]; 3] = [b"", b"http://10.0.0.7:8080", b"\0'\\\xff"];

/// What is done. `by` counts sessions; the request has the holder of its own, so that sessions are used by others as well.
#[derive(Clone, Debug)]
pub(super) enum Operation {
    Inspect { by: usize },
    Acquire { by: usize, request: AcquireRequest },
    Renew { by: usize, request: RenewRequest },
    Release { by: usize, request: ReleaseRequest },
    Place { by: usize, request: PlaceRequest },
    Depose,
    List,
    Forget,
    Pass(Duration),
}

/// Whom some database might take for each other.
pub(super) fn candidates() -> [Identity; 3] {
    ["a", "A", "a "].map(|name| Identity::new(name).unwrap())
}

/// All records that were ever there, to be claimed when it is too late.
#[derive(Debug, Default)]
pub(super) struct Seen(Vec<Lease>);

impl Seen {
    pub(super) fn remember(&mut self, found: Option<Lease>) {
        self.0.extend(found.filter(|found| self.0.last() != Some(found)));
    }
}

impl Operation {
    pub(super) fn read(
        input: &mut Input<'_>,
        seen: &Seen,
        record: Option<&Record>,
        exact: bool,
    ) -> Self {
        let by = input.below(3);
        let holder = match input.below(4) {
            0 => input.one_of(&candidates()),
            _ => candidates()[by].clone(),
        };
        let mut details = Details { input, seen, record, exact };
        match details.input.below(16) {
            0 => Self::Inspect { by },
            1..=5 => Self::Acquire { by, request: details.acquire(holder) },
            6..=8 => Self::Renew { by, request: details.renew(holder) },
            9 | 10 => Self::Release { by, request: ReleaseRequest::new(holder, details.fence()) },
            11 => Self::Place { by, request: details.place() },
            12 => Self::Depose,
            13 => Self::Forget,
            14 => Self::Pass(details.duration()),
            _ => Self::List,
        }
    }

    /// For how long the lease that it writes is valid, if that is to be waited for.
    pub(super) fn runs_out(&self) -> Option<Duration> {
        let duration = match self {
            Self::Acquire { request, .. } => request.duration,
            Self::Renew { request, .. } => request.duration,
            Self::Place { request, .. } => request.duration,
            _ => return None,
        };
        (duration == SHORT).then_some(SHORT)
    }
}

struct Details<'a, 'b> {
    input: &'a mut Input<'b>,
    seen: &'a Seen,
    record: Option<&'a Record>,
    exact: bool,
}

impl Details<'_, '_> {
    fn acquire(&mut self, holder: Identity) -> AcquireRequest {
        let observed = self.observed();
        let mut request = AcquireRequest::new(holder, observed, self.duration());
        request.when = self.input.one_of(&[When::Unchanged, When::Expired]);
        request.floor = self.floor();
        request.payload = self.payload();
        request
    }

    fn renew(&mut self, holder: Identity) -> RenewRequest {
        let mut request = RenewRequest::new(holder, self.fence(), self.duration());
        request.payload = self.input.flag().then(|| self.payload());
        request
    }

    fn place(&mut self) -> PlaceRequest {
        let mut request = PlaceRequest::new(self.duration());
        request.floor = self.floor();
        request
    }

    /// Mostly what is there, or nothing where nothing is.
    fn observed(&mut self) -> Option<Observed> {
        let now = self.record.map(|record| Observed::new(record.fence, record.version.clone()));
        match self.input.below(8) {
            0..=4 => now,
            5 => None,
            6 => self.earlier().map(|lease| Observed::from(&lease)),
            _ => {
                let earlier = Observed::from(&self.earlier()?);
                let now = now.unwrap_or(earlier.clone());
                let garbage =
                    Version::from_bytes(self.input.one_of(&[b"".as_slice(), b"'", &[0; 9]]));
                Some(self.input.one_of(&[
                    Observed::new(now.fence, earlier.version.clone()),
                    Observed::new(earlier.fence, now.version),
                    Observed::new(now.fence, garbage),
                ]))
            }
        }
    }

    fn earlier(&mut self) -> Option<Lease> {
        let seen = &self.seen.0;
        (!seen.is_empty()).then(|| seen[self.input.below(seen.len())].clone())
    }

    /// Mostly the one that is there.
    fn fence(&mut self) -> Fence {
        let now = self.record.map_or(Fence::MIN, |record| record.fence);
        match self.input.below(8) {
            0..=5 => now,
            6 => self.earlier().map_or(now, |lease| lease.fence),
            _ => Fence::next(Some(now), None, 0).unwrap_or(now),
        }
    }

    fn floor(&mut self) -> Option<Fence> {
        let now = self.record.map_or(Fence::MIN, |record| record.fence);
        match self.input.below(8) {
            0..=3 => None,
            4 => Some(now),
            5 => Fence::try_from(i64::from(now).saturating_add(self.input.below(100) as i64)).ok(),
            6 => self.earlier().map(|lease| lease.fence),
            // There is hardly a number left above it.
            _ => Fence::try_from(i64::MAX - self.input.below(3) as i64).ok(),
        }
    }

    fn duration(&mut self) -> Duration {
        match self.input.below(4) {
            0 => SHORT,
            1 if self.exact => Duration::from_nanos(self.input.number() >> 20),
            _ => LONG,
        }
    }

    fn payload(&mut self) -> Payload {
        self.input.one_of(&PAYLOADS).into()
    }
}
