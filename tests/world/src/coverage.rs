//! What was exercised, and how often.

use tenure::{Expiry, Phase, TermEnd, store::When};

use crate::{
    event::{CallKind, CallResult, Lateness},
    fault::FaultKind,
};

const PHASES: [Phase; 5] =
    [Phase::Following, Phase::Leading, Phase::Draining, Phase::Relinquishing, Phase::Stopped];
const ENDS: [TermEnd; 4] = [TermEnd::Expired, TermEnd::Lost, TermEnd::Resigned, TermEnd::Shutdown];
const EXPIRIES: [Expiry; 3] = [Expiry::Either, Expiry::Observed, Expiry::Both];
const WHENS: [When; 2] = [When::Expired, When::Unchanged];

/// The ways from one phase to another that a protocol can go.
const TRANSITIONS: [(Phase, Phase); 8] = [
    (Phase::Following, Phase::Leading),
    (Phase::Following, Phase::Relinquishing),
    (Phase::Following, Phase::Stopped),
    (Phase::Leading, Phase::Draining),
    (Phase::Leading, Phase::Relinquishing),
    (Phase::Draining, Phase::Relinquishing),
    (Phase::Relinquishing, Phase::Following),
    (Phase::Relinquishing, Phase::Stopped),
];

/// Things that are not told by a phase, a call or a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Moment {
    StickyEnd,
    Recount,
    Placed,
    Thawed,
    ThawedWithTermOver,
    AnsweredAfterDeadline,
    AnsweredToNobody,
    HintUsed,
    HintLost,
    StoppedOverGuards,
    GuardsBeyondLease,
    EarlierDeadline,
    Recovered,
    LedThroughout,
    FailedOver,
    HandedOver,
}

impl Moment {
    const ALL: [Self; 16] = [
        Self::StickyEnd,
        Self::Recount,
        Self::Placed,
        Self::Thawed,
        Self::ThawedWithTermOver,
        Self::AnsweredAfterDeadline,
        Self::AnsweredToNobody,
        Self::HintUsed,
        Self::HintLost,
        Self::StoppedOverGuards,
        Self::GuardsBeyondLease,
        Self::EarlierDeadline,
        Self::Recovered,
        Self::LedThroughout,
        Self::FailedOver,
        Self::HandedOver,
    ];
}

/// How often each of the things that must be exercised was.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Coverage {
    transitions: [[u64; 5]; 5],
    results: [[u64; 4]; 5],
    abandoned: [u64; 5],
    late: [[u64; 4]; 5],
    faults: [u64; FaultKind::ALL.len()],
    ends: [u64; 4],
    claims: [[u64; 2]; 3],
    moments: [u64; Moment::ALL.len()],
}

/// A row of the table.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Exercised {
    /// What.
    pub what: String,
    /// How often.
    pub times: u64,
}

impl Coverage {
    pub(crate) fn went(&mut self, from: Phase, to: Phase) {
        self.transitions[phase(from)][phase(to)] += 1;
    }

    pub(crate) fn answered(&mut self, call: CallKind, result: CallResult) {
        self.results[call as usize][result as usize] += 1;
    }

    pub(crate) fn abandoned(&mut self, call: CallKind) {
        self.abandoned[call as usize] += 1;
    }

    pub(crate) fn late(&mut self, call: CallKind, lateness: Lateness) {
        self.late[call as usize][lateness as usize] += 1;
    }

    pub(crate) fn struck(&mut self, kind: FaultKind) {
        self.faults[kind as usize] += 1;
    }

    pub(crate) fn ended(&mut self, reason: TermEnd) {
        self.ends[index(&ENDS, &reason)] += 1;
    }

    pub(crate) fn claimed(&mut self, expiry: Expiry, when: When) {
        self.claims[index(&EXPIRIES, &expiry)][index(&WHENS, &when)] += 1;
    }

    pub(crate) fn note(&mut self, moment: Moment) {
        self.moments[moment as usize] += 1;
    }

    /// Adds what another run has exercised.
    pub fn add(&mut self, other: &Self) {
        let mine = self.counts();
        for (mine, theirs) in mine.into_iter().zip(other.clone().counts()) {
            *mine += *theirs;
        }
    }

    fn counts(&mut self) -> Vec<&mut u64> {
        let Self { transitions, results, abandoned, late, faults, ends, claims, moments } = self;
        let squares = transitions.iter_mut().flatten().chain(results.iter_mut().flatten());
        let lists = abandoned.iter_mut().chain(late.iter_mut().flatten()).chain(faults);
        squares.chain(lists).chain(ends).chain(claims.iter_mut().flatten()).chain(moments).collect()
    }

    /// Everything that must be exercised by some campaign, and how often it was.
    #[must_use]
    pub fn table(&self) -> Vec<Exercised> {
        let mut table = Vec::new();
        let mut row = |what: String, times: u64| table.push(Exercised { what, times });
        for (from, to) in TRANSITIONS {
            row(format!("phase {from:?} -> {to:?}"), self.transitions[phase(from)][phase(to)]);
        }
        for call in CallKind::ALL {
            for result in CallResult::ALL.into_iter().filter(|result| can_end(call, *result)) {
                let times = self.results[call as usize][result as usize];
                row(format!("call {call:?} {result:?}"), times);
            }
            row(format!("call {call:?} abandoned"), self.abandoned[call as usize]);
            for late in Lateness::ALL {
                row(format!("late {call:?} {late:?}"), self.late[call as usize][late as usize]);
            }
        }
        for kind in FaultKind::ALL {
            row(format!("fault {kind:?}"), self.faults[kind as usize]);
        }
        for (reason, times) in ENDS.iter().zip(self.ends) {
            row(format!("end {reason:?}"), times);
        }
        for (expiry, claims) in EXPIRIES.iter().zip(self.claims) {
            for (when, times) in WHENS.iter().zip(claims) {
                let never = *expiry == Expiry::Observed && *when == When::Expired;
                if !never {
                    row(format!("claim {expiry:?} {when:?}"), times);
                }
            }
        }
        for moment in Moment::ALL {
            row(format!("moment {moment:?}"), self.moments[moment as usize]);
        }
        table
    }
}

fn can_end(call: CallKind, result: CallResult) -> bool {
    match call {
        CallKind::Inspect | CallKind::Place => {
            matches!(result, CallResult::Done | CallResult::Failed)
        }
        CallKind::Acquire | CallKind::Renew | CallKind::Release => result != CallResult::Done,
    }
}

fn phase(phase: Phase) -> usize {
    index(&PHASES, &phase)
}

fn index<T: PartialEq>(all: &[T], one: &T) -> usize {
    all.iter().position(|each| each == one).unwrap_or_default()
}
