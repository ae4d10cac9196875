//! What a picture shows.

use std::time::Duration;

/// What happened in one election, on one clock. All times count from its start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[allow(clippy::exhaustive_structs)]
pub struct Picture {
    /// Above the picture.
    pub title: String,
    /// Below the title.
    pub about: String,
    /// Until when the election was watched.
    pub length: Duration,
    /// Candidates, from top to bottom.
    pub lanes: Vec<Lane>,
    /// What was broken.
    pub faults: Vec<Fault>,
    /// When nobody led.
    pub gaps: Vec<Gap>,
}

/// A candidate.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[allow(clippy::exhaustive_structs)]
pub struct Lane {
    /// Its name.
    pub name: String,
    /// When it led.
    pub terms: Vec<Term>,
    /// What it asked of its store.
    pub calls: Vec<Call>,
    /// When its process ran.
    pub alive: Vec<(Duration, Duration)>,
}

/// A term of a leader.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[allow(clippy::exhaustive_structs)]
pub struct Term {
    /// Its fence.
    pub fence: i64,
    /// From here on it was live.
    pub from: Duration,
    /// Until here.
    pub to: Duration,
    /// Why it ended; may be empty.
    pub end: String,
}

/// A call to a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_structs)]
pub struct Call {
    /// Which.
    pub kind: CallKind,
    /// When it was made.
    pub from: Duration,
    /// When it was answered or given up.
    pub to: Duration,
    /// What came of it.
    pub outcome: CallOutcome,
}

/// A call to a store, as in its session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[allow(clippy::exhaustive_enums, missing_docs)]
pub enum CallKind {
    Inspect,
    Place,
    Acquire,
    Renew,
    Release,
}

/// What came of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[allow(clippy::exhaustive_enums)]
pub enum CallOutcome {
    /// It changed the record.
    Won,
    /// The record was another one.
    Lost,
    /// It showed the record.
    Seen,
    /// The store could not do it.
    Failed,
    /// It was given up.
    Dropped,
}

/// Something was broken.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[allow(clippy::exhaustive_structs)]
pub struct Fault {
    /// What.
    pub what: String,
    /// For this lane alone; for all, if for none.
    pub lane: Option<usize>,
    /// From here on.
    pub from: Duration,
    /// Until here.
    pub to: Duration,
}

/// Nobody led.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(clippy::exhaustive_structs)]
pub struct Gap {
    /// From here on.
    pub from: Duration,
    /// Until here.
    pub to: Duration,
    /// How long that may be.
    pub allowed: Option<Duration>,
}

impl Picture {
    /// The picture.
    #[must_use]
    pub fn to_svg(&self) -> String {
        String::new()
    }
}
