//! A call on its way to the store and back.

use std::time::Duration;

use tenure::{
    Fence,
    protocol::{Call, Reply},
    store::Outcome,
};

use super::{Happening, Request, World};
use crate::{
    coverage::Moment as Noted,
    event::{CallKind, CallResult, Lateness, What, Who},
    network::{Fate, Weather},
    participant::Outstanding,
    record::Write,
};

/// How long it takes to be told that a store that is away is away.
const REFUSED_AFTER: Duration = Duration::from_millis(1);

impl World<'_> {
    pub(super) fn send(&mut self, slot: usize, call: Call) {
        self.note_claim(slot, &call);
        self.numbers += 1;
        let (number, kind, terms) = (self.numbers, CallKind::from(&call), self.terms);
        let fate = self.fate(slot);
        let participant = &mut self.participants[slot];
        participant.outstanding = Some(Outstanding { number, kind });
        let who = participant.who;
        self.emit(Some(who), What::Sent { number, call: kind, fence: named(&call) });
        let is_cut = self.now < self.conditions.cut_there[slot];
        if is_cut || !fate.is_fair() {
            self.emit(Some(who), What::Astray { number, call: kind });
        }
        if let Some(delay) = fate.failed {
            let failed = Happening::Deliver { who, number, reply: Reply::Failed };
            self.agenda.put(self.now + delay, failed);
        }
        if is_cut {
            return;
        }
        let (answered, worn) = (fate.answered, fate.worn);
        let request = |call, is_double| {
            let request = Request { who, number, call, answered, worn, is_double, terms };
            Happening::Arrive(Box::new(request))
        };
        if let Some(delay) = fate.doubled {
            let copy = request(call.clone(), true);
            self.agenda.put(self.now + delay, copy);
        }
        if let Some(delay) = fate.executed {
            self.agenda.put(self.now + delay, request(call, false));
        }
    }

    /// Each call of a candidate takes the next roll of its own.
    fn fate(&mut self, slot: usize) -> Fate {
        let rolls = &self.script.rolls;
        let participant = &mut self.participants[slot];
        participant.calls += 1;
        // Odd, so that those of different candidates do not go in step.
        let roll = rolls[(participant.calls + slot * 147) % rolls.len()];
        let is_bad = self.now < self.conditions.weather_until;
        Fate::of(roll, if is_bad { self.conditions.weather } else { Weather::Fair })
    }

    /// The request is there; the store executes it, if it is there as well.
    pub(super) fn arrive(&mut self, request: &Request) {
        let Request { who, number, call, answered, .. } = request;
        if self.now < self.conditions.outage_until {
            self.emit(Some(*who), What::Astray { number: *number, call: call.into() });
            if self.conditions.refuses {
                let refusal =
                    Happening::Deliver { who: *who, number: *number, reply: Reply::Failed };
                self.agenda.put(self.now + REFUSED_AFTER, refusal);
            }
            return;
        }
        let before = self.store.log().len();
        let reply = self.store.execute(call, self.now);
        let (kind, result) = (CallKind::from(call), CallResult::from(&reply));
        let late = self.lateness(request);
        let executed = What::Executed { number: *number, call: kind, result, late };
        self.emit(Some(*who), executed);
        self.audit(before, Some(*who));
        match self.store.log()[before..].last().map(|commit| &commit.write) {
            Some(Write::Acquired { .. }) => self.terms += 1,
            Some(Write::Released) => {
                self.send_hints(*who);
                self.vacated(*who);
            }
            _ => {}
        }
        if let Some(back) = answered {
            let reply = worn(reply, request.worn);
            let answer = Happening::Deliver { who: *who, number: *number, reply };
            self.agenda.put(self.now + *back, answer);
        }
    }

    /// Counts every reason for which it is late, and answers the gravest.
    fn lateness(&mut self, request: &Request) -> Option<Lateness> {
        let Request { who, number, call, is_double, terms, .. } = request;
        let participant = &self.participants[who.slot];
        let is_awaited = participant.outstanding.is_some_and(|call| call.number == *number);
        let is_current = self.is_current(*who);
        let reasons = [
            (Lateness::AfterNewTerm, *terms < self.terms),
            (Lateness::AfterRestart, !is_current),
            (Lateness::GivenUp, is_current && !is_awaited && !is_double),
            (Lateness::Doubled, *is_double),
        ];
        let mut gravest = None;
        for (lateness, _) in reasons.into_iter().filter(|(_, is)| *is) {
            self.coverage.late(call.into(), lateness);
            gravest.get_or_insert(lateness);
        }
        gravest
    }

    pub(super) fn deliver(&mut self, who: Who, number: u64, reply: Reply) {
        let slot = who.slot;
        let is_cut = self.now < self.conditions.cut_back[slot];
        if !self.is_current(who) || is_cut {
            let awaited = self.participants[slot].outstanding.filter(|call| call.number == number);
            if let Some(call) = awaited.filter(|_| is_cut) {
                self.emit(Some(who), What::Astray { number, call: call.kind });
            }
            self.coverage.note(Noted::AnsweredToNobody);
            return;
        }
        if self.participants[slot].listens(self.now) {
            self.look(slot);
            self.answer(slot, number, reply);
        } else {
            self.participants[slot].answer.get_or_insert((number, reply));
        }
    }

    /// A release wakes the others: soon, late, twice or not at all.
    fn send_hints(&mut self, by: Who) {
        if self.handing_over.is_some() {
            return;
        }
        for slot in 0..self.participants.len() {
            let who = self.participants[slot].who;
            let fate = self.fate(slot);
            if who == by || self.now < self.conditions.cut_back[slot] {
                continue;
            }
            if fate.executed.is_none() || fate.answered.is_none() {
                self.coverage.note(Noted::HintLost);
            } else {
                for delay in fate.executed.into_iter().chain(fate.doubled) {
                    self.agenda.put(self.now + delay, Happening::Hint(who));
                }
            }
        }
    }

    pub(super) fn hint(&mut self, slot: usize) {
        if self.now >= self.conditions.cut_back[slot] {
            self.participants[slot].mailbox.hint = true;
            self.catch_up(slot);
        }
    }
}

/// What is left of the lease when the store looks that much later than it wrote.
fn worn(mut reply: Reply, by: Duration) -> Reply {
    if let Reply::Acquired(Outcome::Won(lease)) | Reply::Renewed(Outcome::Won(lease)) = &mut reply {
        lease.ttl = lease.ttl.map(|ttl| ttl.saturating_sub(by));
    }
    reply
}

/// The term that a call names.
fn named(call: &Call) -> Option<Fence> {
    match call {
        Call::Renew(request) => Some(request.fence),
        Call::Release(request) => Some(request.fence),
        Call::Inspect | Call::Place(_) | Call::Acquire(_) => None,
    }
}
