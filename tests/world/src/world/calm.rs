//! The end of all faults: what is left of them has to pass, and then somebody leads in time.

use std::time::Duration;

use tenure::{Expiry, Timing, protocol::Levels};

use super::{Happening, World};
use crate::{
    coverage::Moment as Noted,
    event::{Loss, What, Who},
    network::FAIR_ROUND_TRIP,
    participant::Participant,
    time::Moment,
};

impl World<'_> {
    /// Everything that can be undone is.
    pub(super) fn calm(&mut self) {
        let now = self.now;
        self.is_calm = true;
        self.emit(None, What::Calm);
        let conditions = &mut self.conditions;
        conditions.weather_until = now;
        conditions.outage_until = now;
        conditions.cut_there.fill(now);
        conditions.cut_back.fill(now);
        for slot in 0..self.participants.len() {
            let participant = &mut self.participants[slot];
            participant.preempt = None;
            participant.unwatched = false;
            let was_frozen = participant.frozen_until > now;
            participant.frozen_until = participant.frozen_until.min(now);
            let who = participant.who;
            if was_frozen {
                self.thaw(who);
            }
            self.resume(who);
            self.drop_what_can_be_dropped(slot);
        }
        if self.script.clears {
            self.lose_requests();
            self.agenda.forget(|happening| matches!(happening, Happening::Arrive(_)));
        }
        let settled = |(at, happening): (Moment, &Happening)| match happening {
            Happening::Arrive(_) => Some(at),
            _ => None,
        };
        let settled = self.agenda.iter().filter_map(settled).max();
        self.agenda.put(settled.unwrap_or(now).max(now), Happening::Settle);
    }

    /// What is on its way will not arrive.
    fn lose_requests(&mut self) {
        let lost = |(_, happening): (Moment, &Happening)| match happening {
            Happening::Arrive(request) => {
                Some((request.who, request.number, (&request.call).into()))
            }
            _ => None,
        };
        for (who, number, call) in self.agenda.iter().filter_map(lost).collect::<Vec<_>>() {
            self.emit(Some(who), What::Astray { number, call });
        }
    }

    fn drop_what_can_be_dropped(&mut self, slot: usize) {
        let participant = &mut self.participants[slot];
        let who = participant.who;
        participant.work_epoch += 1;
        let Some(term) = participant.term.as_mut().filter(|_| participant.is_running) else {
            return;
        };
        let (guards, work) = (term.guards - term.forever, term.in_flight);
        term.guards = term.forever;
        term.in_flight = 0;
        let is_awaited = term.is_awaited() && guards + work > 0;
        for _ in 0..guards {
            self.emit(Some(who), What::GuardDropped);
        }
        for _ in 0..work {
            self.emit(Some(who), What::WorkDone);
        }
        self.level_changed(slot, is_awaited);
    }

    /// From here on the bound counts.
    pub(super) fn settle(&mut self) {
        if !self.participants.iter().any(Participant::is_able) && !self.make_one_able() {
            return self.agenda.put(self.now + Duration::from_millis(500), Happening::Settle);
        }
        let bound = self.recovery();
        let leads_by = self.now + bound;
        self.end = self.end.max(leads_by + bound);
        self.agenda.put(self.end, Happening::LoseLeader);
        let is_led = self.participants.iter().any(|participant| participant.leads(self.now));
        self.coverage.note(if is_led { Noted::LedThroughout } else { Noted::Recovered });
        self.emit(None, What::Settled { leads_by });
    }

    /// The leader dies, or hands over, and nothing else happens: somebody else leads in time.
    pub(super) fn lose_leader(&mut self) {
        let now = self.now;
        let Some(slot) = self.participants.iter().position(|leader| leader.leads(now)) else {
            return;
        };
        let leader = &self.participants[slot];
        let (who, levels, releases) = (leader.who, leader.levels(), leader.releases);
        let hands_over = self.bits().is_multiple_of(2) && releases && levels == Levels::default();
        let loss = if hands_over { Loss::HandOver } else { Loss::Death };
        let Some(bound) = self.vacancy(slot, loss) else { return };
        self.end = now + bound + Duration::from_secs(1);
        match loss {
            Loss::Death => {
                self.coverage.note(Noted::FailedOver);
                self.crash(slot, None);
                self.emit(None, What::Vacant { loss, leads_by: now + bound });
            }
            Loss::HandOver => {
                self.handing_over = Some((who, bound));
                self.participants[slot].mailbox.resign = true;
                self.catch_up(slot);
            }
        }
    }

    /// A lease was given back.
    pub(super) fn vacated(&mut self, by: Who) {
        if let Some((who, bound)) = self.handing_over
            && who == by
        {
            self.coverage.note(Noted::HandedOver);
            let leads_by = self.now + bound;
            self.emit(None, What::Vacant { loss: Loss::HandOver, leads_by });
        }
    }

    /// How long nobody leads at most when the leader in this place goes; `None` if nobody is there to follow it.
    fn vacancy(&self, slot: usize, loss: Loss) -> Option<Duration> {
        let held = self.store.row().map_or(Duration::ZERO, |row| row.lease.duration);
        let contends = |(at, other): &(usize, &Participant)| {
            let resigns = other.is_resigning || other.mailbox.resign;
            *at != slot && other.is_able() && !resigns && other.pauses_until <= self.now
        };
        let others = self.participants.iter().enumerate().filter(contends);
        let bound = others.map(|(_, other)| {
            let printed = other.timing.worst_case_with(FAIR_ROUND_TRIP);
            match loss {
                // The lease that stands in the record is the other one's.
                Loss::Death => {
                    printed.fail_over + held.saturating_sub(other.timing.lease_duration())
                }
                Loss::HandOver => printed.hand_over,
            }
        });
        bound.min().map(|bound| self.stretched(bound))
    }

    /// Somebody who wants to lead: nobody would be left to.
    fn make_one_able(&mut self) -> bool {
        let could = |participant: &Participant| {
            let stuck = participant.term.as_ref().is_some_and(|term| term.forever > 0);
            participant.is_running && !participant.is_stopping && !stuck
        };
        if let Some(slot) = self.participants.iter().position(could) {
            if !self.participants[slot].eligible {
                self.change_eligibility(slot);
            }
            return true;
        }
        if !self.may_start() {
            return false;
        }
        let gone = self.participants.iter().position(|participant| !participant.is_running);
        let slot = gone.unwrap_or_else(|| {
            self.crash(0, None);
            0
        });
        self.replace(slot);
        if !self.participants[slot].eligible {
            self.change_eligibility(slot);
        }
        true
    }

    /// How long it takes at most until somebody leads: what is printed, and what the design adds to it.
    fn recovery(&self) -> Duration {
        let now = self.now;
        let able = || self.participants.iter().filter(|participant| participant.is_able());
        let longest = self.script.longest_lease();
        let of = |timing: &Timing| {
            let printed = timing.worst_case_with(FAIR_ROUND_TRIP).recovery;
            // The lease that stands in the record may be somebody else's.
            let leases = if timing.expiry() == Expiry::Both { 2 } else { 1 };
            let longer = (longest - timing.lease_duration()) * leases;
            let look = (timing.retry_period() * 6 / 5).max(timing.retry_delay());
            let first_look = timing.operation_timeout() + look + FAIR_ROUND_TRIP;
            let is_placed_first = self.store.row().is_none();
            let is_watched_first = self.was_set_back && timing.expiry() == Expiry::Either;
            let extra = u32::from(is_placed_first) + u32::from(is_watched_first);
            printed + longer + (first_look + longest) * extra
        };
        let in_time = |participant: &Participant| {
            let timing = &participant.timing;
            let still_resigns = participant.is_resigning || participant.mailbox.resign;
            let until_it_follows = timing.resign_pause() + timing.shutdown_bound();
            let pause = if still_resigns { until_it_follows } else { Duration::ZERO };
            of(timing) + pause.max(participant.pauses_until.since(now))
        };
        // Whoever is ready first takes the lease, if nobody else has it.
        self.stretched(able().map(in_time).min().unwrap_or_default())
    }

    /// What is printed includes clocks that differ by so much; here they may differ by more.
    fn stretched(&self, bound: Duration) -> Duration {
        let printed_ppm = 500;
        let beyond = self.script.max_ppm.max(printed_ppm) - printed_ppm;
        bound.mul_f64(1.0 / (1.0 - f64::from(beyond) / 1_000_000.0))
    }
}
