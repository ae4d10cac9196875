//! One candidate: the state machine that ships, its clock, and the call that it waits for.

use std::time::Duration;

use tenure::{
    Fence, Identity, Instant, Lease, Phase, Version,
    protocol::{Call, Change, Input, Jitter, Levels, Protocol, Reply, Step},
    store::Outcome,
};

use crate::scope::{Scope, TICK};

/// What every candidate is called by itself. So two of which each is in the other's place make the same state, once they are
/// put in order (`World::line_up`); who is meant is told by who asks, as a [`Caller`](crate::record::Caller).
pub(crate) fn own_name() -> Identity {
    Identity::new("me").expect("a short name")
}

/// What everybody else is called by it.
pub(crate) fn another_name() -> Identity {
    Identity::new("another").expect("a short name")
}

/// A process that takes part.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Candidate {
    pub(crate) protocol: Protocol,
    pub(crate) now: Instant,
    /// When it wants to be woken.
    pub(crate) wake: Option<Instant>,
    pub(crate) flight: Option<Flight>,
    pub(crate) guards: usize,
    /// It does nothing, while its clock goes on.
    pub(crate) is_frozen: bool,
    /// It was asked to stop.
    pub(crate) is_leaving: bool,
    /// The highest fence of its terms that are over.
    over: Option<Fence>,
    seen: Option<Seen>,
}

/// The call that it waits for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Flight {
    pub(crate) call: Call,
    pub(crate) sent: Instant,
    pub(crate) stage: Stage,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Stage {
    /// On its way to the store.
    Requested,
    /// Executed; the reply is on its way back.
    Replied(Reply),
    /// Nothing will come of it.
    Lost,
}

/// Which version of the record the protocol watches. It is kept a second time here because the protocol shows nobody what it
/// keeps, and two things depend on it: which versions may be given out again, and how much of the past still matters.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Seen {
    version: Version,
    /// Since when; of no meaning while the record is its own, which it claims without watching.
    since: Option<Instant>,
}

/// What a candidate's step did to the world.
#[derive(Debug, Default)]
pub(crate) struct Effects {
    pub(crate) changes: Vec<Change>,
    /// A request that it does not wait for any more, and that may still be executed.
    pub(crate) abandoned: Option<Call>,
    pub(crate) wrong: Option<Wrong>,
}

/// What must never happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Wrong {
    /// A term began under a fence that is not above all before it.
    FenceUsedBefore,
    /// The lease was given back while guarded work ran, or a term began over such work.
    OverAGuard,
    /// A term that was over is live.
    LiveAgain,
    /// Faults stopped, and nobody led in the time that is promised.
    NobodyLeads,
}

impl Candidate {
    pub(crate) fn new(scope: &Scope) -> Self {
        Self {
            protocol: Protocol::new(own_name(), scope.timing(), true),
            now: Instant::ORIGIN,
            wake: Some(Instant::ORIGIN),
            flight: None,
            guards: 0,
            is_frozen: false,
            is_leaving: false,
            over: None,
            seen: None,
        }
    }

    pub(crate) fn phase(&self) -> Phase {
        self.protocol.phase()
    }

    /// The fence of its term if that is live: judged by the clock, as all its work is.
    pub(crate) fn leads(&self) -> Option<Fence> {
        let (fence, deadline) = self.protocol.term()?;
        (self.now < deadline).then_some(fence)
    }

    /// A reply is on its way to it with which a term may begin.
    pub(crate) fn has_won(&self) -> bool {
        let won = |flight: &Flight| {
            matches!(flight.stage, Stage::Replied(Reply::Acquired(Outcome::Won(_))))
        };
        self.flight.as_ref().is_some_and(won)
    }

    /// It has not noticed yet that its term is over.
    pub(crate) fn is_unaware(&self) -> bool {
        self.protocol.term().is_some() && self.leads().is_none()
    }

    /// Its term is over, and its work is not.
    pub(crate) fn outlives_its_term(&self) -> bool {
        self.guards > 0 && self.leads().is_none()
    }

    /// Whether it has something to do, if it is not frozen.
    pub(crate) fn is_due(&self) -> bool {
        // Draining and relinquishing also go on when the last guard is gone, whatever the time is.
        let waits_for_guards = matches!(self.phase(), Phase::Draining | Phase::Relinquishing);
        let goes_on = waits_for_guards && self.guards == 0 && self.flight.is_none();
        !self.is_frozen && (goes_on || self.wake.is_some_and(|wake| wake <= self.now))
    }

    pub(crate) fn pass(&mut self, time: Duration) {
        self.now = self.now + time;
        if let (Some((fence, _)), None) = (self.protocol.term(), self.leads()) {
            self.over = self.over.max(Some(fence));
        }
    }

    /// Goes on by one input, as the elector does. `stale` is the count of guards for the first step, which is read a moment
    /// before it.
    pub(crate) fn give(&mut self, input: Input, jitter: Jitter, stale: usize) -> Effects {
        self.is_leaving |= matches!(input, Input::Shutdown | Input::ShutdownWithin { .. });
        if let Input::Reply(reply) = &input {
            self.flight = None;
            self.watch(reply);
        }
        let mut effects = Effects::default();
        let (mut input, mut guards) = (input, stale);
        loop {
            let before = self.protocol.term();
            let levels = Levels { guards, in_flight: 0 };
            let step = self.protocol.step(self.now, jitter, levels, input);
            if self.protocol.term().is_none() {
                self.over = self.over.max(before.map(|(fence, _)| fence));
            }
            let again = step.recount;
            self.apply(step, &mut effects);
            if !again {
                break;
            }
            (input, guards) = (Input::Wake, self.guards);
        }
        if self.leads().is_some_and(|fence| Some(fence) <= self.over) {
            effects.wrong = Some(Wrong::LiveAgain);
        }
        effects
    }

    fn apply(&mut self, step: Step, effects: &mut Effects) {
        if step.abandon {
            let flight = self.flight.take();
            effects.abandoned = flight.and_then(Flight::into_stray);
        }
        let starts = step.changes.iter().any(|change| matches!(change, Change::Started { .. }));
        let releases = matches!(step.call, Some(Call::Release(_)));
        if (starts || releases) && self.guards > 0 {
            effects.wrong = Some(Wrong::OverAGuard);
        }
        effects.changes.extend(step.changes);
        if let Some(call) = step.call {
            self.flight = Some(Flight { call, sent: self.now, stage: Stage::Requested });
        }
        self.wake = step.wake;
    }

    fn watch(&mut self, reply: &Reply) {
        if !matches!(reply, Reply::Failed) {
            self.seen = reply.lease().map(|lease| self.seen_in(lease));
        }
    }

    fn seen_in(&self, lease: &Lease) -> Seen {
        let before = self.seen.as_ref().filter(|seen| seen.version == lease.version);
        let since = before.map_or(Some(self.now), |seen| seen.since);
        let since = since.filter(|_| !lease.is_held_by(&own_name()));
        Seen { version: lease.version.clone(), since }
    }

    /// The versions that it could still compare something with.
    pub(crate) fn versions(&self) -> impl Iterator<Item = &Version> {
        let seen = self.seen.as_ref().map(|seen| &seen.version);
        let flight = self.flight.as_ref();
        let asked = flight.and_then(|flight| observed(&flight.call));
        let replied = flight.and_then(|flight| match &flight.stage {
            Stage::Replied(reply) => reply.lease(),
            Stage::Requested | Stage::Lost => None,
        });
        seen.into_iter().chain(asked).chain(replied.map(|lease| &lease.version))
    }

    /// Makes states the same that differ in nothing but the time of day, in how long ago something was that is merely past,
    /// or in where between two ticks something is to come.
    ///
    /// Of the past, two instants still matter: when the call was sent that it waits for, until its time has run out and no
    /// term can come of it any more; and since when it watches the record, for as long as watching lasts. Every other
    /// instant is only ever asked whether it has been reached, so that one which has may as well be now; and since the
    /// clock shows whole ticks while things go wrong, one that lies between two ticks is reached with the later one.
    /// Minima, maxima and the addition of whole ticks, all that is done with instants, agree with rounding up.
    pub(crate) fn settle(&mut self, scope: &Scope, rounds: bool) {
        let now = self.now;
        let flight = self.flight.as_ref();
        let sent = flight.map(|flight| (flight.sent, flight.memory(scope)));
        let since = self.seen.as_ref().and_then(|seen| seen.since);
        let kept: Vec<_> =
            sent.into_iter().chain(since.map(|since| (since, scope.memory()))).collect();
        let no_older = |(then, memory): (Instant, Duration)| then.max(now - memory);
        let oldest = kept.iter().copied().map(no_older).min().unwrap_or(now);
        let by = oldest.saturating_since(Instant::ORIGIN);
        let settled = |instant: Instant| {
            let matters = kept.iter().find(|(then, _)| *then == instant);
            let settled = match matters {
                Some(kept) => no_older(*kept),
                None if rounds => round_up(instant).max(now),
                None => instant.max(now),
            };
            settled - by
        };
        self.protocol = self.protocol.clone().map_instants(settled);
        let flight = self.flight.iter_mut().map(|flight| &mut flight.sent);
        let seen = self.seen.iter_mut().filter_map(|seen| seen.since.as_mut());
        for instant in flight.chain(seen).chain(&mut self.wake) {
            *instant = settled(*instant);
        }
        self.now = now - by;
    }
}

fn round_up(instant: Instant) -> Instant {
    Instant::from_nanos(instant.as_nanos().next_multiple_of(TICK.as_nanos() as u64))
}

impl Flight {
    /// How long after it was sent that instant still matters.
    fn memory(&self, scope: &Scope) -> Duration {
        let timing = scope.timing();
        match self.call {
            Call::Acquire(_) | Call::Renew(_) => timing.lease_duration(),
            Call::Inspect | Call::Place(_) | Call::Release(_) => timing.operation_timeout(),
        }
    }

    /// What is left of it when nobody waits for it any more: a write that has not been executed yet.
    pub(crate) fn into_stray(self) -> Option<Call> {
        match (self.stage, self.call) {
            (_, Call::Inspect) | (Stage::Replied(_) | Stage::Lost, _) => None,
            (Stage::Requested, call) => Some(call),
        }
    }
}

/// The version that the call compares.
pub(crate) fn observed(call: &Call) -> Option<&Version> {
    match call {
        Call::Acquire(request) => request.observed.as_ref().map(|observed| &observed.version),
        Call::Inspect | Call::Place(_) | Call::Renew(_) | Call::Release(_) => None,
    }
}
