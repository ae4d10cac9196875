//! What the oracle keeps about one process: all of it from what was published, nothing from its protocol.

use std::time::Duration;

use tenure::{Fence, Identity, Instant, TermEnd, Timing};

use super::{
    Property::{self, *},
    debt::{Held, Means},
};
use crate::{
    event::{CallKind, CallResult, What, Who, Wish},
    time::{Moment, Skew},
};

/// What is not as it must be.
pub(super) type Finding = (Property, String);

#[derive(Clone, Debug)]
pub(super) struct Books {
    pub(super) who: Who,
    pub(super) identity: Identity,
    timing: Timing,
    clock: Skew,
    is_running: bool,
    eligible: bool,
    /// Until when work may take, once it was told to stop.
    shutdown: Option<Instant>,
    is_resigning: bool,
    paused_until: Instant,
    is_preempted: bool,
    /// When its thread was run again.
    resumed_at: Option<Moment>,
    term: Option<Term>,
    /// Guards that are held, and of which term.
    pub(super) guards: usize,
    guarded: Option<Fence>,
    in_flight: usize,
    /// What its own clock showed when the store last wrote for it, and under which fence.
    confirmed: Option<(Fence, Instant)>,
    /// When it was given the lease, in true time.
    acquired_at: Moment,
    /// The term that its outstanding renewal names.
    renewing: Option<Fence>,
    /// What its own clock showed when its last call was sent.
    sent_at: Instant,
    /// The latest deadline by the last answer to a write.
    worth_until: Option<Instant>,
    /// Whether it gives leases back.
    releases: bool,
    means: Means,
}

#[derive(Clone, Debug)]
struct Term {
    fence: Fence,
    deadline: Instant,
    /// Somebody asked for a hand-over: until when its work may take.
    drains_until: Option<Instant>,
    resigned: bool,
    is_cancelled: bool,
    is_lost: bool,
    /// It began when all was well.
    must_stay: bool,
}

impl Books {
    pub(super) fn new(
        who: Who,
        identity: Identity,
        timing: Timing,
        clock: Skew,
        eligible: bool,
        releases: bool,
    ) -> Self {
        Self {
            who,
            identity,
            timing,
            clock,
            is_running: true,
            eligible,
            shutdown: None,
            is_resigning: false,
            paused_until: Instant::ORIGIN,
            is_preempted: false,
            resumed_at: None,
            term: None,
            guards: 0,
            guarded: None,
            in_flight: 0,
            confirmed: None,
            acquired_at: Moment::START,
            renewing: None,
            sent_at: Instant::ORIGIN,
            worth_until: None,
            releases,
            means: Means::default(),
        }
    }

    /// Whether its work would be polled at this instant, if there is any.
    pub(super) fn is_live(&self, at: Moment) -> bool {
        let now = self.clock.shows(at);
        self.is_running && self.term.as_ref().is_some_and(|term| now < term.deadline)
    }

    /// The fence of its term, as long as that was not said to be over.
    pub(super) fn fence(&self) -> Option<Fence> {
        self.term.as_ref().map(|term| term.fence)
    }

    /// Guards of this term that are held.
    pub(super) fn guards_of(&self, fence: Fence) -> usize {
        if self.is_running && self.guarded == Some(fence) { self.guards } else { 0 }
    }

    /// The store has written for it.
    pub(super) fn confirm(&mut self, fence: Fence, at: Moment) {
        if self.confirmed.is_none_or(|(confirmed, _)| confirmed != fence) {
            self.acquired_at = at;
        }
        self.confirmed = Some((fence, self.clock.shows(at)));
    }

    pub(super) fn observe(
        &mut self,
        at: Moment,
        what: &What,
        settled_at: Option<Moment>,
    ) -> Result<(), Finding> {
        let now = self.clock.shows(at);
        self.means.observe(at, what);
        match *what {
            What::Crashed => {
                self.is_running = false;
                self.term = None;
                self.guards = 0;
            }
            What::Stopped(_) => self.is_running = false,
            What::Preempted(is) => {
                self.is_preempted = is;
                self.resumed_at = Some(at);
            }
            What::Asked(wish) => self.asked(now, wish),
            What::Sent { call, fence, .. } => {
                self.sent_at = now;
                return self.sent(call, fence);
            }
            What::Answered { call, result, left, .. } => self.answered(call, result, left),
            What::Abandoned { .. } => self.renewing = None,
            What::Started { fence, deadline } => {
                // Nobody can publish in time whose thread is not run.
                let is_late = now >= deadline && self.resumed_at != Some(at);
                require(!is_late, StartsInTime, || format!("{fence} begins after its deadline"))?;
                return self.started(now, fence, deadline, settled_at);
            }
            What::Extended { deadline } => return self.extended(now, deadline),
            What::Cancelled(_) => {
                if let Some(term) = &mut self.term {
                    term.is_cancelled = true;
                }
            }
            What::Ended(reason) => return self.ended(now, reason),
            What::GuardTaken(_) => {
                self.guards += 1;
                self.guarded = self.fence();
            }
            What::GuardDropped => self.guards -= 1,
            What::WorkBegun => self.in_flight += 1,
            What::WorkDone => self.in_flight = self.in_flight.saturating_sub(1),
            What::Polled { fence } => return self.polled(now, fence),
            What::Executed { number, result: CallResult::Won, .. } => {
                return require(!self.means.has_left(number), GivenBack, || {
                    "it has stopped, and did not wait for what it won".to_owned()
                });
            }
            What::Joined
            | What::Frozen(_)
            | What::Executed { .. }
            | What::Astray { .. }
            | What::StillHeld(_)
            | What::Struck(_)
            | What::Calm
            | What::Settled { .. }
            | What::Vacant { .. } => {}
        }
        Ok(())
    }

    fn asked(&mut self, now: Instant, wish: Wish) {
        match wish {
            Wish::Resign => {
                self.is_resigning = self.term.is_some();
                self.paused_until = now + self.timing.resign_pause();
                self.leave(now);
            }
            Wish::Shutdown(drain) => {
                let until = now + drain.min(self.timing.drain_timeout());
                self.shutdown = Some(self.shutdown.map_or(until, |before| before.min(until)));
            }
            Wish::Eligible(eligible) => {
                self.eligible = eligible;
                if !eligible {
                    self.leave(now);
                }
            }
        }
    }

    /// Work that is under way has its time from here on.
    fn leave(&mut self, now: Instant) {
        let drain = self.timing.drain_timeout();
        if let Some(term) = &mut self.term {
            term.resigned = true;
            term.drains_until.get_or_insert(now + drain);
        }
    }

    fn sent(&mut self, call: CallKind, fence: Option<Fence>) -> Result<(), Finding> {
        match (call, fence) {
            (CallKind::Renew, fence) => {
                self.renewing = fence;
                self.heeds_proof()
            }
            (CallKind::Release, Some(fence)) => self.may_release(fence),
            _ => Ok(()),
        }
    }

    /// Nothing of this term may be left when its lease is given back.
    fn may_release(&self, fence: Fence) -> Result<(), Finding> {
        let guards = self.guards_of(fence);
        require(self.fence() != Some(fence), NoReleaseOverWork, || {
            format!("{fence} is given back, and its term is not over")
        })?;
        require(guards == 0, NoReleaseOverWork, || {
            format!("{fence} is given back while {guards} guards are held")
        })
    }

    fn answered(&mut self, call: CallKind, result: CallResult, left: Option<Duration>) {
        let renewing = self.renewing.take();
        if matches!(call, CallKind::Acquire | CallKind::Renew) {
            let margin = self.timing.safety_margin();
            self.worth_until = left.map(|left| self.sent_at + left.saturating_sub(margin));
        }
        if let Some(term) = &mut self.term
            && (call, result) == (CallKind::Renew, CallResult::Lost)
            && renewing == Some(term.fence)
        {
            term.is_lost = true;
        }
    }

    fn started(
        &mut self,
        now: Instant,
        fence: Fence,
        deadline: Instant,
        settled_at: Option<Moment>,
    ) -> Result<(), Finding> {
        require(self.term.is_none(), OverIsOver, || "its last term is not over".to_owned())?;
        require(self.guards == 0, NoTermOverGuards, || {
            format!("{} guards of its last term are held", self.guards)
        })?;
        require(self.eligible, LeadersAreWilling, || "it is not eligible".to_owned())?;
        require(self.shutdown.is_none(), LeadersAreWilling, || "it was told to stop".to_owned())?;
        require(now >= self.paused_until, ResignPauseIsKept, || {
            let early = self.paused_until.saturating_since(now);
            format!("it pauses for another {early:?}")
        })?;
        self.in_flight = 0;
        self.term = Some(Term {
            fence,
            deadline,
            drains_until: None,
            resigned: false,
            is_cancelled: false,
            is_lost: false,
            // What happened to the record before that may still cost it.
            must_stay: settled_at.is_some_and(|settled| self.acquired_at > settled),
        });
        self.deadline_is_proven(fence, deadline)
    }

    fn extended(&mut self, now: Instant, deadline: Instant) -> Result<(), Finding> {
        self.heeds_proof()?;
        let Some(term) = &mut self.term else {
            return Err((OverIsOver, "what is over was extended".to_owned()));
        };
        let fence = term.fence;
        let before = std::mem::replace(&mut term.deadline, deadline);
        require(now < before, OverIsOver, || {
            format!("{fence} was over for {:?}, and was extended", now.saturating_since(before))
        })?;
        self.deadline_is_proven(fence, deadline)
    }

    fn deadline_is_proven(&self, fence: Fence, deadline: Instant) -> Result<(), Finding> {
        let (lease, margin) = (self.timing.lease_duration(), self.timing.safety_margin());
        let valid = lease.saturating_sub(margin);
        let proven = self.confirmed.filter(|(confirmed, _)| *confirmed == fence);
        let most = proven.map_or(Instant::ORIGIN, |(_, written)| written + valid);
        let worth = self.worth_until.is_none_or(|until| deadline <= until);
        require(worth, DeadlinesAreProven, || {
            format!("the deadline of {fence} is later than what the answer was worth")
        })?;
        require(deadline <= most, DeadlinesAreProven, || {
            let by = deadline.saturating_since(most);
            format!("the deadline of {fence} is {by:?} later than what was confirmed")
        })
    }

    fn ended(&mut self, now: Instant, reason: TermEnd) -> Result<(), Finding> {
        let Some(term) = self.term.take() else {
            return Err((EndsAreProven, "there was no term".to_owned()));
        };
        let Term { fence, deadline, drains_until, resigned, is_lost, must_stay, .. } = term;
        if std::mem::take(&mut self.is_resigning) {
            self.paused_until = self.paused_until.max(now + self.timing.resign_pause());
        }
        let proven = match reason {
            TermEnd::Expired => now >= deadline,
            TermEnd::Lost => is_lost,
            TermEnd::Resigned => resigned,
            TermEnd::Shutdown => self.shutdown.is_some(),
            _ => false,
        };
        require(proven, EndsAreProven, || format!("{fence} ended: {reason}, which was not so"))?;
        let work = self.guards_of(fence) + self.in_flight;
        self.in_flight = 0;
        if matches!(reason, TermEnd::Resigned | TermEnd::Shutdown) {
            // A shutdown may have come later than a resignation, and shortened its drain.
            let until = drains_until.into_iter().chain(self.shutdown).min();
            require(work == 0 || until.is_some_and(|until| now >= until), DrainsFirst, || {
                format!("{fence} ended with {work} pieces of work before its drain was over")
            })?;
        }
        require(!must_stay || resigned, StaysLeader, || format!("{fence} ended: {reason}"))
    }

    fn polled(&self, now: Instant, fence: Fence) -> Result<(), Finding> {
        let live = self.term.as_ref().is_some_and(|t| t.fence == fence && now < t.deadline);
        require(live, NoPollPastDeadline, || format!("work of {fence} was polled"))?;
        self.heeds_proof()
    }

    /// As soon as it has had time to publish what it was told.
    fn heeds_proof(&self) -> Result<(), Finding> {
        let ignored = self.term.as_ref().filter(|term| term.is_lost && !self.is_preempted);
        require(ignored.is_none(), ProofIsHeeded, || "its term was proven lost".to_owned())?;
        let asked = self.term.as_ref().filter(|term| term.resigned || self.shutdown.is_some());
        let goes_on = asked.filter(|term| !term.is_cancelled && !self.is_preempted);
        require(goes_on.is_none(), LeadersAreWilling, || "it was asked to hand over".to_owned())
    }

    /// When it must have given that back; `None` if it need not, or may not.
    pub(super) fn gives_back_by(&self, held: &Held) -> Option<Moment> {
        if self.needs_nothing() { self.means.due(held, &self.timing) } else { None }
    }

    pub(super) fn may_stop_over(&self, held: &Held, at: Moment) -> bool {
        !self.needs_nothing() || self.means.may_stop_over(held, at)
    }

    /// It could give back what it holds.
    fn needs_nothing(&self) -> bool {
        self.is_running && self.releases && self.term.is_none() && self.guards == 0
    }

    /// Whether it waited for the answer to the call that was executed last.
    pub(super) fn awaits(&self) -> bool {
        self.means.is_awaited()
    }

    /// How long its term lasts from here on, if nobody extends it.
    pub(super) fn remaining(&self, at: Moment) -> Duration {
        let now = self.clock.shows(at);
        self.term.as_ref().map_or(Duration::ZERO, |term| term.deadline.saturating_since(now))
    }
}

pub(super) fn require(
    holds: bool,
    property: Property,
    why: impl FnOnce() -> String,
) -> Result<(), Finding> {
    if holds { Ok(()) } else { Err((property, why())) }
}
