//! The protocol on virtual time: each row of the table of phases, each finer point, and how long everything takes.
//!
//! [`candidate`] drives one protocol whose store is the test itself; [`world`] drives several against a model of a store.
//! Both check what must hold in every step, whatever the test is about.

pub(super) mod candidate;
pub(super) mod database;
pub(super) mod world;

mod claiming;
mod following;
mod holding;
mod releasing;
mod spacing;
mod stopping;
mod surviving;
mod worst_cases;

use std::time::Duration;

use super::{Expiry, Jitter, Timing};
use crate::lease::{Fence, Identity, Lease, Version};

/// Half way: a period is itself, and 3 ms are added to an expiry.
pub(super) const MIDDLE: Jitter = Jitter::new(1 << 15);

pub(super) const fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

/// The timings that follow from a lease of 15 s.
pub(super) fn timing() -> Timing {
    Timing::builder().build().unwrap()
}

pub(super) fn judging_by(expiry: Expiry) -> Timing {
    Timing::builder().expiry(expiry).build().unwrap()
}

pub(super) fn fence(n: i64) -> Fence {
    Fence::try_from(n).unwrap()
}

pub(super) fn identity(name: &str) -> Identity {
    Identity::new(name).unwrap()
}

/// A lease of 15 s, all of which is left on the store's clock.
pub(super) fn lease(holder: &str, number: i64, version: u64) -> Lease {
    let duration = Duration::from_secs(15);
    let mut lease =
        Lease::new(Some(identity(holder)), fence(number), Version::from(version), duration);
    lease.ttl = Some(duration);
    lease
}

pub(super) fn released(mut lease: Lease) -> Lease {
    lease.released = true;
    lease
}

pub(super) fn with_ttl(mut lease: Lease, ttl: impl Into<Option<Duration>>) -> Lease {
    lease.ttl = ttl.into();
    lease
}

/// An unheld record, as it is placed and as an operator's step-down leaves it.
pub(super) fn unheld(mut lease: Lease) -> Lease {
    lease.holder = None;
    lease
}
