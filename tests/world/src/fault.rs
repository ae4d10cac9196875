//! What befalls candidates, machines, the network and the store.

use std::time::Duration;

use crate::{network::Weather, time::Moment};

/// Something that happens at a certain moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_structs)] // a schedule is data
pub struct Incident {
    /// When.
    pub at: Moment,
    /// What.
    pub fault: Fault,
}

/// Whom it strikes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums)] // a schedule is data
pub enum Whom {
    /// The candidate in this place.
    Slot(usize),
    /// Whoever leads then, or led last.
    Leader,
}

/// Which way nothing passes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums)] // a schedule is data
pub enum Way {
    /// Requests are lost.
    There,
    /// Answers, and hints.
    Back,
    /// All of them.
    Both,
}

/// A fault, or something that somebody asks for at an awkward time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums)] // a schedule is data
pub enum Fault {
    /// The network changes.
    Weather {
        /// What it is like.
        weather: Weather,
        /// For how long.
        lasts: Duration,
    },
    /// One candidate does not reach the store.
    Partition {
        /// Which.
        whom: Whom,
        /// In which direction.
        way: Way,
        /// For how long.
        lasts: Duration,
    },
    /// The store is away.
    Outage {
        /// It says so, instead of saying nothing.
        refuses: bool,
        /// For how long.
        lasts: Duration,
    },
    /// Nothing of one process runs.
    Freeze {
        /// Whose.
        whom: Whom,
        /// For how long.
        lasts: Duration,
    },
    /// Everything on one machine stands still, and its connections are lost.
    Suspend {
        /// Which machine.
        machine: usize,
        /// For how long.
        lasts: Duration,
    },
    /// The elector's thread is not run just when something has changed; all other threads are.
    Preempt {
        /// Whose.
        whom: Whom,
        /// For how long.
        lasts: Duration,
    },
    /// The system has no thread for the watchdog when the next term begins.
    Unwatched {
        /// Whose.
        whom: Whom,
    },
    /// A process dies.
    Crash {
        /// Whose.
        whom: Whom,
        /// When another one takes its place, if ever.
        back_after: Option<Duration>,
    },
    /// Somebody asks the elector to hand over.
    Resign {
        /// Which.
        whom: Whom,
    },
    /// Somebody asks the elector to stop.
    Shutdown {
        /// Which.
        whom: Whom,
        /// How long its work may take; the drain timeout if that is not said.
        within: Option<Duration>,
        /// When another process takes its place, once it has stopped.
        back_after: Duration,
    },
    /// The candidate's eligibility changes, and changes back.
    Ineligible {
        /// Whose.
        whom: Whom,
        /// For how long.
        lasts: Duration,
    },
    /// Work takes a guard of the term.
    Guard {
        /// Whose term.
        whom: Whom,
        /// For how long; for ever if that is not said.
        lasts: Option<Duration>,
    },
    /// Work comes into flight.
    Work {
        /// In whose term.
        whom: Whom,
        /// For how long; until the term ends if that is not said.
        lasts: Option<Duration>,
    },
    /// The store says that something has changed, though nothing has.
    FalseHint {
        /// To whom.
        whom: Whom,
    },
    /// An operator takes the holder out of the record.
    Depose,
    /// An operator deletes the record.
    Delete,
    /// The store is away for longer than any lease, and comes back as it was some writes ago.
    Restore {
        /// How many writes are lost.
        writes: usize,
        /// How long it is away, beyond the longest lease.
        lasts: Duration,
    },
    /// The store's clock is set ahead, or back.
    SetClock {
        /// By how many milliseconds ahead.
        ahead_ms: i64,
    },
}

/// The kinds of faults, to choose from and to count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(clippy::exhaustive_enums)] // the faults that there are
#[allow(missing_docs)] // each is that of `Fault` with this name
pub enum FaultKind {
    Rough,
    Storm,
    PartitionThere,
    PartitionBack,
    PartitionBoth,
    Outage,
    Refusal,
    Freeze,
    Suspend,
    Preempt,
    Unwatched,
    Crash,
    Resign,
    Shutdown,
    ShutdownWithin,
    Ineligible,
    Guard,
    EndlessGuard,
    Work,
    EndlessWork,
    FalseHint,
    Depose,
    Delete,
    Restore,
    ClockAhead,
    ClockBack,
}

impl FaultKind {
    /// All of them.
    pub const ALL: [Self; 26] = [
        Self::Rough,
        Self::Storm,
        Self::PartitionThere,
        Self::PartitionBack,
        Self::PartitionBoth,
        Self::Outage,
        Self::Refusal,
        Self::Freeze,
        Self::Suspend,
        Self::Preempt,
        Self::Unwatched,
        Self::Crash,
        Self::Resign,
        Self::Shutdown,
        Self::ShutdownWithin,
        Self::Ineligible,
        Self::Guard,
        Self::EndlessGuard,
        Self::Work,
        Self::EndlessWork,
        Self::FalseHint,
        Self::Depose,
        Self::Delete,
        Self::Restore,
        Self::ClockAhead,
        Self::ClockBack,
    ];
}

impl Fault {
    /// Its kind.
    #[must_use]
    pub fn kind(&self) -> FaultKind {
        match self {
            Self::Weather { weather: Weather::Storm, .. } => FaultKind::Storm,
            Self::Weather { .. } => FaultKind::Rough,
            Self::Partition { way: Way::There, .. } => FaultKind::PartitionThere,
            Self::Partition { way: Way::Back, .. } => FaultKind::PartitionBack,
            Self::Partition { way: Way::Both, .. } => FaultKind::PartitionBoth,
            Self::Outage { refuses: true, .. } => FaultKind::Refusal,
            Self::Outage { .. } => FaultKind::Outage,
            Self::Freeze { .. } => FaultKind::Freeze,
            Self::Suspend { .. } => FaultKind::Suspend,
            Self::Preempt { .. } => FaultKind::Preempt,
            Self::Unwatched { .. } => FaultKind::Unwatched,
            Self::Crash { .. } => FaultKind::Crash,
            Self::Resign { .. } => FaultKind::Resign,
            Self::Shutdown { within: Some(_), .. } => FaultKind::ShutdownWithin,
            Self::Shutdown { .. } => FaultKind::Shutdown,
            Self::Ineligible { .. } => FaultKind::Ineligible,
            Self::Guard { lasts: None, .. } => FaultKind::EndlessGuard,
            Self::Guard { .. } => FaultKind::Guard,
            Self::Work { lasts: None, .. } => FaultKind::EndlessWork,
            Self::Work { .. } => FaultKind::Work,
            Self::FalseHint { .. } => FaultKind::FalseHint,
            Self::Depose => FaultKind::Depose,
            Self::Delete => FaultKind::Delete,
            Self::Restore { .. } => FaultKind::Restore,
            Self::SetClock { ahead_ms } if *ahead_ms < 0 => FaultKind::ClockBack,
            Self::SetClock { .. } => FaultKind::ClockAhead,
        }
    }
}
