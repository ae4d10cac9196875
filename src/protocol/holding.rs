//! Holding the lease: leading, draining, and giving it back.

use std::time::Duration;

use super::{Call, Change, Levels, Protocol, State, Step};
use crate::{
    instant::Instant,
    lease::{Fence, TermEnd},
    store::{Outcome, ReleaseRequest, RenewRequest},
};

/// A term of this candidate.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Tenure {
    pub(super) fence: Fence,
    pub(super) deadline: Instant,
    pub(super) next_renew: Instant,
}

impl Tenure {
    /// When the next renewal or the end is due.
    pub(super) fn due(&self, is_renewing: bool) -> Instant {
        if is_renewing { self.deadline } else { self.deadline.min(self.next_renew) }
    }

    pub(super) fn instants(&mut self) -> Vec<&mut Instant> {
        vec![&mut self.deadline, &mut self.next_renew]
    }
}

/// A term that is over, or a lease on which none was built.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Relinquishing {
    /// What is to be released; nothing once the lease is known to be somebody else's.
    release: Option<Fence>,
    since: Instant,
    /// When to say next that guards are still held.
    say: Instant,
}

impl Relinquishing {
    pub(super) fn new(now: Instant, release: Option<Fence>, patience: Duration) -> Self {
        Self { release, since: now, say: now + patience }
    }

    pub(super) fn instants(&mut self) -> Vec<&mut Instant> {
        vec![&mut self.since, &mut self.say]
    }
}

impl Protocol {
    fn tenure_mut(&mut self) -> Option<&mut Tenure> {
        match &mut self.state {
            State::Leading(tenure) | State::Draining { tenure, .. } => Some(tenure),
            State::Following(_) | State::Relinquishing(_) | State::Stopped => None,
        }
    }

    pub(super) fn end_at_deadline(&mut self, now: Instant, step: &mut Step) {
        if self.tenure_mut().is_some_and(|tenure| now >= tenure.deadline) {
            self.expire(now, step);
        }
    }

    pub(super) fn expire(&mut self, now: Instant, step: &mut Step) {
        if self.tenure_mut().is_some() {
            self.end(now, TermEnd::Expired, step);
        }
    }

    fn end(&mut self, now: Instant, reason: TermEnd, step: &mut Step) {
        let release = self.tenure_mut().map(|t| t.fence).filter(|_| reason != TermEnd::Lost);
        step.changes.push(Change::Ended(reason));
        step.recount = true;
        self.relinquish(now, release);
    }

    pub(super) fn relinquish(&mut self, now: Instant, release: Option<Fence>) {
        let patience = self.timing.lease_duration();
        let release = release.filter(|_| self.releases);
        self.state = State::Relinquishing(Relinquishing::new(now, release, patience));
    }

    pub(super) fn renew_when_due(&mut self, now: Instant, step: &mut Step) {
        let is_renewing = self.outstanding.is_some();
        match self.tenure_mut() {
            Some(tenure) if !is_renewing && now >= tenure.next_renew => {
                let fence = tenure.fence;
                let duration = self.timing.lease_duration();
                let request = RenewRequest::new(self.identity.clone(), fence, duration);
                self.call(now, Call::Renew(request), step);
            }
            _ => {}
        }
    }

    pub(super) fn renewed(
        &mut self,
        now: Instant,
        sent: Instant,
        outcome: &Outcome,
        step: &mut Step,
    ) {
        let timing = self.timing;
        self.known.saw(outcome.lease(), now);
        if let State::Relinquishing(relinquishing) = &mut self.state {
            if matches!(outcome, Outcome::Lost(_)) {
                relinquishing.release = None;
            }
            return;
        }
        let is_ours = outcome.lease().is_some_and(|lease| lease.is_held_by(&self.identity));
        let Some(tenure) = self.tenure_mut() else { return };
        match outcome {
            Outcome::Won(lease) if is_ours && lease.fence == tenure.fence => {
                tenure.deadline = timing.hold_deadline(sent, lease.ttl);
                tenure.next_renew = sent + timing.renew_interval();
                let deadline = tenure.deadline;
                step.changes.push(Change::Extended { deadline });
                self.end_at_deadline(now, step);
            }
            // The guarded update matched nothing, or (a store that breaks its contract) somebody else's term.
            Outcome::Won(_) | Outcome::Lost(_) => self.end(now, TermEnd::Lost, step),
        }
    }

    pub(super) fn renew_failed(&mut self, now: Instant) {
        let delay = self.timing.retry_delay();
        if let Some(tenure) = self.tenure_mut() {
            tenure.next_renew = now + delay;
        }
    }

    /// Begins a voluntary end; a shutdown takes over from a resignation that is under way, with what is left of its time.
    pub(super) fn drain(&mut self, now: Instant, reason: TermEnd, step: &mut Step) {
        let drained = self.shutdown.unwrap_or(now + self.timing.drain_timeout());
        match &mut self.state {
            State::Leading(tenure) => {
                let tenure = tenure.clone();
                self.state = State::Draining { tenure, reason, until: drained };
                step.changes.push(Change::Cancelled(reason));
                step.recount = true;
            }
            State::Draining { reason: current, until, .. } if reason == TermEnd::Shutdown => {
                *current = reason;
                *until = drained.min(*until);
            }
            _ => {}
        }
    }

    pub(super) fn proceed_draining(&mut self, now: Instant, levels: Levels, step: &mut Step) {
        let State::Draining { reason, until, .. } = self.state else { return };
        if levels == Levels::default() || now >= until {
            self.end(now, reason, step);
        } else {
            self.renew_when_due(now, step);
        }
    }

    pub(super) fn proceed_relinquishing(&mut self, now: Instant, levels: Levels, step: &mut Step) {
        let State::Relinquishing(relinquishing) = &self.state else { return };
        if levels.guards > 0 {
            return self.wait_for_guards(now, levels.guards, step);
        }
        match (&self.outstanding, relinquishing.release) {
            // A renewal is awaited: it tells whether there is anything to release. So is the release itself.
            (Some(_), _) => {}
            (None, Some(fence)) => {
                let request = ReleaseRequest::new(self.identity.clone(), fence);
                self.call(now, Call::Release(request), step);
            }
            (None, None) => {
                self.follow(now, now);
                self.proceed_following(now, step);
            }
        }
    }

    /// Guarded work is never released over.
    fn wait_for_guards(&mut self, now: Instant, guards: usize, step: &mut Step) {
        let State::Relinquishing(relinquishing) = &self.state else { return };
        if now < self.patience(relinquishing) {
            return;
        }
        if self.last_wait(relinquishing).is_some_and(|last| now >= last) {
            return self.stop(guards, step);
        }
        let say = now + self.timing.lease_duration();
        step.changes.push(Change::StillHeld { guards });
        if let State::Relinquishing(relinquishing) = &mut self.state {
            relinquishing.say = say;
        }
    }

    /// When to do something about guards that are still held.
    pub(super) fn patience(&self, relinquishing: &Relinquishing) -> Instant {
        let last = self.last_wait(relinquishing);
        last.map_or(relinquishing.say, |last| last.min(relinquishing.say))
    }

    /// When a shutdown stops waiting for guards. A drain that has used up its time leaves a moment for polls that were
    /// running when the term ended. `None` while there is no shutdown.
    fn last_wait(&self, relinquishing: &Relinquishing) -> Option<Instant> {
        let moment = self.timing.retry_delay().min(self.timing.operation_timeout());
        Some(self.shutdown?.max(relinquishing.since + moment))
    }
}
