//! The election as a state machine that knows no clock, no runtime, no database and no randomness.
//!
//! [`Protocol::step`] takes the local instant, a jitter value, how many guards and pieces of work are out, and one
//! [`Input`]; it answers with at most one [`Call`] to make, what has changed, and when it wants to be woken. The same code
//! is tested on virtual time, simulated, model-checked and shipped.
//!
//! | phase | does | leaves when |
//! |---|---|---|
//! | following | inspects; acquires when the lease is claimable and it contends | an acquire is won |
//! | leading | renews | deadline, proof of loss, resign, shutdown |
//! | draining | renews; no new work | work and guards are gone, the drain has timed out, deadline, proof |
//! | relinquishing | the term is over; once guards are gone it releases | released, or failed to |
//! | stopped | nothing | never |

mod expiry;
mod following;
mod holding;
mod step;
mod timing;

#[cfg(test)]
mod properties;
#[cfg(test)]
mod tests;

use std::time::Duration;

pub use self::{
    expiry::Expiry,
    step::{Call, Change, Input, Jitter, Levels, Phase, Reply, Step},
    timing::{Remedy, Timing, TimingBuilder, TimingError, WorstCase},
};
use self::{
    following::Following,
    holding::{Relinquishing, Tenure},
};
use crate::{
    instant::Instant,
    lease::{Fence, Identity, Lease, TermEnd},
    store::Outcome,
};

/// One candidate's part in one election.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Protocol {
    identity: Identity,
    timing: Timing,
    eligible: bool,
    pause: Pause,
    /// It was told to stop: when its term is to wait for its work no longer.
    shutdown: Option<Instant>,
    /// Whether it gives back what it does not need any more.
    releases: bool,
    outstanding: Option<Outstanding>,
    /// Nothing but the passing of time makes it look before this.
    not_before: Instant,
    known: Known,
    state: State,
}

/// When this candidate contends again after it resigned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Pause {
    No,
    /// It has resigned; the pause begins when it follows again.
    FromFollowing,
    Until(Instant),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Outstanding {
    kind: CallKind,
    sent: Instant,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum CallKind {
    Inspect,
    Place,
    Acquire,
    Renew,
    Release,
}

/// What this candidate has ever learnt about the record, in whatever phase.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Known {
    watch: Option<expiry::Watch>,
    /// The highest fence seen: every new term is above it.
    floor: Option<Fence>,
    /// The longest duration seen; `None` if there never was a record.
    longest: Option<Duration>,
}

impl Known {
    /// Takes note of the record as it is in a reply, or of its absence.
    fn saw(&mut self, lease: Option<&Lease>, received: Instant) {
        let Some(lease) = lease else {
            self.watch = None;
            return;
        };
        self.watch = Some(expiry::Watch::follow(self.watch.take(), lease, received));
        self.floor = self.floor.max(Some(lease.fence));
        self.longest = self.longest.max(Some(lease.duration));
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum State {
    Following(Following),
    Leading(Tenure),
    Draining { tenure: Tenure, reason: TermEnd, until: Instant },
    Relinquishing(Relinquishing),
    Stopped,
}

impl Protocol {
    /// A candidate that follows and looks at once. One that is not `eligible` is an observer.
    #[must_use]
    pub fn new(identity: Identity, timing: Timing, eligible: bool) -> Self {
        Self {
            identity,
            timing,
            eligible,
            pause: Pause::No,
            shutdown: None,
            releases: true,
            outstanding: None,
            not_before: Instant::ORIGIN,
            known: Known::default(),
            state: State::Following(Following::looking_at(Instant::ORIGIN)),
        }
    }

    /// The same candidate, which never releases anything: every lease that it has held is left to run out.
    #[must_use]
    pub fn without_release(mut self) -> Self {
        self.releases = false;
        self
    }

    /// Goes on by one input. `now` must not lie before that of the last step; for a reply it is when the reply was read.
    pub fn step(&mut self, now: Instant, jitter: Jitter, levels: Levels, input: Input) -> Step {
        let mut step = Step::default();
        // The clock decides before anything else is looked at: a confirmation that arrives after the deadline that it
        // was to replace confirms nothing.
        self.end_at_deadline(now, &mut step);
        match input {
            Input::Wake => {}
            Input::Reply(reply) => self.reply(now, jitter, reply, &mut step),
            Input::Hint => self.hint(now),
            Input::Resign => self.resign(now, &mut step),
            Input::Shutdown => self.shut_down(now, Duration::MAX, &mut step),
            Input::ShutdownWithin { drain } => self.shut_down(now, drain, &mut step),
            Input::Eligible(eligible) => self.set_eligible(now, eligible, &mut step),
            Input::Over => self.expire(now, &mut step),
        }
        self.abandon_overdue(now, jitter, &mut step);
        if !step.recount {
            self.proceed(now, levels, &mut step);
        }
        step.wake = self.wake(levels);
        step
    }

    /// Where this candidate stands.
    #[must_use]
    pub fn phase(&self) -> Phase {
        match &self.state {
            State::Following(_) => Phase::Following,
            State::Leading(_) => Phase::Leading,
            State::Draining { .. } => Phase::Draining,
            State::Relinquishing(_) => Phase::Relinquishing,
            State::Stopped => Phase::Stopped,
        }
    }

    /// The fence and deadline of the term, while there is one.
    #[must_use]
    pub fn term(&self) -> Option<(Fence, Instant)> {
        match &self.state {
            State::Leading(tenure) | State::Draining { tenure, .. } => {
                Some((tenure.fence, tenure.deadline))
            }
            State::Following(_) | State::Relinquishing(_) | State::Stopped => None,
        }
    }

    /// Whether it would take a claimable lease.
    fn contends(&self, now: Instant) -> bool {
        self.eligible && self.shutdown.is_none() && !self.is_paused(now)
    }

    /// It is asked while it follows, by when a pause has its end.
    fn is_paused(&self, now: Instant) -> bool {
        matches!(self.pause, Pause::Until(until) if now < until)
    }

    fn call(&mut self, now: Instant, call: Call, step: &mut Step) {
        debug_assert!(self.outstanding.is_none(), "one call at a time");
        let kind = match &call {
            Call::Inspect => CallKind::Inspect,
            Call::Place(_) => CallKind::Place,
            Call::Acquire(_) => CallKind::Acquire,
            Call::Renew(_) => CallKind::Renew,
            Call::Release(_) => CallKind::Release,
        };
        self.outstanding = Some(Outstanding { kind, sent: now });
        step.call = Some(call);
    }

    fn reply(&mut self, now: Instant, jitter: Jitter, reply: Reply, step: &mut Step) {
        let Some(Outstanding { kind, sent }) = self.outstanding.take() else { return };
        match (kind, reply) {
            (CallKind::Inspect, Reply::Inspected(lease)) => {
                self.inspected(now, jitter, lease.as_ref(), step);
            }
            // Whoever places a record has not won it.
            (CallKind::Place, Reply::Placed(lease)) => {
                self.known.saw(Some(&lease), now);
                self.look_soon(now, jitter, Some(&lease));
            }
            // One that shows somebody else as the holder, from a store that breaks its contract, won nothing for us.
            (CallKind::Acquire, Reply::Acquired(Outcome::Won(lease)))
                if lease.is_held_by(&self.identity) =>
            {
                self.won(now, sent, &lease, step);
            }
            (CallKind::Acquire, Reply::Acquired(Outcome::Lost(lease))) => {
                self.known.saw(lease.as_ref(), now);
                self.look_soon(now, jitter, lease.as_ref());
            }
            (CallKind::Renew, Reply::Renewed(outcome)) => self.renewed(now, sent, &outcome, step),
            // Also one that was lost may show a fence that no later term of ours is to repeat.
            (CallKind::Release, Reply::Released(outcome)) => {
                self.known.saw(outcome.lease(), now);
                let is_lost = matches!(outcome, Outcome::Lost(_));
                self.follow(now, if is_lost { now + following::SPACING } else { now });
            }
            (kind, _) => self.failed(now, jitter, kind),
        }
    }

    /// The outcome of the call is unknown.
    fn failed(&mut self, now: Instant, jitter: Jitter, kind: CallKind) {
        match kind {
            CallKind::Inspect | CallKind::Place => self.look_failed(now, jitter),
            CallKind::Acquire => self.acquire_failed(now),
            CallKind::Renew => self.renew_failed(now),
            CallKind::Release => self.follow(now, now + self.timing.retry_delay()),
        }
    }

    /// A call that has had its time has failed.
    fn abandon_overdue(&mut self, now: Instant, jitter: Jitter, step: &mut Step) {
        let timeout = self.timing.operation_timeout();
        match &self.outstanding {
            Some(Outstanding { kind, sent }) if now >= *sent + timeout => {
                let kind = *kind;
                self.abandon(step);
                self.failed(now, jitter, kind);
            }
            _ => {}
        }
    }

    fn abandon(&mut self, step: &mut Step) {
        // A call that this very step asked for has not been made.
        step.abandon |= self.outstanding.take().is_some() && step.call.take().is_none();
    }

    fn resign(&mut self, now: Instant, step: &mut Step) {
        self.pause = match self.state {
            State::Following(_) => Pause::Until(now + self.timing.resign_pause()),
            _ => Pause::FromFollowing,
        };
        self.drain(now, TermEnd::Resigned, step);
    }

    /// May be told again, to be quicker.
    fn shut_down(&mut self, now: Instant, drain: Duration, step: &mut Step) {
        let drained = now + drain.min(self.timing.drain_timeout());
        self.shutdown = Some(self.shutdown.map_or(drained, |before| before.min(drained)));
        self.drain(now, TermEnd::Shutdown, step);
    }

    fn set_eligible(&mut self, now: Instant, eligible: bool, step: &mut Step) {
        let gained = eligible && !self.eligible;
        self.eligible = eligible;
        if gained {
            self.hint(now);
        } else if !eligible {
            self.drain(now, TermEnd::Resigned, step);
        }
    }

    /// Does what has become due.
    fn proceed(&mut self, now: Instant, levels: Levels, step: &mut Step) {
        match &self.state {
            State::Following(_) => self.proceed_following(now, step),
            State::Leading(_) => self.renew_when_due(now, step),
            State::Draining { .. } => self.proceed_draining(now, levels, step),
            State::Relinquishing(_) => self.proceed_relinquishing(now, levels, step),
            State::Stopped => {}
        }
    }

    /// Enters following, from wherever; or stops, if that is what it is relinquishing for.
    fn follow(&mut self, now: Instant, look: Instant) {
        if self.pause == Pause::FromFollowing {
            self.pause = Pause::Until(now + self.timing.resign_pause());
        }
        // A release that changed nothing leads straight back to here, as often as the store answers.
        self.not_before = self.not_before.max(look);
        self.state = State::Following(Following::looking_at(self.not_before));
    }

    fn stop(&mut self, guards: usize, step: &mut Step) {
        self.abandon(step);
        self.state = State::Stopped;
        step.changes.push(Change::Stopped { guards });
    }

    /// The next instant at which something becomes due by itself.
    fn wake(&self, levels: Levels) -> Option<Instant> {
        let timeout =
            self.outstanding.as_ref().map(|call| call.sent + self.timing.operation_timeout());
        let due = match &self.state {
            State::Following(following) => {
                self.outstanding.is_none().then_some(following.next_look())
            }
            State::Leading(tenure) => Some(tenure.due(self.outstanding.is_some())),
            State::Draining { tenure, until, .. } => {
                Some(tenure.due(self.outstanding.is_some()).min(*until))
            }
            State::Relinquishing(relinquishing) => {
                (levels.guards > 0).then(|| self.patience(relinquishing))
            }
            State::Stopped => None,
        };
        due.into_iter().chain(timeout).min()
    }

    /// Moves everything `by` nearer to the origin of the clock, so that a model checker recognises states that differ
    /// in nothing but the time of day. `by` must not be later than the earliest instant that still matters.
    #[must_use]
    pub fn rebased(self, by: Duration) -> Self {
        self.map_instants(|instant| instant - by)
    }

    /// Puts another instant in the place of every one that is kept, so that a model checker also recognises states that
    /// differ in nothing but by how much something is past. Which replacements make no difference is for the caller to
    /// know.
    #[must_use]
    pub fn map_instants(mut self, mut map: impl FnMut(Instant) -> Instant) -> Self {
        let outstanding = self.outstanding.iter_mut().map(|call| &mut call.sent);
        let watch = self.known.watch.iter_mut().map(|watch| &mut watch.since);
        let pause = match &mut self.pause {
            Pause::Until(until) => Some(until),
            Pause::No | Pause::FromFollowing => None,
        };
        let state: Vec<&mut Instant> = match &mut self.state {
            State::Following(following) => following.instants(),
            State::Leading(tenure) => tenure.instants(),
            State::Draining { tenure, until, .. } => {
                tenure.instants().into_iter().chain([until]).collect()
            }
            State::Relinquishing(relinquishing) => relinquishing.instants(),
            State::Stopped => Vec::new(),
        };
        let common = [&mut self.not_before].into_iter().chain(&mut self.shutdown);
        for instant in outstanding.chain(watch).chain(pause).chain(common).chain(state) {
            *instant = map(*instant);
        }
        self
    }
}
