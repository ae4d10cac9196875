//! What participants say, and what they are told: one JSON object in a line each.

use serde::{Deserialize, Serialize};

use crate::Stamp;

/// What a participant says.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[allow(clippy::exhaustive_structs)] // written here and read here
pub struct Message {
    /// When it was said; what it says may be older.
    pub at: Stamp,
    /// What.
    pub event: Event,
}

/// Something that happened in a participant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(clippy::exhaustive_enums)] // tests match on all of it
pub enum Event {
    /// It takes part from here on.
    Joined {
        /// Its candidate.
        identity: String,
    },
    /// Its candidate was elected.
    Elected {
        /// Under this fence.
        fence: i64,
    },
    /// From `from` to `to` its term was not over. Each was read *before* the term was asked, so that the claim holds also
    /// for a process that was frozen in between.
    Live {
        /// The term's.
        fence: i64,
        /// The first time it was asked.
        from: Stamp,
        /// The last time so far.
        to: Stamp,
        /// When it will be over unless a renewal is confirmed; at most a moment too early.
        until: Stamp,
    },
    /// Work was done under the term, by a poll that began at this instant.
    Worked {
        /// The term's.
        fence: i64,
        /// When.
        at: Stamp,
    },
    /// Work that was asked for has been admitted and runs.
    Serving {
        /// The term's.
        fence: i64,
    },
    /// Admitted work was finished.
    Served {
        /// The term's.
        fence: i64,
    },
    /// Admitted work was dropped before it was finished.
    Cut {
        /// The term's.
        fence: i64,
        /// Why.
        reason: String,
    },
    /// Work that was asked for was not admitted.
    NotAdmitted,
    /// Blocking code holds a guard.
    Guarding {
        /// The term's.
        fence: i64,
    },
    /// Blocking code gives its guard back.
    Unguarded {
        /// The term's.
        fence: i64,
    },
    /// The application holds every connection of its pool.
    PoolHeld,
    /// It does not any more.
    PoolFree,
    /// All threads of the application's runtime are blocked.
    Blocked,
    /// They are not any more.
    Unblocked,
    /// A thread that looks every few milliseconds has not looked for long: the process was frozen. These are its first
    /// checks.
    Woke {
        /// For how long it had not looked.
        slept_ms: u64,
        /// What it was told then. `None` if there was no term before.
        refusal: Option<Refusal>,
    },
    /// A term of its candidate is over.
    Ended {
        /// The term's.
        fence: i64,
        /// Why.
        reason: String,
    },
    /// A call to the store failed, or a term was lost.
    Failed {
        /// What was said, with all causes.
        error: String,
        /// Whether somebody must do something about it.
        fatal: bool,
    },
    /// The store works again.
    Recovered,
    /// A call to the store is over.
    Called {
        /// Which.
        call: Call,
        /// When it began.
        from: Stamp,
        /// What came of it.
        answer: Answer,
    },
    /// Its candidate has stopped.
    Stopped {
        /// Why not in order.
        error: Option<String>,
    },
}

/// A call to a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(clippy::exhaustive_enums, missing_docs)] // as in `tenure::store::Session`
pub enum Call {
    Inspect,
    Place,
    Acquire,
    Renew,
    Release,
}

/// What came of a call to a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(clippy::exhaustive_enums)]
pub enum Answer {
    /// It changed the record as it was to.
    Won,
    /// It changed nothing: the record was another one.
    Lost,
    /// It showed the record.
    Seen,
    /// The store could not do it, as far as is known.
    Failed,
    /// It took too long.
    GivenUp,
}

/// What a process that was frozen is told about the term that it had: all of it is to be no.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[allow(clippy::exhaustive_structs)]
pub struct Refusal {
    /// Whether the candidate leads.
    pub is_leader: bool,
    /// Whether work that was admitted may go on.
    pub may_finish: bool,
    /// Whether new work is admitted.
    pub admits: bool,
    /// Whether blocking code gets a guard.
    pub guards: bool,
}

impl Refusal {
    /// No to everything.
    pub const COMPLETE: Self =
        Self { is_leader: false, may_finish: false, admits: false, guards: false };
}

/// What a participant is told. Without anybody to tell it anything it ends at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(clippy::exhaustive_enums)]
pub enum Command {
    /// Hand over, and contend again later.
    Resign,
    /// Hand over, and end.
    ShutDown,
    /// Do work that is admitted like a request, and takes this long.
    Serve {
        /// How long.
        ms: u64,
    },
    /// Run blocking code under a guard, and don't look whether the term is over.
    Guard {
        /// For how long.
        ms: u64,
    },
    /// Block all threads of the application's runtime.
    Block {
        /// For how long.
        ms: u64,
    },
    /// Take every connection of the pool that the application shares with its store.
    HoldPool {
        /// For how long.
        ms: u64,
    },
}
