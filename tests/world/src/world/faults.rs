//! What each fault does.

use std::time::Duration;

use tenure::protocol::Call;

use super::{Happening, World};
use crate::{
    event::{What, Who},
    fault::{Fault, Way, Whom},
    participant::Participant,
    record::Write,
    script::Ahead,
};

/// How often it is tried whether a process may start.
const TRY_AGAIN: Duration = Duration::from_millis(500);

impl World<'_> {
    pub(super) fn strike(&mut self, fault: Fault) {
        if self.befall(fault) {
            self.coverage.struck(fault.kind());
        }
    }

    /// Whether it could strike at all.
    fn befall(&mut self, fault: Fault) -> bool {
        let now = self.now;
        let slot = match fault {
            Fault::Partition { whom, .. }
            | Fault::Freeze { whom, .. }
            | Fault::Preempt { whom, .. }
            | Fault::Unwatched { whom }
            | Fault::Crash { whom, .. }
            | Fault::Resign { whom }
            | Fault::Shutdown { whom, .. }
            | Fault::Ineligible { whom, .. }
            | Fault::Guard { whom, .. }
            | Fault::Work { whom, .. }
            | Fault::FalseHint { whom } => self.slot(whom),
            _ => 0,
        };
        let strikes = match fault {
            Fault::Crash { .. }
            | Fault::Freeze { .. }
            | Fault::Preempt { .. }
            | Fault::Unwatched { .. }
            | Fault::Resign { .. }
            | Fault::Shutdown { .. }
            | Fault::Ineligible { .. }
            | Fault::FalseHint { .. } => self.participants[slot].is_running,
            Fault::Guard { .. } | Fault::Work { .. } => self.admits(slot),
            Fault::Depose => self.store.row().is_some(),
            Fault::Delete => self.may_delete(),
            Fault::Restore { lasts, .. } => now + self.restore_takes(lasts) < self.script.calm_from,
            Fault::SetClock { ahead_ms } => ahead_ms < 0 || self.may_set_ahead(),
            Fault::Weather { .. }
            | Fault::Partition { .. }
            | Fault::Outage { .. }
            | Fault::Suspend { .. } => true,
        };
        if !strikes {
            return false;
        }
        self.emit(Some(self.participants[slot].who), What::Struck(fault));
        match fault {
            Fault::Weather { weather, lasts } => {
                self.conditions.weather = weather;
                self.conditions.weather_until = now + lasts;
            }
            Fault::Partition { way, lasts, .. } => self.cut(slot, way, lasts),
            Fault::Outage { refuses, lasts } => {
                self.conditions.refuses = refuses;
                self.conditions.outage_until = self.conditions.outage_until.max(now + lasts);
            }
            Fault::Freeze { lasts, .. } => self.freeze(slot, lasts),
            Fault::Suspend { machine, lasts } => {
                for slot in 0..self.participants.len() {
                    if self.participants[slot].machine == machine {
                        self.cut(slot, Way::Both, lasts);
                        self.freeze(slot, lasts);
                    }
                }
            }
            Fault::Preempt { lasts, .. } => self.participants[slot].preempt = Some(lasts),
            Fault::Unwatched { .. } => self.participants[slot].unwatched = true,
            Fault::Crash { back_after, .. } => self.crash(slot, back_after),
            Fault::Resign { .. } => {
                self.participants[slot].mailbox.resign = true;
                self.catch_up(slot);
            }
            Fault::Shutdown { within, back_after, .. } => {
                let participant = &mut self.participants[slot];
                participant.is_stopping = true;
                participant.back_after = Some(back_after);
                participant.mailbox.shutdown = Some(within.unwrap_or(Duration::MAX));
                self.catch_up(slot);
            }
            Fault::Ineligible { lasts, .. } => {
                self.change_eligibility(slot);
                self.agenda.put(now + lasts, Happening::ChangeBack { slot });
            }
            Fault::Guard { lasts, .. } => self.take_guard(slot, lasts),
            Fault::Work { lasts, .. } => self.begin_work(slot, lasts),
            Fault::FalseHint { .. } => self.hint(slot),
            Fault::Depose => self.write(|store, at| {
                store.depose(at);
            }),
            Fault::Delete => {
                self.deleted_at = Some(now);
                self.write(|store, at| store.delete(at));
            }
            Fault::Restore { writes, lasts } => {
                let back = now + self.restore_takes(lasts);
                self.conditions.refuses = false;
                self.conditions.outage_until = self.conditions.outage_until.max(back);
                self.agenda.put(back, Happening::Restore { writes });
            }
            Fault::SetClock { ahead_ms } => {
                self.clock_set_at = Some(now);
                self.was_set_back |= ahead_ms < 0;
                self.store.set_clock_ahead(ahead_ms * 1_000_000);
            }
        }
        true
    }

    fn slot(&self, whom: Whom) -> usize {
        match whom {
            Whom::Slot(slot) => slot % self.participants.len(),
            Whom::Leader => self.leader,
        }
    }

    fn cut(&mut self, slot: usize, way: Way, lasts: Duration) {
        let until = self.now + lasts;
        let (there, back) =
            (&mut self.conditions.cut_there[slot], &mut self.conditions.cut_back[slot]);
        if way != Way::Back {
            *there = (*there).max(until);
        }
        if way != Way::There {
            *back = (*back).max(until);
        }
    }

    fn freeze(&mut self, slot: usize, lasts: Duration) {
        let until = self.now + lasts;
        let participant = &mut self.participants[slot];
        if participant.is_running {
            participant.frozen_until = participant.frozen_until.max(until);
            let who = participant.who;
            self.emit(Some(who), What::Frozen(true));
            self.agenda.put(until, Happening::Thaw(who));
        }
    }

    pub(super) fn crash(&mut self, slot: usize, back_after: Option<Duration>) {
        let participant = &mut self.participants[slot];
        participant.is_running = false;
        participant.term = None;
        participant.outstanding = None;
        let who = participant.who;
        self.emit(Some(who), What::Crashed);
        if let Some(after) = back_after {
            self.agenda.put(self.now + after, Happening::Join { slot });
        }
    }

    /// Another process takes the place of one that is gone, unless that would be what the design assumes nobody does: a
    /// fresh candidate cannot know of a lease that is live though its record was deleted.
    pub(super) fn rejoin(&mut self, slot: usize) {
        if self.participants[slot].is_running || self.is_calm {
            return;
        }
        if self.may_start() {
            self.replace(slot);
        } else {
            self.agenda.put(self.now + TRY_AGAIN, Happening::Join { slot });
        }
    }

    pub(super) fn replace(&mut self, slot: usize) {
        let Participant { who, calls, .. } = &self.participants[slot];
        let who = Who { slot, incarnation: who.incarnation + 1 };
        let candidate = &self.script.candidates[slot];
        self.participants[slot] = Participant::new(who, candidate, *calls);
        self.begin(slot);
    }

    pub(super) fn may_start(&self) -> bool {
        if self.script.only_floors {
            let highest = self.store.highest_fence();
            let is_placed = self.store.log().last().is_some_and(|last| last.write == Write::Placed);
            // Whoever placed it has seen the highest one.
            return is_placed || self.store.row().map(|row| row.lease.fence) >= highest;
        }
        let over = self.script.longest_lease() * 3 / 2;
        let long_ago = |deleted| self.now.since(deleted) > over;
        self.store.row().is_some() || self.deleted_at.is_none_or(long_ago)
    }

    /// Not while somebody has not seen it, nor while a request is on its way that would create one as if there had never
    /// been any.
    fn may_delete(&self) -> bool {
        let Some(row) = self.store.row() else { return false };
        let has_seen = |participant: &Participant| {
            participant.seen.is_some_and(|(longest, highest)| {
                longest >= row.lease.duration && highest >= row.lease.fence
            })
        };
        let creates = |happening: &Happening| match happening {
            Happening::Arrive(request) => match &request.call {
                Call::Acquire(request) => request.observed.is_none(),
                Call::Place(_) => true,
                _ => false,
            },
            _ => false,
        };
        let mut running = self.participants.iter().filter(|participant| participant.is_running);
        running.all(has_seen)
            && !self.agenda.iter().any(|(_, happening)| creates(happening))
            && self.may_lose()
    }

    /// Where nothing but what candidates have seen makes fences rise: whether all of them have seen the highest one, and
    /// none of them asks for the lease at this moment, as it was before.
    pub(super) fn may_lose(&self) -> bool {
        let highest = self.store.highest_fence();
        let has_seen = |participant: &Participant| {
            participant.seen.is_some_and(|(_, seen)| Some(seen) >= highest)
        };
        let claims = |happening: &Happening| match happening {
            Happening::Arrive(request) => matches!(request.call, Call::Acquire(_) | Call::Place(_)),
            _ => false,
        };
        let mut running = self.participants.iter().filter(|participant| participant.is_running);
        !self.script.only_floors
            || running.all(has_seen) && !self.agenda.iter().any(|(_, happening)| claims(happening))
    }

    /// Once within a lease, if it counts.
    fn may_set_ahead(&self) -> bool {
        let apart = self.script.longest_lease() * 3 / 2;
        self.script.ahead == Ahead::AnyFar
            || self.clock_set_at.is_none_or(|at| self.now.since(at) > apart)
    }

    /// No lease that was held before is still valid when the store comes back.
    fn restore_takes(&self, lasts: Duration) -> Duration {
        self.script.longest_lease() * 5 / 4 + lasts
    }

    pub(super) fn change_eligibility(&mut self, slot: usize) {
        let participant = &mut self.participants[slot];
        if participant.is_running {
            participant.eligible = !participant.eligible;
            participant.mailbox.eligible = Some(participant.eligible);
            self.catch_up(slot);
        }
    }

    /// Whether somebody could begin to work there now.
    fn admits(&self, slot: usize) -> bool {
        let participant = &self.participants[slot];
        let is_awake = self.now >= participant.frozen_until;
        is_awake && participant.leads(self.now)
    }

    pub(super) fn take_guard(&mut self, slot: usize, lasts: Option<Duration>) {
        let now = self.now;
        let participant = &mut self.participants[slot];
        let (who, epoch, local) = (participant.who, participant.work_epoch, participant.now(now));
        let Some(term) = &mut participant.term else { return };
        if now < participant.frozen_until || term.is_secret || !term.admits(local) {
            return;
        }
        term.guards += 1;
        term.forever += u32::from(lasts.is_none());
        self.emit(Some(who), What::GuardTaken(lasts));
        if let Some(lasts) = lasts {
            self.agenda.put(now + lasts, Happening::DropGuard { who, epoch });
        }
    }

    pub(super) fn drop_guard(&mut self, who: Who, epoch: u32) {
        if !self.is_at_work(who, epoch) {
            return;
        }
        let frozen_until = self.participants[who.slot].frozen_until;
        if self.now < frozen_until {
            return self.agenda.put(frozen_until, Happening::DropGuard { who, epoch });
        }
        let Some(term) = &mut self.participants[who.slot].term else { return };
        term.guards -= 1;
        let is_awaited = term.guards == 0 && term.is_awaited();
        self.emit(Some(who), What::GuardDropped);
        self.level_changed(who.slot, is_awaited);
    }

    fn begin_work(&mut self, slot: usize, lasts: Option<Duration>) {
        let participant = &mut self.participants[slot];
        let (who, epoch, local) =
            (participant.who, participant.work_epoch, participant.now(self.now));
        let Some(term) = &mut participant.term else { return };
        if term.is_secret || !term.admits(local) {
            return;
        }
        term.in_flight += 1;
        self.emit(Some(who), What::WorkBegun);
        if let Some(lasts) = lasts {
            self.agenda.put(self.now + lasts, Happening::FinishWork { who, epoch });
        }
    }

    pub(super) fn finish_work(&mut self, who: Who, epoch: u32) {
        if !self.is_at_work(who, epoch) {
            return;
        }
        let frozen_until = self.participants[who.slot].frozen_until;
        if self.now < frozen_until {
            return self.agenda.put(frozen_until, Happening::FinishWork { who, epoch });
        }
        let Some(term) = &mut self.participants[who.slot].term else { return };
        // That of a term that is over was dropped with it.
        if term.in_flight > 0 {
            term.in_flight -= 1;
            let is_awaited = term.in_flight == 0 && term.is_awaited();
            self.emit(Some(who), What::WorkDone);
            self.level_changed(who.slot, is_awaited);
        }
    }

    fn is_at_work(&self, who: Who, epoch: u32) -> bool {
        self.is_current(who) && self.participants[who.slot].work_epoch == epoch
    }

    pub(super) fn level_changed(&mut self, slot: usize, is_awaited: bool) {
        if is_awaited {
            self.participants[slot].mailbox.changed = true;
            self.catch_up(slot);
        }
    }
}
