//! How large a world is explored.

use std::time::Duration;

use tenure::protocol::{Expiry, Timing};

/// The unit in which time passes while everything goes wrong. Not shorter than the shortest delay that the protocol knows
/// (`retry_delay`), so that the timings below are small whole numbers of it.
pub(crate) const TICK: Duration = Duration::from_millis(50);

/// Bounds of what is explored. Within them, everything that can happen does.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Scope {
    /// What it is called on the command line.
    pub name: &'static str,
    /// How many candidates there are.
    pub candidates: usize,
    /// Who says that a lease has expired.
    pub expiry: Expiry,
    /// How many terms begin while things go wrong.
    pub terms: i64,
    /// How many writes, of everybody, may be under way beside those that somebody waits for.
    pub strays: usize,
    /// How many candidates may die.
    pub crashes: usize,
    /// How often a candidate that leads, or has a write under way, freezes for however long.
    pub freezes: usize,
    /// How often somebody is asked to resign or to shut down.
    pub requests: usize,
    /// How many of the clocks (the candidates', then the store's) may run ahead of the others by as much as the margin covers.
    pub fast_clocks: usize,
    /// How many calls fail, lose their reply, or are late by a tick; `None`: they are not counted. Of a call that is late and
    /// then fails, both are.
    pub misses: Option<usize>,
    /// Whether terms hand out guards.
    pub guards: bool,
    /// Whether faults stop at some point, so that somebody must lead in the time that is promised.
    pub recovers: bool,
    /// Whether a reply takes no time, if one comes: a request may still be late or lost, and so may its reply.
    pub is_prompt: bool,
    /// Part of `--large` alone.
    pub is_large: bool,
}

/// What happens in every scope: calls fail, replies are lost, everybody comes in any order, in every tick and at its end.
const PLAIN: Scope = Scope {
    name: "either",
    candidates: 2,
    expiry: Expiry::Either,
    terms: 2,
    strays: 0,
    crashes: 0,
    freezes: 0,
    requests: 0,
    fast_clocks: 0,
    misses: None,
    guards: false,
    recovers: false,
    is_prompt: false,
    is_large: false,
};

const PROMPT: Scope = Scope { is_prompt: true, ..PLAIN };

/// Three multiply what may happen even more, so what goes wrong with calls is counted.
const THREE: Scope = Scope { candidates: 3, misses: Some(1), ..PROMPT };

const THREE_LARGE: Scope = Scope { is_large: true, ..THREE };

/// How many calls must go wrong for a term to expire whose leader does not freeze: those of four ticks.
pub(crate) const EXPIRY: usize = 4;

/// Too many states for a run of all tests; of most of these nobody knows how many.
const LARGE: Scope = Scope { is_large: true, ..PLAIN };

impl Scope {
    /// All of them. Two faults at once multiply each other, so each of the small ones has one of its own; the large ones combine
    /// them.
    pub const ALL: &'static [Self] = &[
        PLAIN,
        Self {
            name: "observed",
            expiry: Expiry::Observed,
            fast_clocks: 1,
            misses: Some(EXPIRY),
            ..PROMPT
        },
        Self { name: "clocks", fast_clocks: 1, ..PROMPT },
        Self { name: "late", strays: 1, ..PROMPT },
        Self { name: "frozen", freezes: 1, misses: Some(EXPIRY), ..PROMPT },
        Self { name: "crashes", crashes: 1, ..PROMPT },
        Self { name: "guards", terms: 1, requests: 1, guards: true, ..PROMPT },
        Self { name: "recovery", recovers: true, ..PROMPT },
        Self { name: "recovery-observed", expiry: Expiry::Observed, recovers: true, ..PROMPT },
        Self { name: "three-frozen", freezes: 1, ..THREE },
        Self { name: "three-crashes", crashes: 1, ..THREE },
        Self { name: "observed-any", expiry: Expiry::Observed, fast_clocks: 1, ..LARGE },
        Self { name: "frozen-any", freezes: 1, is_prompt: true, ..LARGE },
        Self { name: "both", expiry: Expiry::Both, recovers: true, ..LARGE },
        Self { name: "three-terms", terms: 3, ..LARGE },
        Self { name: "three-observed", expiry: Expiry::Observed, freezes: 1, ..THREE_LARGE },
        Self { name: "three-late", freezes: 1, strays: 1, ..THREE_LARGE },
        Self { name: "three-clocks", freezes: 1, fast_clocks: 1, ..THREE_LARGE },
        Self { name: "three-expired", misses: Some(EXPIRY), ..THREE_LARGE },
        Self { name: "three", misses: None, ..THREE_LARGE },
        Self { name: "clocks-observed", expiry: Expiry::Observed, fast_clocks: 3, ..LARGE },
        Self { name: "late-clocks", strays: 2, fast_clocks: 3, ..LARGE },
        Self { name: "frozen-guards", freezes: 1, guards: true, ..LARGE },
        Self { name: "asked", requests: 1, guards: true, ..LARGE },
        Self {
            name: "everything",
            strays: 1,
            crashes: 1,
            freezes: 1,
            requests: 1,
            fast_clocks: 3,
            guards: true,
            recovers: true,
            ..LARGE
        },
    ];

    /// The scope of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<&'static Self> {
        Self::ALL.iter().find(|scope| scope.name == name)
    }

    /// Leases of five ticks, everything else as short as is allowed: a tick each for the margin, a call's time, the renewals
    /// and the looks.
    ///
    /// # Panics
    /// Never: these settings are valid.
    #[must_use]
    pub fn timing(&self) -> Timing {
        Timing::builder()
            .lease_duration(TICK * 5)
            .renew_interval(TICK)
            .operation_timeout(TICK)
            .safety_margin(TICK)
            .retry_period(TICK)
            .drain_timeout(TICK)
            .resign_pause(TICK)
            .expiry(self.expiry)
            .build()
            .expect("five ticks leave room for a lost renewal")
    }

    /// A store with a clock shows it; judging by watching alone needs none, so there the store has none, as on NATS.
    pub(crate) fn shows_clock(&self) -> bool {
        self.expiry != Expiry::Observed
    }

    /// How long ago something may lie and still make a difference: a lease that is watched is taken after its duration, with
    /// [`Expiry::Both`] at the latest after twice that.
    pub(crate) fn memory(&self) -> Duration {
        let lease = self.timing().lease_duration();
        if self.expiry == Expiry::Both { lease * 2 } else { lease }
    }
}
