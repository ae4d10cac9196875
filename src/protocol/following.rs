//! Following: look, and take the lease when it may be taken.

use std::time::Duration;

use super::{Call, CallKind, Change, Jitter, Pause, Protocol, State, Step, holding::Tenure};
use crate::{
    instant::Instant,
    lease::Lease,
    store::{AcquireRequest, Observed, PlaceRequest, When},
};

/// At least this long lies between two looks that something other than the passing of time has caused.
pub(super) const SPACING: Duration = Duration::from_millis(20);

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Following {
    next_look: Instant,
    /// A hint came while a call was outstanding.
    hinted: bool,
    /// An acquire may still have won something: look before stopping.
    unsettled: bool,
}

impl Following {
    pub(super) fn looking_at(next_look: Instant) -> Self {
        Self { next_look, hinted: false, unsettled: false }
    }

    pub(super) fn next_look(&self) -> Instant {
        self.next_look
    }

    pub(super) fn instants(&mut self) -> Vec<&mut Instant> {
        vec![&mut self.next_look]
    }
}

impl Protocol {
    pub(super) fn proceed_following(&mut self, now: Instant, step: &mut Step) {
        let State::Following(following) = &mut self.state else { return };
        if self.shutdown.is_some() {
            return self.proceed_to_stop(now, step);
        }
        if self.outstanding.is_none() && now >= following.next_look {
            following.hinted = false;
            self.not_before = now + SPACING;
            self.call(now, Call::Inspect, step);
        }
    }

    /// An acquire is awaited, since it may have won the lease. After one whose outcome is unknown there is one look.
    fn proceed_to_stop(&mut self, now: Instant, step: &mut Step) {
        let State::Following(following) = &self.state else { return };
        match self.outstanding.as_ref().map(|call| call.kind) {
            Some(CallKind::Acquire) => {}
            Some(CallKind::Inspect) if following.unsettled => {}
            None if following.unsettled => self.call(now, Call::Inspect, step),
            _ => self.stop(0, step),
        }
    }

    /// Look at once, unless that was done a moment ago.
    pub(super) fn hint(&mut self, now: Instant) {
        let State::Following(following) = &mut self.state else { return };
        following.hinted = true;
        if self.outstanding.is_none() {
            following.next_look = following.next_look.min(self.not_before.max(now));
        }
    }

    pub(super) fn inspected(
        &mut self,
        now: Instant,
        jitter: Jitter,
        lease: Option<&Lease>,
        step: &mut Step,
    ) {
        let State::Following(following) = &mut self.state else { return };
        following.unsettled = false;
        self.known.saw(lease, now);
        if let Some(claim) = self.next_claim(now, lease) {
            return self.call(now, claim, step);
        }
        match lease.filter(|lease| lease.is_held_by(&self.identity)) {
            // A lease of ours that no term is to be built on: an acquire whose reply was lost, or what was left when a
            // release failed. An expired one needs no release.
            Some(ours) if self.releases && ours.ttl != Some(Duration::ZERO) => {
                self.relinquish(now, Some(ours.fence))
            }
            _ => self.look_later(now, jitter, lease),
        }
    }

    /// What to do about the record now, if anything.
    fn next_claim(&self, now: Instant, lease: Option<&Lease>) -> Option<Call> {
        let when = match lease {
            // There was a record once, and with it went the version to compare. Whoever finds that puts one there, which
            // is then claimed like any other when it has expired.
            None if self.known.longest.is_some() => return self.place(),
            None => When::Unchanged,
            Some(lease) if lease.released || lease.is_held_by(&self.identity) => When::Unchanged,
            Some(lease) => {
                let watched = self.known.watch.as_ref().map_or(Duration::ZERO, |w| w.watched(now));
                self.timing.expiry().verdict(lease, watched)?
            }
        };
        if !self.contends(now) {
            return None;
        }
        let observed = lease.map(Observed::from);
        let duration = self.timing.lease_duration();
        let mut request = AcquireRequest::new(self.identity.clone(), observed, duration);
        request.when = when;
        request.floor = self.known.floor;
        Some(Call::Acquire(request))
    }

    /// An observer writes nothing; a candidate that only pauses does.
    fn place(&self) -> Option<Call> {
        let duration = self.known.longest.filter(|_| self.eligible && self.shutdown.is_none())?;
        let mut request = PlaceRequest::new(duration);
        request.floor = self.known.floor;
        Some(Call::Place(request))
    }

    pub(super) fn won(&mut self, now: Instant, sent: Instant, lease: &Lease, step: &mut Step) {
        let is_new = Some(lease.fence) > self.known.floor;
        self.known.saw(Some(lease), now);
        let (fence, deadline) = (lease.fence, self.timing.hold_deadline(sent, lease.ttl));
        // Won too late, or while nobody wants to lead any more, or under a fence that some term has had: it starts
        // nothing, and is given back.
        if now >= deadline || !self.contends(now) || !is_new {
            return self.relinquish(now, Some(fence));
        }
        step.changes.push(Change::Started { fence, deadline });
        let next_renew = sent + self.timing.renew_interval();
        self.state = State::Leading(Tenure { fence, deadline, next_renew });
    }

    pub(super) fn acquire_failed(&mut self, now: Instant) {
        let delay = self.timing.retry_delay();
        let State::Following(following) = &mut self.state else { return };
        following.unsettled = true;
        following.next_look = now + delay;
    }

    pub(super) fn look_failed(&mut self, now: Instant, jitter: Jitter) {
        let retry = jitter.around(self.timing.retry_period());
        let State::Following(following) = &mut self.state else { return };
        // The look that was owed after an acquire of unknown outcome is one look; whether it succeeds or not, a shutdown
        // waits for no second one.
        following.unsettled &= self.shutdown.is_none();
        following.next_look = now + retry;
    }

    /// Sets the next look after one that found nothing to take.
    pub(super) fn look_later(&mut self, now: Instant, jitter: Jitter, lease: Option<&Lease>) {
        let contends = self.contends(now);
        let State::Following(following) = &mut self.state else { return };
        let mut look = now + jitter.around(self.timing.retry_period());
        if let (true, Some(lease), Some(watch)) = (contends, lease, &self.known.watch) {
            look = look.min(watch.expires_at(self.timing.expiry(), lease, now, jitter));
        }
        match self.pause {
            Pause::Until(until) if now < until => look = look.min(until),
            _ => {}
        }
        if following.hinted {
            look = self.not_before.max(now);
        }
        following.next_look = look;
    }

    /// Sets the next look after a write that lost to `lease`.
    pub(super) fn look_soon(&mut self, now: Instant, jitter: Jitter, lease: Option<&Lease>) {
        self.look_later(now, jitter, lease);
        let is_free = lease.is_none_or(|lease| lease.released || lease.is_held_by(&self.identity));
        let spaced = now + SPACING;
        self.not_before = spaced;
        let State::Following(following) = &mut self.state else { return };
        following.unsettled = false;
        following.next_look = if is_free { spaced } else { following.next_look.max(spaced) };
    }
}
