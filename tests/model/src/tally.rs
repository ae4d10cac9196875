//! What was explored: an exploration in which the interesting never happens proves nothing.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

/// Something that must have happened somewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mark {
    TakeOver,
    HandOver,
    LostReply,
    LateExecution,
    LateDuplicate,
    WonForNothing,
    Unaware,
    Extended,
    Expired,
    Lost,
    Resigned,
    ShutDown,
    LeaderCrashed,
    Succeeded,
    Outlived,
    GuardSlippedIn,
    Recovered,
}

impl Mark {
    /// All of them, in their order, and what they are called.
    pub(crate) const ALL: &[(Self, &'static str)] = &[
        (Self::TakeOver, "a lease that ran out is taken over"),
        (Self::HandOver, "a lease that was given back is taken over"),
        (Self::LostReply, "a lease is won whose reply was lost, and won anew"),
        (Self::LateExecution, "a write is executed after its sender gave up"),
        (Self::LateDuplicate, "the sender of such a write has sent another one since"),
        (Self::WonForNothing, "an acquire is won that starts nothing"),
        (Self::Unaware, "somebody leads beside one that does not know yet that its term is over"),
        (Self::Extended, "a term is extended"),
        (Self::Expired, "a term expires"),
        (Self::Lost, "a term is lost"),
        (Self::Resigned, "a term is resigned"),
        (Self::ShutDown, "a term ends with its candidate"),
        (Self::LeaderCrashed, "a leader crashes"),
        (Self::Succeeded, "the dead are succeeded"),
        (Self::Outlived, "guarded work outlives its term"),
        (Self::GuardSlippedIn, "a guard is taken while its term is being cancelled"),
        (Self::Recovered, "faults stop, and somebody leads"),
    ];

    pub(crate) fn name(self) -> &'static str {
        Self::ALL[self as usize].1
    }
}

/// How often each mark was passed. Shared by all threads of a search; no part of any state.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tally(Arc<[AtomicU64; Mark::ALL.len()]>);

impl Tally {
    pub(crate) fn add(&self, mark: Mark) {
        // Only ever read as a number, by which nothing else is known.
        self.0[mark as usize].fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn count(&self, mark: Mark) -> u64 {
        self.0[mark as usize].load(Ordering::Relaxed)
    }
}
