//! What happens in a world, as data: an oracle judges it, a timeline shows it, a drawing can be made of it.

use std::{fmt, time::Duration};

use tenure::{
    Fence, Instant, TermEnd,
    protocol::{Call, Reply},
    store::Outcome,
};

use crate::{fault::Fault, time::Moment};

/// One process of one candidate: where it runs, and how many have run there before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(clippy::exhaustive_structs)] // these two are what an identity is made of
pub struct Who {
    /// The place of the candidate.
    pub slot: usize,
    /// How often it was started anew.
    pub incarnation: u32,
}

impl fmt::Display for Who {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "c{}.{}", self.slot, self.incarnation)
    }
}

/// Something that happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_structs)] // made by hand where an oracle is tested
pub struct Event {
    /// When, in true time.
    pub at: Moment,
    /// To whom; to nobody in particular if it befell the store, or everybody.
    pub who: Option<Who>,
    /// What.
    pub what: What,
}

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums)] // an oracle must know them all
pub enum What {
    /// A process has started.
    Joined,
    /// A process died at once.
    Crashed,
    /// Nothing of the process runs any more, or again.
    Frozen(bool),
    /// Its elector alone stands still, or goes on; its work does not.
    Preempted(bool),
    /// Somebody asked for something.
    Asked(Wish),
    /// A call was sent.
    Sent {
        /// Its number.
        number: u64,
        /// What it asks for.
        call: CallKind,
        /// The term that it names.
        fence: Option<Fence>,
    },
    /// The store has executed a call.
    Executed {
        /// Its number.
        number: u64,
        /// What it asked for.
        call: CallKind,
        /// What came of it.
        result: CallResult,
        /// What made it come late, if anything did.
        late: Option<Lateness>,
    },
    /// The protocol has been told the answer to a call.
    Answered {
        /// Its number.
        number: u64,
        /// What it asked for.
        call: CallKind,
        /// What the answer says.
        result: CallResult,
        /// For how long the lease is still valid, by that.
        left: Option<Duration>,
    },
    /// A call, or its answer, is lost, or late, or was said to have failed.
    Astray {
        /// Its number.
        number: u64,
        /// What it asks for.
        call: CallKind,
    },
    /// A call was given up.
    Abandoned {
        /// Its number.
        number: u64,
        /// What it asked for.
        call: CallKind,
    },
    /// A term has begun for everybody to see.
    Started {
        /// Its number.
        fence: Fence,
        /// Until when it lasts.
        deadline: Instant,
    },
    /// A term lasts longer, or shorter.
    Extended {
        /// Until when now.
        deadline: Instant,
    },
    /// A term admits no new work.
    Cancelled(TermEnd),
    /// A term was said to be over.
    Ended(TermEnd),
    /// Guards of a term are held long after it has ended.
    StillHeld(usize),
    /// The elector has stopped; so many guards were left.
    Stopped(usize),
    /// A guard of the term was taken, for so long, or for ever.
    GuardTaken(Option<Duration>),
    /// A guard was dropped.
    GuardDropped,
    /// Work came into flight.
    WorkBegun,
    /// Work in flight is done.
    WorkDone,
    /// Work in flight was polled: the term said that it is live.
    Polled {
        /// The term's number.
        fence: Fence,
    },
    /// A fault struck.
    Struck(Fault),
    /// No further fault will happen.
    Calm,
    /// The last request of the bad times has been executed. Somebody leads by then.
    Settled {
        /// When at the latest.
        leads_by: Moment,
    },
    /// Nobody leads any more, and nothing else is wrong. Somebody leads again by then.
    Vacant {
        /// What became of the leader.
        loss: Loss,
        /// When at the latest.
        leads_by: Moment,
    },
}

/// How a fleet in good times has lost its leader.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(clippy::exhaustive_enums)] // those for which a bound is printed
pub enum Loss {
    /// It has died.
    Death,
    /// It has given the lease back.
    HandOver,
}

/// What is asked of an elector.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(clippy::exhaustive_enums)] // an oracle must know them all
pub enum Wish {
    /// Hand over, then pause.
    Resign,
    /// Hand over and stop, with at most this time for the work.
    Shutdown(Duration),
    /// Contend, or do not.
    Eligible(bool),
}

/// What a call asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(clippy::exhaustive_enums)] // the calls that a protocol makes
pub enum CallKind {
    /// To read.
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

impl From<&Call> for CallKind {
    fn from(call: &Call) -> Self {
        match call {
            Call::Inspect => Self::Inspect,
            Call::Place(_) => Self::Place,
            Call::Acquire(_) => Self::Acquire,
            Call::Renew(_) => Self::Renew,
            Call::Release(_) => Self::Release,
        }
    }
}

/// What came of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(clippy::exhaustive_enums)] // the outcomes that there are
pub enum CallResult {
    /// It was read, or placed.
    Done,
    /// It was won.
    Won,
    /// It was lost.
    Lost,
    /// Nobody knows.
    Failed,
}

impl CallResult {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Done, Self::Won, Self::Lost, Self::Failed];
}

impl From<&Reply> for CallResult {
    fn from(reply: &Reply) -> Self {
        match reply {
            Reply::Inspected(_) | Reply::Placed(_) => Self::Done,
            Reply::Acquired(outcome) | Reply::Renewed(outcome) | Reply::Released(outcome) => {
                match outcome {
                    Outcome::Won(_) => Self::Won,
                    Outcome::Lost(_) => Self::Lost,
                }
            }
            Reply::Failed => Self::Failed,
        }
    }
}

/// Why a request came late to the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(clippy::exhaustive_enums)] // the kinds of late arrival that a schedule must show
pub enum Lateness {
    /// Nobody waits for its answer any more.
    GivenUp,
    /// Whoever sent it is dead, or was replaced.
    AfterRestart,
    /// Another term has begun since it was sent.
    AfterNewTerm,
    /// It is the second copy.
    Doubled,
}

impl Lateness {
    /// All of them.
    pub const ALL: [Self; 4] =
        [Self::GivenUp, Self::AfterRestart, Self::AfterNewTerm, Self::Doubled];
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { at, who, what } = self;
        let who = who.map(|who| who.to_string()).unwrap_or_default();
        write!(f, "{at}  {who:<6} {what:?}")
    }
}
