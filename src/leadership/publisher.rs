//! The elector's side of what everybody else reads.

use std::sync::{Arc, Weak};

use super::{
    LastError, Leader, Leadership, PastTerm, Phase, Requests, Status,
    crier::{Bell, Telling},
    status::Observation,
};
use crate::{
    clock::Clock,
    instant::Instant,
    lease::{Lease, Payload, TermEnd},
    sync::watch,
    telemetry::Telemetry,
    term::Term,
};

/// The one who says what the status is. When it is dropped, on whatever path, local authority ends: a live term is over,
/// and everybody reads *stopped* (rules S7 and S10).
///
/// Values are replaced whether or not somebody listens, so that who subscribes later reads the latest.
#[derive(Debug)]
pub(crate) struct Publisher {
    bell: Arc<Bell>,
}

impl Publisher {
    /// The two sides of one candidate's status: who publishes it, and what everybody else holds.
    pub(crate) fn new(
        telemetry: Telemetry,
        clock: Clock,
        payload: Payload,
        telling: Telling,
        requests: &Arc<Requests>,
    ) -> (Self, Leadership) {
        let (election, identity) = (telemetry.election().clone(), telemetry.identity().clone());
        let nothing = Observation::none(election, identity, payload, clock);
        let (status, receiver) = watch::channel(Status::new(nothing));
        let leadership = Leadership {
            status: receiver,
            telemetry: Arc::new(telemetry),
            requests: Arc::clone(requests),
        };
        (Self { bell: Bell::new(status, telling) }, leadership)
    }

    /// Changes what the candidate does and knows, all at once, and wakes whoever watches. `change` is called under the
    /// lock that readers share: it only assigns.
    pub(crate) fn update(&self, change: impl FnOnce(&mut Draft<'_>)) {
        self.write(change);
        self.bell.ring(None);
    }

    fn write(&self, change: impl FnOnce(&mut Draft<'_>)) {
        self.bell.write(|status| {
            change(&mut Draft { status });
            true
        });
    }

    /// Changes the status, and wakes whoever watches if `change` says that it is news.
    fn update_if(&self, change: impl FnOnce(&mut Status) -> bool) {
        if self.bell.write(change) {
            self.bell.ring(None);
        }
    }

    /// A term has begun.
    pub(crate) fn started(&self, term: Term, leader: Leader) {
        self.update(|draft| {
            draft.started(term);
            draft.phase(Phase::Leading);
            draft.leader(leader);
        });
    }

    /// Has the term admit no new work.
    pub(crate) fn cancel(&self, term: &Term, reason: TermEnd) {
        term.cancel(reason);
        self.write(|draft| draft.phase(Phase::Draining));
        self.bell.ring(Some(term));
    }

    /// Ends the term, unless it is over already; why it is over. The order matters: the deadline goes to zero, then it is
    /// published, then those who wait are woken.
    pub(crate) fn end(&self, term: &Term, reason: TermEnd) -> TermEnd {
        let reason = term.finish(reason);
        self.write(|draft| {
            draft.ended(term, reason);
            draft.phase(Phase::Relinquishing);
            let error = match reason {
                TermEnd::Expired => Some(LastError::LeaseExpiredLocally),
                TermEnd::Lost => Some(LastError::LeaseLost),
                TermEnd::Resigned | TermEnd::Shutdown => None,
            };
            if let Some(error) = error {
                draft.failed(error);
            }
        });
        self.bell.ring(Some(term));
        reason
    }

    /// What the store has answered at `now`. Nobody is woken by an answer that shows the same leader.
    pub(crate) fn observed(&self, lease: Option<&Lease>, now: Instant) {
        let leader = lease.and_then(Leader::of);
        let left = |lease: &Lease| lease.ttl.unwrap_or(lease.duration);
        let lease_until = lease.filter(|lease| !lease.released).map(|lease| now + left(lease));
        self.update_if(|status| {
            let known = Arc::make_mut(&mut status.known);
            known.observed_at = Some(now);
            known.lease_until = lease_until;
            let is_new = known.leader != leader;
            if is_new {
                known.leads(leader);
            }
            is_new
        });
    }

    /// The store works: what went wrong last is over.
    pub(crate) fn succeeded(&self) {
        self.update_if(|status| {
            let failed_before = status.known.last_error.is_some();
            if failed_before {
                Arc::make_mut(&mut status.known).last_error = None;
            }
            failed_before
        });
    }

    /// Where the candidate stands after a step of the protocol, and up to which ticket requests to resign have been
    /// carried out. Wakes whoever watches if either is news.
    pub(crate) fn stands(&self, phase: Phase, resigned: Option<u64>) {
        self.update_if(|status| {
            let is_news = status.phase != phase || resigned.is_some();
            status.phase = phase;
            if let Some(ticket) = resigned {
                Arc::make_mut(&mut status.known).resigns_done = ticket;
            }
            is_news
        });
    }

    pub(crate) fn failed(&self, error: LastError) {
        self.update(|draft| draft.failed(error));
    }

    /// What the candidate publishes when it leads, from its next call on.
    pub(crate) fn publishes(&self, payload: Payload) {
        self.update(|draft| draft.known().payload = payload);
    }

    /// Wakes whoever watches, to judge the same status anew.
    pub(crate) fn bump(&self) {
        self.bell.ring(None);
    }

    /// What the watchdog says. It does not keep the channel open.
    pub(crate) fn herald(&self) -> Herald {
        Herald(Arc::downgrade(&self.bell))
    }
}

/// The watchdog's way to those who watch.
#[derive(Debug)]
pub(crate) struct Herald(Weak<Bell>);

impl Herald {
    /// The same status reads differently now.
    pub(crate) fn bump(&self) {
        if let Some(bell) = self.0.upgrade() {
            bell.ring(None);
        }
    }

    /// Has those who wait for the end of `term` woken.
    pub(crate) fn announce(&self, term: &Term) {
        match self.0.upgrade() {
            Some(bell) => bell.ring(Some(term)),
            None => term.announce(),
        }
    }

    /// This many guards are held although the lease is over.
    pub(crate) fn overran(&self, guards: usize) {
        if let Some(bell) = self.0.upgrade() {
            bell.write(|status| {
                Draft { status }.failed(LastError::Overrun { guards });
                true
            });
            bell.ring(None);
        }
    }
}

impl Drop for Publisher {
    fn drop(&mut self) {
        let term = self.bell.status().borrow().term.clone();
        let reason = term.as_ref().map(|term| term.finish(TermEnd::Shutdown));
        let is_news = self.bell.write(|status| {
            let stopped_before = status.term.is_none() && status.phase == Phase::Stopped;
            let mut draft = Draft { status };
            if let Some((term, reason)) = term.as_ref().zip(reason) {
                draft.ended(term, reason);
            }
            draft.phase(Phase::Stopped);
            !stopped_before
        });
        if is_news {
            self.bell.ring(term.as_ref());
        }
    }
}

/// A status that is being changed.
#[derive(Debug)]
pub(crate) struct Draft<'a> {
    status: &'a mut Status,
}

impl Draft<'_> {
    pub(super) fn started(&mut self, term: Term) {
        let known = self.known();
        known.term_since = Some(known.clock.wall_time(known.clock.now()));
        self.status.term = Some(term);
    }

    pub(super) fn ended(&mut self, term: &Term, reason: TermEnd) {
        self.status.term = None;
        let known = self.known();
        if let Some(since) = known.term_since.take() {
            known.last_term = Some(PastTerm::of(term, since, reason, &known.clock));
        }
    }

    pub(crate) fn phase(&mut self, phase: Phase) {
        self.status.phase = phase;
    }

    pub(crate) fn failed(&mut self, error: LastError) {
        self.known().failed(error);
    }

    pub(crate) fn leader(&mut self, leader: Leader) {
        self.known().leads(Some(leader));
    }

    fn known(&mut self) -> &mut Observation {
        Arc::make_mut(&mut self.status.known)
    }
}

#[cfg(test)]
mod tests {
    use std::{task::Poll, time::Duration};

    use tokio_test::task::spawn;

    use super::*;
    use crate::term::tests::term_on;

    fn publisher(clock: Clock) -> (Publisher, Leadership) {
        let (election, identity) = ("billing".parse().unwrap(), "web-1".parse().unwrap());
        let telemetry = Telemetry::new(election, identity, false);
        Publisher::new(telemetry, clock, Payload::default(), Telling::Here, &Arc::default())
    }

    #[test]
    fn what_is_published_while_nobody_listens_is_not_lost() {
        let (publisher, leadership) = publisher(Clock::system());
        drop(leadership);
        publisher.update(|draft| draft.phase(Phase::Draining));
        publisher.failed(LastError::LeaseLost);
        let status = publisher.bell.status().subscribe();
        assert_eq!(status.borrow().phase, Phase::Draining);
        assert!(matches!(status.borrow().last_error(), Some(LastError::LeaseLost)));
    }

    #[test]
    fn a_watchdog_that_outlives_its_publisher_wakes_those_who_wait_by_itself() {
        let (clock, hand) = Clock::manual();
        let (publisher, _leadership) = publisher(clock.clone());
        let herald = publisher.herald();
        drop(publisher);
        let term = term_on(&clock, 7, true, &Arc::default());
        let mut ended = spawn(term.ended());
        assert!(ended.poll().is_pending());
        hand.advance(Duration::from_secs(10));
        assert_eq!(term.end(), Some(TermEnd::Expired));
        assert!(!ended.is_woken());
        herald.announce(&term);
        assert!(ended.is_woken());
        assert_eq!(ended.poll(), Poll::Ready(TermEnd::Expired));
    }
}
