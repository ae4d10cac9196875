//! Leadership without an election.

use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use crate::{
    clock::Clock,
    leadership::{Leader, Leadership, Publisher, Requests, Telling},
    lease::{ElectionName, Fence, Identity, Payload, TermEnd},
    protocol::Phase,
    sync::Notify,
    telemetry::Telemetry,
    term::{Term, TermParts},
};

/// So long that no test sees it.
const FOREVER: Duration = Duration::from_secs(365 * 24 * 3_600);

/// Leadership that is given and taken by hand. What hangs on its [`Leadership`] sees no difference to a real one.
///
/// Nothing happens by itself, and nothing waits: there is no elector. Terms have the fences 1, 2, 3. Dropping it reads as an
/// elector that has stopped.
pub struct ManualLeadership {
    publisher: Publisher,
    leadership: Leadership,
    requests: Arc<Requests>,
    clock: Clock,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    term: Option<Term>,
    last_fence: Option<Fence>,
}

impl ManualLeadership {
    /// A candidate of this election that does not lead.
    ///
    /// # Panics
    /// If that is no name for an election.
    #[must_use]
    #[track_caller]
    pub fn new(election: &str) -> Self {
        let election = ElectionName::new(election).expect("the name of an election");
        let identity = Identity::new("manual").expect("a name within the limits");
        let clock = Clock::system();
        let requests = Arc::new(Requests::default());
        let telemetry = Telemetry::new(election, identity, true);
        let (publisher, leadership) =
            Publisher::new(telemetry, clock.clone(), Payload::default(), Telling::Here, &requests);
        Self { publisher, leadership, requests, clock, state: Mutex::default() }
    }

    /// What the code under test is given.
    #[must_use]
    pub fn leadership(&self) -> Leadership {
        self.leadership.clone()
    }

    /// Starts a term. One that is still live ends first, as [`TermEnd::Resigned`].
    pub fn promote(&self) -> Term {
        self.demote(TermEnd::Resigned);
        let mut state = self.lock();
        let fence = Fence::next(state.last_fence, None, 0).unwrap_or(Fence::MIN);
        let term = Term::start(TermParts {
            telemetry: self.leadership.telemetry().clone(),
            fence,
            deadline: self.clock.now() + FOREVER,
            ready: true,
            clock: self.clock.clone(),
            changed: Arc::new(Notify::new()),
        });
        *state = State { term: Some(term.clone()), last_fence: Some(fence) };
        let leader = Leader::new(term.identity().clone(), fence, Payload::default());
        self.publisher.started(term.clone(), leader);
        term
    }

    /// Begins a voluntary end: the term admits no new work, and what is in flight goes on. [`demote`](Self::demote) ends it.
    pub fn drain(&self) {
        if let Some(term) = &self.lock().term {
            self.publisher.cancel(term, TermEnd::Resigned);
        }
    }

    /// Ends the term for this reason, if there is one. Who waits for a resignation is told that it has been carried out.
    pub fn demote(&self, reason: TermEnd) {
        let mut state = self.lock();
        if let Some(term) = state.term.take() {
            self.publisher.end(&term, reason);
        }
        self.publisher.stands(Phase::Following, self.requests.take().resign);
    }

    /// Ends the term as if no renewal had been confirmed in time.
    pub fn expire(&self) {
        self.demote(TermEnd::Expired);
    }

    /// Has another candidate lead: what a follower sees.
    pub fn follow(&self, leader: Leader) {
        self.demote(TermEnd::Lost);
        self.lock().last_fence = Some(leader.fence());
        self.publisher.update(|draft| draft.leader(leader));
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for ManualLeadership {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ManualLeadership")
            .field("leadership", &self.leadership)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;
    use crate::{leadership::Transition, protocol::Phase};

    fn leader(name: &str, fence: i64) -> Leader {
        let fence = Fence::try_from(fence).unwrap();
        Leader::new(name.parse().unwrap(), fence, Payload::default())
    }

    #[test]
    fn leadership_comes_and_goes_as_the_test_says() {
        let manual = ManualLeadership::new("billing");
        let leadership = manual.leadership();
        let mut transitions = leadership.transitions();
        let mut leading = Box::pin(leadership.leading());
        assert!(leading.as_mut().now_or_never().is_none());

        let first = manual.promote();
        assert_eq!(leading.now_or_never(), Some(Ok(first.clone())));
        let second = manual.promote();
        assert_eq!(first.end(), Some(TermEnd::Resigned));
        assert!(second.fence() > first.fence());
        manual.expire();
        assert_eq!(second.end(), Some(TermEnd::Expired));
        assert!(!leadership.is_leader());
        manual.follow(leader("web-2", 9));
        assert_eq!(leadership.status().other_leader(), Some(&leader("web-2", 9)));
        assert!(manual.promote().fence() > Fence::try_from(9_i64).unwrap());

        let seen = std::iter::from_fn(|| transitions.next().now_or_never().flatten());
        assert!(matches!(seen.collect::<Vec<_>>()[..], [Transition::Started(_), ..]));
        drop(manual);
        assert_eq!(leadership.status().phase(), Phase::Stopped);
    }

    #[test]
    fn a_drain_admits_nothing_and_lets_work_finish() {
        let manual = ManualLeadership::new("billing");
        let term = manual.promote();
        let mut work = Box::pin(term.until_ended(std::future::pending::<()>()));
        assert!(work.as_mut().now_or_never().is_none());
        manual.drain();
        assert!(!manual.leadership().is_leader() && term.may_finish());
        assert!(work.as_mut().now_or_never().is_none());
        manual.demote(TermEnd::Resigned);
        assert!(work.now_or_never().unwrap().is_err());
    }

    #[test]
    fn a_resignation_that_was_asked_for_is_done_when_the_term_is_ended() {
        let manual = ManualLeadership::new("billing");
        manual.promote();
        let mut resigned = Box::pin(manual.leadership().resign());
        assert!(resigned.as_mut().now_or_never().is_none());
        manual.demote(TermEnd::Resigned);
        assert!(resigned.now_or_never().is_some());
    }
}
