//! The campaigns: what is tried, each on its own ground.

use tenure::Expiry;
use tenure_world::{Ahead, COMMON, FaultKind, Rates, Rules, StoreKind};

/// Schedules of one kind.
#[derive(Debug)]
pub(crate) struct Campaign {
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
    pub(crate) rules: Rules,
}

const EVERY_RULE: &[Expiry] = &[Expiry::Either, Expiry::Observed, Expiry::Both];

/// What most campaigns have in common.
const BASE: Rules = Rules {
    candidates: (2, 7),
    expiry: &[Expiry::Either],
    mixed_expiry: false,
    mixed_leases: false,
    mixed_manners: false,
    store: StoreKind::Database,
    only_floors: false,
    rates: Rates::Covered,
    ahead: Ahead::ALittle,
    faults: COMMON,
    incidents: 120,
};

pub(crate) const CAMPAIGNS: &[Campaign] = &[
    Campaign {
        name: "five",
        about: "five candidates alike, clocks as good as the printed worst cases assume",
        rules: Rules { candidates: (5, 5), rates: Rates::Printed, ..BASE },
    },
    Campaign {
        name: "either",
        about: "the store's clock or one's own eyes say that a lease has expired",
        rules: BASE,
    },
    Campaign {
        name: "observed",
        about: "one's own eyes alone",
        rules: Rules { expiry: &[Expiry::Observed], ..BASE },
    },
    Campaign {
        name: "both",
        about: "the clock and one's own eyes",
        rules: Rules { expiry: &[Expiry::Both], ..BASE },
    },
    Campaign {
        name: "mixed-rules",
        about: "each candidate has a rule of its own",
        rules: Rules { expiry: EVERY_RULE, mixed_expiry: true, ..BASE },
    },
    Campaign {
        name: "mixed-leases",
        about: "leases from 6 to 30 s side by side, observers, candidates that never release",
        rules: Rules { expiry: EVERY_RULE, mixed_leases: true, mixed_manners: true, ..BASE },
    },
    Campaign {
        name: "nats",
        about: "a store without a clock, whose record is lost now and then",
        rules: Rules {
            expiry: &[Expiry::Observed],
            mixed_leases: true,
            store: StoreKind::Revisions,
            ahead: Ahead::AnyFar,
            faults: WITH_DELETION_AND_CLOCK_AHEAD,
            ..BASE
        },
    },
    Campaign {
        name: "memory",
        about: "fences are counted 1, 2, 3",
        rules: Rules { store: StoreKind::Memory, mixed_manners: true, ..BASE },
    },
    Campaign {
        name: "floors",
        about: "fences are counted 1, 2, 3, and the record is lost or comes back as it was before",
        rules: Rules {
            expiry: EVERY_RULE,
            mixed_expiry: true,
            store: StoreKind::Memory,
            only_floors: true,
            faults: WITH_LOSSES,
            ..BASE
        },
    },
    Campaign {
        name: "deletion",
        about: "the record is deleted",
        rules: Rules { expiry: EVERY_RULE, mixed_leases: true, faults: WITH_DELETION, ..BASE },
    },
    Campaign {
        name: "restore",
        about: "the store is away for a lease and comes back as it was before",
        rules: Rules { expiry: EVERY_RULE, mixed_expiry: true, faults: WITH_RESTORE, ..BASE },
    },
    Campaign {
        name: "clock-jumps",
        about: "the store's clock is set by hours, ahead and back",
        rules: Rules {
            expiry: &[Expiry::Observed, Expiry::Both],
            mixed_expiry: true,
            ahead: Ahead::AnyFar,
            faults: WITH_CLOCK,
            ..BASE
        },
    },
    Campaign {
        name: "clock-steps",
        about: "the store's clock is set back, and ahead by less than the margin",
        rules: Rules { rates: Rates::Halved, faults: WITH_CLOCK, ..BASE },
    },
    Campaign {
        name: "one-node",
        about: "nobody else contends",
        rules: Rules { candidates: (1, 1), expiry: EVERY_RULE, mixed_expiry: true, ..BASE },
    },
    Campaign {
        name: "rolling-restart",
        about: "all candidates are replaced one after another, some with other leases",
        rules: Rules { mixed_leases: true, faults: RESTARTS, incidents: 160, ..BASE },
    },
    Campaign {
        name: "drains",
        about: "hand-overs with work that takes its time, or never ends",
        rules: Rules { mixed_manners: true, faults: HAND_OVERS, incidents: 160, ..BASE },
    },
];

const WITH_DELETION: &[(FaultKind, u32)] =
    &with::<1, { COMMON.len() + 1 }>([(FaultKind::Delete, 8)]);
const WITH_RESTORE: &[(FaultKind, u32)] =
    &with::<1, { COMMON.len() + 1 }>([(FaultKind::Restore, 6)]);
const WITH_LOSSES: &[(FaultKind, u32)] =
    &with::<2, { COMMON.len() + 2 }>([(FaultKind::Delete, 6), (FaultKind::Restore, 6)]);
const WITH_CLOCK: &[(FaultKind, u32)] =
    &with::<2, { COMMON.len() + 2 }>([(FaultKind::ClockAhead, 6), (FaultKind::ClockBack, 4)]);
const WITH_DELETION_AND_CLOCK_AHEAD: &[(FaultKind, u32)] =
    &with::<2, { COMMON.len() + 2 }>([(FaultKind::Delete, 6), (FaultKind::ClockAhead, 4)]);

const RESTARTS: &[(FaultKind, u32)] = &[
    (FaultKind::Shutdown, 10),
    (FaultKind::ShutdownWithin, 6),
    (FaultKind::Crash, 6),
    (FaultKind::Rough, 3),
    (FaultKind::Storm, 2),
    (FaultKind::Work, 6),
    (FaultKind::Guard, 4),
    (FaultKind::PartitionBack, 2),
];

const HAND_OVERS: &[(FaultKind, u32)] = &[
    (FaultKind::Guard, 10),
    (FaultKind::EndlessGuard, 1),
    (FaultKind::Work, 8),
    (FaultKind::EndlessWork, 3),
    (FaultKind::Resign, 8),
    (FaultKind::Ineligible, 6),
    (FaultKind::Shutdown, 4),
    (FaultKind::ShutdownWithin, 4),
    (FaultKind::Preempt, 6),
    (FaultKind::Freeze, 2),
    (FaultKind::Rough, 2),
    (FaultKind::PartitionBack, 2),
    (FaultKind::Depose, 2),
];

/// The common faults, and these.
const fn with<const M: usize, const N: usize>(
    more: [(FaultKind, u32); M],
) -> [(FaultKind, u32); N] {
    assert!(N == M + COMMON.len(), "room for all of them");
    let mut all = [COMMON[0]; N];
    let mut index = 0;
    while index < N {
        all[index] = if index < M { more[index] } else { COMMON[index - M] };
        index += 1;
    }
    all
}
