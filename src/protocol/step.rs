//! What goes into a step of the protocol, and what comes out.

use std::time::Duration;

use super::timing::MAX_EXPIRY_JITTER;
use crate::{
    instant::Instant,
    lease::{Fence, Lease, TermEnd},
    store::{AcquireRequest, Outcome, PlaceRequest, ReleaseRequest, RenewRequest},
};

/// A number from `[0, 1)`, drawn anew for each step: 65,536 of them, so that a model checker can try a few for all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Jitter(u16);

impl Jitter {
    /// `numerator / 65536`.
    #[must_use]
    pub const fn new(numerator: u16) -> Self {
        Self(numerator)
    }

    /// The duration, give or take 20 %.
    pub(super) fn around(self, duration: Duration) -> Duration {
        let least = duration / 5 * 4;
        least.saturating_add(self.part_of(duration / 5 * 2))
    }

    /// 1 to 5 ms.
    pub(super) fn after_expiry(self) -> Duration {
        Duration::from_millis(1) + self.part_of(MAX_EXPIRY_JITTER - Duration::from_millis(1))
    }

    fn part_of(self, duration: Duration) -> Duration {
        duration.saturating_mul(u32::from(self.0)) / (1 << 16)
    }
}

/// How much work of this candidate's term is out. Levels, not events: read just before every step, and handed to it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[allow(clippy::exhaustive_structs)] // two counts, and whoever drives the protocol must know both
pub struct Levels {
    /// Guards that are held: work that nobody can stop.
    pub guards: usize,
    /// Work in flight: inert once the term has ended.
    pub in_flight: usize,
}

/// What happened since the last step.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[allow(clippy::exhaustive_enums)] // whoever drives the protocol must know them all
pub enum Input {
    /// Nothing but the passing of time, or a change of the levels.
    Wake,
    /// The answer to the outstanding call.
    Reply(Reply),
    /// The store says that something has changed.
    Hint,
    /// Hand over, then pause.
    Resign,
    /// Hand over and stop.
    Shutdown,
    /// The same, or, if that was asked already, be quicker about it.
    ShutdownWithin {
        /// How long to wait for work; the drain timeout if that is shorter.
        drain: Duration,
    },
    /// Whether this candidate may lead at all.
    Eligible(bool),
    /// Somebody who read the clock later than this step has seen the deadline pass, so the term is over for good.
    Over,
}

/// The answer to a call. One that does not fit the outstanding call counts as failed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[allow(clippy::exhaustive_enums)] // whoever drives the protocol must know them all
pub enum Reply {
    /// To [`Call::Inspect`].
    Inspected(Option<Lease>),
    /// To [`Call::Place`].
    Placed(Lease),
    /// To [`Call::Acquire`].
    Acquired(Outcome),
    /// To [`Call::Renew`].
    Renewed(Outcome),
    /// To [`Call::Release`].
    Released(Outcome),
    /// To any call: whether it was executed is unknown.
    Failed,
}

impl Reply {
    /// The record as the reply shows it, if it shows one.
    #[must_use]
    pub fn lease(&self) -> Option<&Lease> {
        match self {
            Self::Inspected(lease) => lease.as_ref(),
            Self::Placed(lease) => Some(lease),
            Self::Acquired(outcome) | Self::Renewed(outcome) | Self::Released(outcome) => {
                outcome.lease()
            }
            Self::Failed => None,
        }
    }
}

/// A call to make now. What is published beside the lease is for whoever drives the protocol to fill in.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[allow(clippy::exhaustive_enums)] // whoever drives the protocol must know them all
pub enum Call {
    /// Read the record.
    Inspect,
    /// Put a record where one has vanished.
    Place(PlaceRequest),
    /// Start a term.
    Acquire(AcquireRequest),
    /// Extend the term.
    Renew(RenewRequest),
    /// Give the lease back.
    Release(ReleaseRequest),
}

/// What has changed, in the order in which it is to be published.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(clippy::exhaustive_enums)] // whoever drives the protocol must know them all
pub enum Change {
    /// A term has begun.
    Started {
        /// Its number.
        fence: Fence,
        /// When it is over unless a renewal is confirmed.
        deadline: Instant,
    },
    /// A renewal was confirmed; the new deadline may also be an earlier one.
    Extended {
        /// When the term is over unless another renewal is confirmed.
        deadline: Instant,
    },
    /// The term admits no new work; it will end for this reason, or for a worse one.
    Cancelled(TermEnd),
    /// The term is over.
    Ended(TermEnd),
    /// Guards of an ended term are still held, a lease after it was first said.
    StillHeld {
        /// How many.
        guards: usize,
    },
    /// Nothing will ever happen again.
    Stopped {
        /// How many guards of the last term are still held; its lease was not released then.
        guards: usize,
    },
}

/// What a step asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[must_use = "the call must be made, the changes published"]
#[non_exhaustive]
pub struct Step {
    /// Drop the outstanding call: it has timed out, or nobody wants its answer any more. Comes before `call`.
    pub abandon: bool,
    /// Make this call. There is no other one outstanding.
    pub call: Option<Call>,
    /// When to come back at the latest; `None` if only a reply, an input or a level can change anything.
    pub wake: Option<Instant>,
    /// What to publish, in this order.
    pub changes: Vec<Change>,
    /// Step again, by [`Input::Wake`], once the changes are public. A term was cancelled or ended here, and whoever began
    /// to work just before that became known is not in the levels of this step: nothing was judged by them.
    pub recount: bool,
}

impl Step {
    /// What this step and the `next` one ask for together, if nothing was done about this one's call in between.
    pub fn then(mut self, next: Self) -> Self {
        match (next.abandon, self.call.take()) {
            // It was given up before it was made.
            (true, Some(_)) => self.call = next.call,
            (abandon, call) => {
                self.abandon |= abandon;
                self.call = call.or(next.call);
            }
        }
        self.changes.extend(next.changes);
        Self { wake: next.wake, recount: next.recount, ..self }
    }
}

/// Where a candidate stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Phase {
    /// Looks, and tries to win a term when the lease is claimable and it contends.
    Following,
    /// Has a term.
    Leading,
    /// Has a term that admits no new work, and waits for the work in flight.
    Draining,
    /// Its term is over; waits for guards, and gives the lease back.
    Relinquishing,
    /// Does not take part any more.
    Stopped,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::tests::lease;

    #[test]
    fn a_reply_shows_the_record_whatever_it_answers() {
        let (lease, outcome) = (lease("me", 1, 1), Outcome::Lost(Some(lease("me", 1, 1))));
        for reply in [
            Reply::Inspected(Some(lease.clone())),
            Reply::Placed(lease.clone()),
            Reply::Acquired(Outcome::Won(lease.clone())),
            Reply::Renewed(outcome.clone()),
            Reply::Released(outcome),
        ] {
            assert_eq!(reply.lease(), Some(&lease), "{reply:?}");
        }
        for reply in [Reply::Inspected(None), Reply::Renewed(Outcome::Lost(None)), Reply::Failed] {
            assert_eq!(reply.lease(), None, "{reply:?}");
        }
    }

    #[test]
    fn a_call_that_is_given_up_before_it_was_made_is_neither_made_nor_abandoned() {
        let asks = Step { call: Some(Call::Inspect), ..Step::default() };
        let gives_up = Step { abandon: true, ..Step::default() };
        assert_eq!(asks.clone().then(gives_up.clone()), Step::default());
        // One that was made before both of them is still to be dropped.
        assert!(gives_up.clone().then(Step::default()).abandon);
        assert_eq!(gives_up.then(asks.clone()), Step { abandon: true, ..asks });
    }
}
