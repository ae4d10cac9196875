//! Rules under which everything may happen that can happen together.

use tenure::Expiry;

use crate::{
    fault::FaultKind,
    record::StoreKind,
    script::{Ahead, Rates, Rules},
};

/// Faults that are allowed under any rules, and how often they come.
pub const COMMON: &[(FaultKind, u32)] = &[
    (FaultKind::Rough, 6),
    (FaultKind::Storm, 6),
    (FaultKind::PartitionThere, 4),
    (FaultKind::PartitionBack, 6),
    (FaultKind::PartitionBoth, 4),
    (FaultKind::Outage, 2),
    (FaultKind::Refusal, 2),
    (FaultKind::Freeze, 6),
    (FaultKind::Suspend, 3),
    (FaultKind::Preempt, 6),
    (FaultKind::Unwatched, 1),
    (FaultKind::Crash, 4),
    (FaultKind::Resign, 4),
    (FaultKind::Shutdown, 2),
    (FaultKind::ShutdownWithin, 2),
    (FaultKind::Ineligible, 3),
    (FaultKind::Guard, 4),
    (FaultKind::EndlessGuard, 1),
    (FaultKind::Work, 4),
    (FaultKind::EndlessWork, 2),
    (FaultKind::FalseHint, 3),
    (FaultKind::Depose, 2),
];

/// Rules for everything, for somebody who explores without a plan: which of the faults that exclude each other are in
/// depends on `kind`.
#[must_use]
pub fn anything(kind: u8) -> Rules {
    let observed: &[Expiry] = &[Expiry::Observed];
    let (store, expiry) = match kind % 3 {
        0 => (StoreKind::Database, &[Expiry::Either, Expiry::Observed, Expiry::Both][..]),
        1 => (StoreKind::Revisions, observed),
        _ => (StoreKind::Memory, &[Expiry::Either][..]),
    };
    Rules {
        candidates: (1, 7),
        expiry,
        mixed_expiry: true,
        mixed_leases: true,
        mixed_manners: true,
        store,
        only_floors: false,
        rates: Rates::Covered,
        ahead: Ahead::ALittle,
        faults: COMMON,
        incidents: 120,
    }
}
