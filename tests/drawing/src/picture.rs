//! What a picture shows.

use std::{fmt, time::Duration};

use crate::draw;

/// What happened in one election, on one clock. All times count from its start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Picture {
    /// What it is called.
    pub title: String,
    /// More about it: what was tried, and what came of it.
    pub about: String,
    /// How long the election was watched. What is later is not shown.
    pub length: Duration,
    /// The candidates, from top to bottom.
    pub lanes: Vec<Lane>,
    /// What was broken, and what else befell somebody.
    pub faults: Vec<Fault>,
    /// When nobody led.
    pub gaps: Vec<Gap>,
}

/// A candidate.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lane {
    /// Its name.
    pub name: String,
    /// When it led, in the order of time.
    pub terms: Vec<Term>,
    /// What it asked of its store.
    pub calls: Vec<Call>,
    /// When its process ran: from, to.
    pub alive: Vec<(Duration, Duration)>,
}

/// A term of a leader.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Term {
    /// Its fence.
    pub fence: i64,
    /// When it began.
    pub from: Duration,
    /// When it was over.
    pub to: Duration,
    /// Why it ended; may be empty.
    pub end: String,
}

/// A call to the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Call {
    /// What it asked for.
    pub kind: CallKind,
    /// When it was made.
    pub from: Duration,
    /// When it was answered, or given up.
    pub to: Duration,
    /// What came of it.
    pub outcome: CallOutcome,
}

/// What a call asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(clippy::exhaustive_enums, reason = "the calls that a candidate makes")]
pub enum CallKind {
    /// To read the record.
    Inspect,
    /// To put a record where one has vanished.
    Place,
    /// To start a term.
    Acquire,
    /// To extend it.
    Renew,
    /// To give it back.
    Release,
}

impl CallKind {
    /// All of them.
    pub const ALL: [Self; 5] =
        [Self::Inspect, Self::Place, Self::Acquire, Self::Renew, Self::Release];
}

impl fmt::Display for CallKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Inspect => "inspect",
            Self::Place => "place",
            Self::Acquire => "acquire",
            Self::Renew => "renew",
            Self::Release => "release",
        })
    }
}

/// What came of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(clippy::exhaustive_enums, reason = "the outcomes that there are")]
pub enum CallOutcome {
    /// The lease is the caller's, or was given back by it.
    Won,
    /// It is not: somebody else was faster, or holds it.
    Lost,
    /// The record was read, or is there now.
    Seen,
    /// The store said that it failed, or nothing was heard in time.
    Failed,
    /// The caller gave it up, or died.
    Dropped,
}

impl CallOutcome {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Won, Self::Lost, Self::Seen, Self::Failed, Self::Dropped];
}

impl fmt::Display for CallOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Won => "won",
            Self::Lost => "lost",
            Self::Seen => "seen",
            Self::Failed => "failed",
            Self::Dropped => "dropped",
        })
    }
}

/// A fault, or something else that befell somebody; over all lanes, or one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fault {
    /// What happened.
    pub what: String,
    /// To whom: the lane's place in [`Picture::lanes`]; to all of them if to none.
    pub lane: Option<usize>,
    /// When it began.
    pub from: Duration,
    /// When it was over; when it began, if it lasts no time.
    pub to: Duration,
}

/// A time in which nobody led.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Gap {
    /// When it began.
    pub from: Duration,
    /// When somebody led again, or the picture ends.
    pub to: Duration,
    /// How long it may be, where anything is promised.
    pub allowed: Option<Duration>,
}

impl Gap {
    /// How long it is.
    #[must_use]
    pub fn length(&self) -> Duration {
        self.to.saturating_sub(self.from)
    }

    /// Whether it is longer than it may be.
    #[must_use]
    pub fn is_too_long(&self) -> bool {
        self.allowed.is_some_and(|allowed| self.length() > allowed)
    }
}

impl Picture {
    /// The lane that a fault has struck; none if it has struck all of them.
    pub(crate) fn place(&self, fault: &Fault) -> Option<usize> {
        fault.lane.filter(|lane| *lane < self.lanes.len())
    }

    /// Draws it: an SVG that is readable by itself, in a page and in an `<img>`, on light and on dark screens.
    #[must_use]
    pub fn to_svg(&self) -> String {
        draw::alone(self).to_string()
    }
}
