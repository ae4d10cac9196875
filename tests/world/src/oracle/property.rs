//! What must hold, and what did not.

use std::{fmt, str::FromStr};

use crate::{event::Who, time::Moment};

macro_rules! properties {
    ($($(#[$docs:meta])* $name:ident = $text:literal,)*) => {
        /// What must hold at every event.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[allow(clippy::exhaustive_enums)] // a report lists them all
        pub enum Property {
            $($(#[$docs])* $name,)*
        }

        impl Property {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// Its name in reports and on command lines.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$name => $text,)*
                }
            }
        }
    };
}

properties! {
    /// There are never two terms that are live at one true instant.
    OneLeader = "one-leader",
    /// Nobody gets the lease while some other term is live, whether they learn of it or not.
    NoClaimOverLive = "no-claim-over-live",
    /// Fences rise in the order of the record's own log, and of the terms.
    FencesRise = "fences-rise",
    /// Every term has a fence that its candidate was given, and that no term has had.
    FencesAreOwn = "fences-are-own",
    /// No work is polled at or past its term's deadline.
    NoPollPastDeadline = "no-poll-past-deadline",
    /// A deadline lies no later than the confirmed write and what it is worth, less the margin.
    DeadlinesAreProven = "deadlines-are-proven",
    /// What was won too late to lead by begins no term.
    StartsInTime = "starts-in-time",
    /// A term that is over is never live again.
    OverIsOver = "over-is-over",
    /// A term ends by its deadline, by the store's word that it is lost, or since somebody asked.
    EndsAreProven = "ends-are-proven",
    /// A term that was proven lost is over at once.
    ProofIsHeeded = "proof-is-heeded",
    /// A voluntary end waits for the work, as long as it may.
    DrainsFirst = "drains-first",
    /// Nothing is released before its term is over and its guards are gone.
    NoReleaseOverWork = "no-release-over-work",
    /// No new term begins over a guard of the candidate's old one.
    NoTermOverGuards = "no-term-over-guards",
    /// A lease that its candidate needs no more is given back, as soon as nothing keeps it from that.
    GivenBack = "given-back",
    /// A lease that was given back stays so until it is claimed under a new fence.
    ReleasedStaysReleased = "released-stays-released",
    /// Nobody begins to lead within the pause after a resignation.
    ResignPauseIsKept = "resign-pause-is-kept",
    /// Nobody begins to lead who is not eligible or was told to stop.
    LeadersAreWilling = "leaders-are-willing",
    /// Every line of the record's log is one that the contract allows.
    LogIsSound = "log-is-sound",
    /// An elector does not come back at once, over and over.
    NoHotLoop = "no-hot-loop",
    /// Somebody leads within the printed worst case.
    LeadsInTime = "leads-in-time",
    /// When a leader dies in good times, somebody else leads within the printed worst case.
    FailsOverInTime = "fails-over-in-time",
    /// When it gives its lease back, and no hint tells of it, likewise.
    HandsOverInTime = "hands-over-in-time",
    /// A term that began when all was well does not end.
    StaysLeader = "stays-leader",
}

impl fmt::Display for Property {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Property {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.iter().find(|property| property.name() == text);
        found.copied().ok_or_else(|| format!("there is no property {text:?}"))
    }
}

/// Which properties are watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Properties(u32);

impl Properties {
    /// All of them.
    pub const ALL: Self = Self(u32::MAX);

    /// All of these but one.
    #[must_use]
    pub const fn without(self, property: Property) -> Self {
        Self(self.0 & !(1 << property as u32))
    }

    /// Those that are not watched.
    pub fn left_out(self) -> impl Iterator<Item = Property> {
        Property::ALL.iter().copied().filter(move |property| !self.contains(*property))
    }

    pub(super) const fn contains(self, property: Property) -> bool {
        self.0 & (1 << property as u32) != 0
    }
}

/// Something that must never happen has happened.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Violation {
    /// What does not hold.
    pub property: Property,
    /// Since when.
    pub at: Moment,
    /// By whom.
    pub who: Option<Who>,
    /// In which way.
    pub why: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { property, at, who, why } = self;
        let who = who.map(|who| who.to_string()).unwrap_or_default();
        write!(f, "{property} is violated at {at} by {who}: {why}")
    }
}
