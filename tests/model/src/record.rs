//! The store: one record, and what the operations make of it.
//!
//! Written from the contract in `tenure::store` and the conformance suite, and on purpose from nothing else: it shares no
//! line with `MemoryStore`, nor with the records of other tests. What it leaves out is what no candidate can notice here:
//! payloads, and a wall clock, so that fences are 1, 2, 3. Who calls is told apart by a [`Caller`], since to themselves all
//! candidates have the same name.

use std::time::Duration;

use tenure::{
    Fence, Lease, Version,
    protocol::{Call, Reply},
    store::{Observed, Outcome, When},
};

use crate::candidate::{another_name, own_name};

/// Who calls the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Caller {
    /// The candidate that lives there.
    At(usize),
    /// One that lives no more. The number tells it from the others of whom something is left.
    Dead(usize),
}

/// What is written in the store, if anything ever was.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Store {
    pub(crate) record: Option<Record>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Record {
    pub(crate) holder: Option<Caller>,
    pub(crate) fence: Fence,
    pub(crate) version: Version,
    duration: Duration,
    pub(crate) released: bool,
    /// How long it is still valid on the store's clock.
    left: Duration,
}

/// What a call may leave in the record.
enum Write {
    Claim { holder: Option<Caller>, fence: Fence, duration: Duration },
    Extend { duration: Duration },
    Release,
}

impl Store {
    /// The store's clock goes on.
    pub(crate) fn pass(&mut self, time: Duration) {
        if let Some(record) = &mut self.record {
            record.left = record.left.saturating_sub(time);
        }
    }

    /// The fence of the term that the call would begin, if it would begin one.
    pub(crate) fn begins(&self, caller: Caller, call: &Call) -> Option<Fence> {
        match self.permits(caller, call)? {
            Write::Claim { holder: Some(_), fence, .. } => Some(fence),
            Write::Claim { .. } | Write::Extend { .. } | Write::Release => None,
        }
    }

    /// Whether the call, whenever it is executed from here on, changes nothing.
    pub(crate) fn refuses_for_good(&self, caller: Caller, call: &Call) -> bool {
        let Some(record) = &self.record else { return false };
        match call {
            Call::Inspect | Call::Place(_) => true,
            // Versions never repeat.
            Call::Acquire(request) => {
                request.observed != Some(Observed::from(&record.lease(caller, false)))
            }
            // Nor do fences, and nothing un-releases a term.
            Call::Renew(request) => !record.is_term(caller, request.fence),
            Call::Release(request) => !record.is_term(caller, request.fence),
        }
    }

    /// Executes a call. What it writes carries `version`; `shows_clock` is whether replies tell how long the lease is valid.
    pub(crate) fn execute(
        &mut self,
        caller: Caller,
        call: &Call,
        version: Version,
        shows_clock: bool,
    ) -> Reply {
        let write = self.permits(caller, call);
        let wrote = write.is_some();
        match (write, &mut self.record) {
            (Some(Write::Claim { holder, fence, duration }), record) => {
                let (released, left) = (false, duration);
                *record = Some(Record { holder, fence, version, duration, released, left });
            }
            (Some(Write::Extend { duration }), Some(record)) => {
                (record.version, record.duration, record.left) = (version, duration, duration);
            }
            (Some(Write::Release), Some(record)) => {
                (record.version, record.released) = (version, true);
            }
            _ => {}
        }
        let lease = self.record.as_ref().map(|record| record.lease(caller, shows_clock));
        let outcome = |lease: Option<Lease>| match lease {
            Some(lease) if wrote => Outcome::Won(lease),
            lease => Outcome::Lost(lease),
        };
        match (call, lease) {
            (Call::Inspect, lease) => Reply::Inspected(lease),
            (Call::Place(_), Some(lease)) => Reply::Placed(lease),
            (Call::Place(_), None) => Reply::Failed,
            (Call::Acquire(_), lease) => Reply::Acquired(outcome(lease)),
            (Call::Renew(_), lease) => Reply::Renewed(outcome(lease)),
            (Call::Release(_), lease) => Reply::Released(outcome(lease)),
        }
    }

    /// An operator ends the term: nobody holds the lease, which runs out like any other.
    pub(crate) fn depose(&mut self, new: Version) {
        if let Some(Record { holder, version, .. }) = &mut self.record {
            (*holder, *version) = (None, new);
        }
    }

    /// What the call would write now.
    fn permits(&self, caller: Caller, call: &Call) -> Option<Write> {
        let found = self.record.as_ref();
        match call {
            Call::Inspect => None,
            Call::Place(request) => found.is_none().then(|| Write::Claim {
                holder: None,
                fence: request.floor.unwrap_or(Fence::MIN),
                duration: request.duration,
            }),
            Call::Acquire(request) => {
                let as_observed = match (found, &request.observed) {
                    (None, None) => true,
                    (Some(record), Some(observed)) => {
                        record.fence == observed.fence && record.version == observed.version
                    }
                    _ => false,
                };
                let in_time = match request.when {
                    When::Expired => found.is_none_or(|record| record.left.is_zero()),
                    When::Unchanged => true,
                };
                let highest = found.map(|record| record.fence).max(request.floor);
                let fence = Fence::try_from(highest.map_or(0, i64::from) + 1).ok()?;
                let (holder, duration) = (Some(caller), request.duration);
                (as_observed && in_time).then_some(Write::Claim { holder, fence, duration })
            }
            Call::Renew(request) => found
                .filter(|record| record.is_term(caller, request.fence))
                .filter(|record| !record.left.is_zero())
                .map(|_| Write::Extend { duration: request.duration }),
            Call::Release(request) => {
                found.filter(|record| record.is_term(caller, request.fence)).map(|_| Write::Release)
            }
        }
    }
}

impl Record {
    fn is_term(&self, holder: Caller, fence: Fence) -> bool {
        self.holder == Some(holder) && self.fence == fence && !self.released
    }

    /// What `caller` is shown, in whose words a lease is its own or another one's.
    fn lease(&self, caller: Caller, shows_clock: bool) -> Lease {
        let name = |holder| if holder == caller { own_name() } else { another_name() };
        let holder = self.holder.map(name);
        let mut lease = Lease::new(holder, self.fence, self.version.clone(), self.duration);
        lease.released = self.released;
        lease.ttl = shows_clock.then_some(self.left);
        lease
    }
}
