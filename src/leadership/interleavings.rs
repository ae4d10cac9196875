//! Whoever publishes and whoever reads meet in all ways in which they can: explored by loom, with
//! `cargo xtask interleavings`.

use loom::{future::block_on, thread};

use super::*;
use crate::{
    clock::{Clock, ManualClock},
    lease::TermEnd,
    sync::{Notify, explore},
    term::{
        interleavings::{Lease, wait_until},
        tests::{telemetry, term_on},
    },
};

/// A candidate with a test in the place of its elector.
struct Candidate {
    publisher: Publisher,
    leadership: Leadership,
    term: Term,
    hand: ManualClock,
    changed: Arc<Notify>,
}

impl Candidate {
    fn new() -> Self {
        let (clock, hand) = Clock::manual();
        let (publisher, leadership) = Publisher::new(
            telemetry(),
            clock.clone(),
            Payload::default(),
            Telling::Here,
            &Arc::default(),
        );
        let changed = Arc::default();
        let term = term_on(&clock, 1, true, &changed);
        Self { publisher, leadership, term, hand, changed }
    }

    fn leading() -> Self {
        let candidate = Self::new();
        candidate.start();
        candidate
    }

    fn start(&self) {
        let leader =
            Leader::new(self.term.identity().clone(), self.term.fence(), Payload::default());
        self.publisher.started(self.term.clone(), leader);
    }

    /// Reads on a thread of its own.
    fn reader<T: 'static>(
        &self,
        read: impl FnOnce(&Leadership, &Term) -> T + 'static,
    ) -> thread::JoinHandle<T> {
        let (leadership, term) = (self.leadership.clone(), self.term.clone());
        thread::spawn(move || read(&leadership, &term))
    }
}

#[test]
fn nobody_sees_a_term_live_after_its_end_was_published() {
    explore(None, || {
        let candidate = Candidate::leading();
        let reader = candidate.reader(|leadership, term| {
            let status = leadership.status();
            if status.elected_term().is_none() {
                assert_eq!(status.phase(), Phase::Relinquishing);
                assert!(!term.may_finish());
            }
        });
        candidate.publisher.end(&candidate.term, TermEnd::Lost);
        reader.join().unwrap();
    });
}

#[test]
fn nobody_sees_a_term_admit_work_after_its_cancellation_was_published() {
    explore(None, || {
        let candidate = Candidate::leading();
        let reader = candidate.reader(|leadership, term| {
            let status = leadership.status();
            if status.phase() == Phase::Draining {
                assert!(!term.is_live() && term.may_finish());
                assert!(!status.is_leader() && leadership.admit().is_none());
            }
        });
        candidate.publisher.cancel(&candidate.term, TermEnd::Resigned);
        reader.join().unwrap();
    });
}

#[test]
fn nobody_sees_a_term_live_after_its_elector_was_gone() {
    explore(None, || {
        let candidate = Candidate::leading();
        let reader = candidate.reader(|leadership, term| {
            if leadership.status().phase() == Phase::Stopped {
                assert!(!term.may_finish());
            }
        });
        drop(candidate.publisher);
        reader.join().unwrap();
    });
}

/// First the flag, then the status, then those who wait: whoever is told by the last of them finds the others.
#[test]
fn who_is_told_of_a_cancellation_finds_it_published() {
    explore(None, || {
        let candidate = Candidate::leading();
        let token = candidate.term.cancellation_token();
        let reader = candidate.reader(move |leadership, _| {
            if token.is_cancelled() {
                assert_eq!(leadership.status().phase(), Phase::Draining);
            }
        });
        candidate.publisher.cancel(&candidate.term, TermEnd::Resigned);
        reader.join().unwrap();
    });
}

#[test]
fn who_is_told_of_an_end_finds_it_published() {
    explore(None, || {
        let candidate = Candidate::leading();
        let token = candidate.term.cancellation_token();
        let reader = candidate.reader(move |leadership, _| {
            if token.is_cancelled() {
                // The status judges the rest by the term itself.
                assert!(matches!(leadership.status().last_error(), Some(LastError::LeaseLost)));
            }
        });
        candidate.publisher.end(&candidate.term, TermEnd::Lost);
        reader.join().unwrap();
    });
}

#[test]
fn who_watches_is_woken_by_an_end() {
    explore(None, || {
        let candidate = Candidate::leading();
        let watcher = candidate.reader(|leadership, _| {
            block_on(leadership.watch().wait_for(|status| !status.is_leader())).unwrap();
        });
        candidate.publisher.end(&candidate.term, TermEnd::Lost);
        watcher.join().unwrap();
    });
}

/// The elector may be held up: the watchdog has seen the deadline pass, and says so.
#[test]
fn who_watches_is_woken_by_the_watchdog() {
    explore(None, || {
        let candidate = Candidate::leading();
        let watcher = candidate.reader(|leadership, _| {
            block_on(leadership.watch().wait_for(|status| !status.is_leader())).unwrap();
        });
        candidate.hand.suspend(candidate.term.remaining());
        assert!(candidate.term.end().is_some());
        candidate.publisher.herald().bump();
        watcher.join().unwrap();
    });
}

#[test]
fn who_wants_to_lead_is_woken_by_a_start() {
    explore(None, || {
        let candidate = Candidate::new();
        let waiting = candidate.reader(|leadership, term| {
            assert_eq!(block_on(leadership.leading()).as_ref(), Ok(term));
        });
        candidate.start();
        waiting.join().unwrap();
    });
}

#[test]
fn who_wants_to_lead_is_told_that_the_elector_has_stopped() {
    explore(None, || {
        let candidate = Candidate::new();
        let waiting = candidate.reader(|leadership, _| {
            assert_eq!(block_on(leadership.leading()), Err(Stopped));
        });
        drop(candidate.publisher);
        waiting.join().unwrap();
        assert_eq!(candidate.leadership.status().phase(), Phase::Stopped);
    });
}

/// The first look of leader-only work goes through what is published.
#[test]
fn the_first_poll_of_leader_only_work_is_refused_or_waited_for() {
    explore(None, || {
        let candidate = Candidate::leading();
        let lease = Arc::new(Lease::default());
        let to_write = lease.clone();
        let worker = candidate.reader(move |leadership, _| {
            let _ = block_on(leadership.leader_only(async { to_write.write() }));
        });
        let Candidate { publisher, term, changed, .. } = &candidate;
        publisher.cancel(term, TermEnd::Resigned);
        wait_until(changed, || term.in_flight() == 0 && term.guards() == 0);
        publisher.end(term, TermEnd::Resigned);
        let seen = lease.hand_over();
        worker.join().unwrap();
        assert_eq!(seen, lease.writes());
    });
}

#[test]
fn a_request_is_refused_or_waited_for() {
    explore(None, || {
        let candidate = Candidate::leading();
        let lease = Arc::new(Lease::default());
        let to_write = lease.clone();
        let worker = candidate.reader(move |leadership, _| {
            if let Some((in_flight, guard)) = leadership.admit() {
                drop(guard);
                to_write.write();
                drop(in_flight);
            }
        });
        let Candidate { publisher, term, changed, .. } = &candidate;
        publisher.cancel(term, TermEnd::Resigned);
        wait_until(changed, || term.in_flight() == 0 && term.guards() == 0);
        let seen = lease.hand_over();
        worker.join().unwrap();
        assert_eq!(seen, lease.writes());
    });
}
