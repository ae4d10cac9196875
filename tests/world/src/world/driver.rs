//! What an elector does with its protocol, and those who work for its term: as `elector::actor` does it, on virtual time.

use std::mem;

use tenure::{
    Phase,
    protocol::{Call, Change, Input, Jitter, Reply, Step},
};

use super::{Happening, World};
use crate::{
    coverage::Moment as Noted,
    event::{CallKind, What, Wish},
    term::Term,
};

impl World<'_> {
    /// A process starts.
    pub(super) fn begin(&mut self, slot: usize) {
        let participant = &self.participants[slot];
        self.oracle.joined(
            participant.who,
            &participant.identity,
            participant.timing,
            participant.clock,
            participant.eligible,
            participant.releases,
        );
        self.emit(Some(self.participants[slot].who), What::Joined);
        self.give(slot, Input::Wake);
    }

    /// Goes on by one input, if the elector listens.
    pub(super) fn give(&mut self, slot: usize, input: Input) {
        if !self.participants[slot].listens(self.now) {
            return;
        }
        let wish = match &input {
            Input::Resign => Some(Wish::Resign),
            Input::Shutdown => Some(Wish::Shutdown(self.participants[slot].timing.drain_timeout())),
            Input::ShutdownWithin { drain } => Some(Wish::Shutdown(*drain)),
            Input::Eligible(eligible) => Some(Wish::Eligible(*eligible)),
            Input::Hint => {
                self.coverage.note(Noted::HintUsed);
                None
            }
            Input::Wake | Input::Reply(_) | Input::Over => None,
        };
        if let Some(wish) = wish {
            self.participants[slot].is_resigning |= wish == Wish::Resign;
            self.emit(Some(self.participants[slot].who), What::Asked(wish));
        }
        let step = self.step(slot, input);
        self.publish(slot, Step::default(), step);
    }

    fn step(&mut self, slot: usize, input: Input) -> Step {
        let jitter = Jitter::new(self.bits());
        let participant = &mut self.participants[slot];
        let before = participant.protocol.phase();
        let (now, levels) = (participant.now(self.now), participant.levels());
        let step = participant.protocol.step(now, jitter, levels, input);
        self.steps += 1;
        let after = participant.protocol.phase();
        if after == Phase::Following {
            participant.follows(self.now);
        }
        if before != after {
            self.coverage.went(before, after);
        }
        step
    }

    /// Makes public what came of a step, and does what it asks for, unless the thread is not run meanwhile.
    fn publish(&mut self, slot: usize, mut asked: Step, mut step: Step) {
        loop {
            if !step.changes.is_empty()
                && let Some(lasts) = self.participants[slot].preempt.take()
            {
                let who = self.participants[slot].who;
                self.participants[slot].interrupted = Some((asked, step));
                self.emit(Some(who), What::Preempted(true));
                self.agenda.put(self.now + lasts, Happening::Resume(who));
                // Others go on: somebody may begin to work on what is not told yet.
                let guard = Happening::TakeGuard { who, lasts: Some(lasts) };
                self.agenda.put(self.now + lasts / 2, guard);
                return;
            }
            let mut is_over = false;
            for change in mem::take(&mut step.changes) {
                is_over |= !self.apply(slot, change);
            }
            let next = if is_over {
                self.coverage.note(Noted::StickyEnd);
                Some(Input::Over)
            } else if step.recount {
                self.coverage.note(Noted::Recount);
                Some(Input::Wake)
            } else {
                None
            };
            asked = asked.then(step);
            match next {
                Some(input) => step = self.step(slot, input),
                None => break,
            }
        }
        self.act(slot, asked);
    }

    fn act(&mut self, slot: usize, asked: Step) {
        let participant = &mut self.participants[slot];
        let who = participant.who;
        let phase = participant.protocol.phase();
        participant.wake =
            asked.wake.map_or(crate::Moment::NEVER, |wake| participant.clock.reaches(wake));
        if matches!(phase, Phase::Following | Phase::Stopped) {
            participant.term = None;
        }
        if asked.abandon
            && let Some(call) = participant.outstanding.take()
        {
            participant.answer = None;
            self.coverage.abandoned(call.kind);
            self.emit(Some(who), What::Abandoned { number: call.number, call: call.kind });
        }
        if let Some(call) = asked.call {
            self.send(slot, call);
        }
        if phase == Phase::Stopped {
            self.stopped(slot);
        } else {
            self.catch_up(slot);
        }
    }

    fn stopped(&mut self, slot: usize) {
        let participant = &mut self.participants[slot];
        participant.is_running = false;
        if let Some(after) = participant.back_after {
            self.agenda.put(self.now + after, Happening::Join { slot });
        }
    }

    /// Tells the elector what came while it did not listen.
    pub(super) fn catch_up(&mut self, slot: usize) {
        let now = self.now;
        let participant = &mut self.participants[slot];
        if !participant.listens(now) {
            return;
        }
        if let Some((number, reply)) = participant.answer.take() {
            self.answer(slot, number, reply);
        }
        let participant = &mut self.participants[slot];
        if !participant.listens(now) {
            return;
        }
        if let Some(input) = participant.mailbox.take() {
            self.give(slot, input);
        }
    }

    /// The protocol is told the answer to its call, if it still waits for it.
    pub(super) fn answer(&mut self, slot: usize, number: u64, reply: Reply) {
        let now = self.now;
        let participant = &mut self.participants[slot];
        let Some(call) = participant.outstanding.filter(|call| call.number == number) else {
            self.coverage.note(Noted::AnsweredToNobody);
            return;
        };
        participant.outstanding = None;
        participant.saw(reply.lease());
        let local = participant.now(now);
        if participant.term.as_ref().is_some_and(|term| term.deadline() <= local) {
            self.coverage.note(Noted::AnsweredAfterDeadline);
        }
        let (who, result) = (participant.who, (&reply).into());
        let left = reply.lease().and_then(|lease| lease.ttl);
        self.coverage.answered(call.kind, result);
        self.emit(Some(who), What::Answered { number, call: call.kind, result, left });
        self.give(slot, Input::Reply(reply));
    }

    /// Applies a change; false if the term turned out to be over already.
    fn apply(&mut self, slot: usize, change: Change) -> bool {
        let participant = &mut self.participants[slot];
        let (who, now) = (Some(participant.who), participant.now(self.now));
        match change {
            Change::Started { fence, deadline } => {
                let mut term = Term::new(fence, deadline);
                // What nobody watches does not begin.
                term.is_secret = mem::take(&mut participant.unwatched);
                let begins = !term.is_secret;
                participant.term = Some(term);
                if begins {
                    self.leader = slot;
                    self.emit(who, What::Started { fence, deadline });
                    self.look_at_deadline(slot);
                }
                return begins;
            }
            Change::Extended { deadline } => {
                let Some(term) = &mut participant.term else { return true };
                let is_earlier = deadline < term.deadline();
                if !term.extend(now, deadline) {
                    return false;
                }
                if is_earlier {
                    self.coverage.note(Noted::EarlierDeadline);
                }
                self.emit(who, What::Extended { deadline });
                self.look_at_deadline(slot);
            }
            Change::Cancelled(reason) => {
                if let Some(term) = &mut participant.term {
                    term.cancel();
                    self.emit(who, What::Cancelled(reason));
                }
            }
            Change::Ended(reason) => {
                let Some(term) = &mut participant.term else { return true };
                term.end(reason);
                // Work in flight is inert from here on, and dropped.
                term.in_flight = 0;
                let is_secret = term.is_secret;
                self.coverage.ended(reason);
                if !is_secret {
                    self.emit(who, What::Ended(reason));
                }
            }
            Change::StillHeld { guards } => {
                self.coverage.note(Noted::GuardsBeyondLease);
                self.emit(who, What::StillHeld(guards));
            }
            Change::Stopped { guards } => {
                if guards > 0 {
                    self.coverage.note(Noted::StoppedOverGuards);
                }
                self.emit(who, What::Stopped(guards));
            }
        }
        true
    }

    /// Somebody looks at the very instant at which the term is to be over.
    fn look_at_deadline(&mut self, slot: usize) {
        let participant = &self.participants[slot];
        if let Some(term) = &participant.term {
            let at = participant.clock.reaches(term.deadline());
            self.agenda.put(at, Happening::Look(participant.who));
        }
    }

    /// Work in flight is about to be polled.
    pub(super) fn look(&mut self, slot: usize) {
        let at = self.now;
        let participant = &mut self.participants[slot];
        if !participant.is_running || at < participant.frozen_until {
            return;
        }
        let now = participant.now(at);
        let who = participant.who;
        if let Some(term) = participant.term.as_mut().filter(|term| !term.is_secret)
            && term.is_live(now)
        {
            let fence = term.fence;
            self.emit(Some(who), What::Polled { fence });
        }
    }

    /// The elector's thread is run again.
    pub(super) fn resume(&mut self, who: crate::Who) {
        if !self.is_current(who) {
            return;
        }
        let frozen_until = self.participants[who.slot].frozen_until;
        if self.now < frozen_until {
            return self.agenda.put(frozen_until, Happening::Resume(who));
        }
        if let Some((asked, step)) = self.participants[who.slot].interrupted.take() {
            self.emit(Some(who), What::Preempted(false));
            self.publish(who.slot, asked, step);
        }
    }

    pub(super) fn thaw(&mut self, who: crate::Who) {
        let slot = who.slot;
        let participant = &self.participants[slot];
        if !self.is_current(who) || self.now < participant.frozen_until {
            return;
        }
        let (had_term, leads) = (participant.term.is_some(), participant.leads(self.now));
        self.emit(Some(who), What::Frozen(false));
        self.coverage.note(Noted::Thawed);
        if had_term && !leads {
            self.coverage.note(Noted::ThawedWithTermOver);
        }
        self.look(slot);
        // An answer and the timer are both due.
        if self.bits().is_multiple_of(4) && self.participants[slot].wake <= self.now {
            self.give(slot, Input::Wake);
        }
        self.catch_up(slot);
    }

    pub(super) fn note_claim(&mut self, slot: usize, call: &Call) {
        match call {
            Call::Acquire(request) if request.observed.is_some() => {
                self.coverage.claimed(self.participants[slot].timing.expiry(), request.when);
            }
            Call::Place(_) => self.coverage.note(Noted::Placed),
            _ => {}
        }
        debug_assert!(self.participants[slot].outstanding.is_none(), "{:?}", CallKind::from(call));
    }
}
