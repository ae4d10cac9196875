//! One protocol on virtual time. The test answers its calls.

use std::{collections::HashSet, time::Duration};

use super::{MIDDLE, lease};
use crate::{
    instant::Instant,
    lease::{Fence, Identity, Lease, TermEnd},
    protocol::{Call, Change, Input, Jitter, Levels, Phase, Protocol, Reply, Step, Timing},
    store::{AcquireRequest, Outcome},
};

/// The identity of every candidate that is driven alone.
pub(in crate::protocol) const ME: &str = "me";

/// A protocol, its clock, and what it has asked for.
#[derive(Clone, Debug)]
pub(in crate::protocol) struct Candidate {
    pub(in crate::protocol) protocol: Protocol,
    timing: Timing,
    pub(in crate::protocol) now: Instant,
    pub(in crate::protocol) levels: Levels,
    pub(in crate::protocol) jitter: Jitter,
    /// The outstanding call, and when it was sent.
    pub(in crate::protocol) call: Option<(Instant, Call)>,
    last: Step,
    changes: Vec<Change>,
    audit: Audit,
    steps: u32,
}

impl Candidate {
    /// Has just been asked for the first time, and looks.
    pub(in crate::protocol) fn new(timing: Timing) -> Self {
        Self::starting(timing, true)
    }

    pub(in crate::protocol) fn observer(timing: Timing) -> Self {
        Self::starting(timing, false)
    }

    /// Leads with fence 1, which was asked for, granted and confirmed this very moment.
    pub(in crate::protocol) fn leading(timing: Timing) -> Self {
        let mut candidate = Self::acquiring(timing);
        let mut won = lease(ME, 1, 1);
        won.duration = timing.lease_duration();
        won.ttl = Some(won.duration);
        candidate.won(won);
        assert_eq!(candidate.phase(), Phase::Leading);
        candidate.take_changes();
        candidate
    }

    /// Has found no record, and tries to make one.
    pub(in crate::protocol) fn acquiring(timing: Timing) -> Self {
        let mut candidate = Self::new(timing);
        candidate.inspected(None);
        assert!(matches!(candidate.call, Some((_, Call::Acquire(_)))));
        candidate
    }

    fn starting(timing: Timing, eligible: bool) -> Self {
        let mut candidate = Self::idle(
            Identity::new(ME).unwrap(),
            timing,
            eligible,
            Instant::from_nanos(1_000_000),
        );
        candidate.give(Input::Wake);
        candidate
    }

    /// Before the first step.
    pub(in crate::protocol) fn idle(
        identity: Identity,
        timing: Timing,
        eligible: bool,
        now: Instant,
    ) -> Self {
        Self {
            protocol: Protocol::new(identity, timing, eligible),
            timing,
            now,
            levels: Levels::default(),
            jitter: MIDDLE,
            call: None,
            last: Step::default(),
            changes: Vec::new(),
            audit: Audit::default(),
            steps: 0,
        }
    }

    /// Goes on by one input, and steps again for as long as the levels have to be read again.
    pub(in crate::protocol) fn give(&mut self, input: Input) -> &Step {
        let mut step = self.step(input);
        while step.recount {
            let next = self.step(Input::Wake);
            step = step.then(next);
        }
        self.last = step;
        &self.last
    }

    /// Goes on by one step, and checks what holds in every one.
    pub(in crate::protocol) fn step(&mut self, input: Input) -> Step {
        self.steps += 1;
        assert!(self.steps < 100_000, "a hot loop at {}", self.now);
        let answered = match &input {
            Input::Reply(reply) => {
                let call = self.call.take();
                self.audit.answered(call.as_ref().map(|(_, call)| call), reply);
                call
            }
            _ => None,
        };
        let step = self.protocol.step(self.now, self.jitter, self.levels, input);
        if step.abandon {
            assert!(self.call.take().is_some(), "there is nothing to abandon: {step:?}");
        }
        if let Some(call) = &step.call {
            assert_eq!(self.call, None, "two calls are outstanding: {step:?}");
            self.audit.asked(call, self.levels);
            self.call = Some((self.now, call.clone()));
        }
        for change in &step.changes {
            self.audit.changed(change);
            if let Change::Started { deadline, .. } | Change::Extended { deadline } = change {
                let (sent, _) = answered.as_ref().expect("nothing was confirmed");
                let latest = self.timing.lease_duration() - self.timing.safety_margin();
                assert!(*deadline <= *sent + latest, "{deadline} counts from after {sent}");
            }
        }
        if step.recount {
            assert!(step.call.is_none(), "judged by old levels: {step:?}");
        } else {
            self.audit.settled(&self.protocol, self.now, step.wake);
        }
        self.changes.extend(step.changes.iter().cloned());
        step
    }

    pub(in crate::protocol) fn reply(&mut self, reply: Reply) -> &Step {
        assert!(self.call.is_some(), "nothing was asked");
        self.give(Input::Reply(reply))
    }

    pub(in crate::protocol) fn inspected(&mut self, lease: Option<Lease>) -> &Step {
        assert_eq!(self.asked(), Some(&Call::Inspect));
        self.reply(Reply::Inspected(lease))
    }

    /// Answers an acquire, a renewal or a release: it was executed, and this is the record now.
    pub(in crate::protocol) fn won(&mut self, lease: Lease) -> &Step {
        self.decided(Outcome::Won(lease))
    }

    pub(in crate::protocol) fn lost(&mut self, lease: Option<Lease>) -> &Step {
        self.decided(Outcome::Lost(lease))
    }

    fn decided(&mut self, outcome: Outcome) -> &Step {
        let reply = match self.asked() {
            Some(Call::Acquire(_)) => Reply::Acquired(outcome),
            Some(Call::Renew(_)) => Reply::Renewed(outcome),
            Some(Call::Release(_)) => Reply::Released(outcome),
            other => panic!("{other:?} has no outcome"),
        };
        self.reply(reply)
    }

    /// Lets time pass. Each wake-up comes at the instant that was asked for.
    pub(in crate::protocol) fn advance(&mut self, by: Duration) {
        let until = self.now + by;
        while let Some(wake) = self.last.wake.filter(|wake| *wake <= until) {
            self.now = wake;
            self.give(Input::Wake);
        }
        self.now = until;
    }

    /// Lets time pass until a wake-up leads to a call.
    pub(in crate::protocol) fn advance_to_call(&mut self) -> &Call {
        for _ in 0..1_000 {
            self.now = self.last.wake.expect("nothing will ever be asked");
            if self.give(Input::Wake).call.is_some() {
                return self.asked().unwrap();
            }
        }
        panic!("woken a thousand times, and no call was made: {self:?}");
    }

    /// Time passes unnoticed, as in a process that is frozen.
    pub(in crate::protocol) fn sleep(&mut self, by: Duration) {
        self.now = self.now + by;
    }

    pub(in crate::protocol) fn asked(&self) -> Option<&Call> {
        self.call.as_ref().map(|(_, call)| call)
    }

    /// The outstanding acquire.
    pub(in crate::protocol) fn acquire(&self) -> &AcquireRequest {
        match self.asked() {
            Some(Call::Acquire(request)) => request,
            other => panic!("expected an acquire, not {other:?}"),
        }
    }

    pub(in crate::protocol) fn is_renewing(&self) -> bool {
        matches!(self.asked(), Some(Call::Renew(_)))
    }

    pub(in crate::protocol) fn is_releasing(&self) -> bool {
        matches!(self.asked(), Some(Call::Release(_)))
    }

    pub(in crate::protocol) fn phase(&self) -> Phase {
        self.protocol.phase()
    }

    /// How far off the deadline is, while there is a term.
    pub(in crate::protocol) fn remaining(&self) -> Option<Duration> {
        self.protocol.term().map(|(_, deadline)| deadline.saturating_since(self.now))
    }

    /// How far off the next wake-up is.
    pub(in crate::protocol) fn wakes_in(&self) -> Duration {
        self.last.wake.expect("it wants to be woken").saturating_since(self.now)
    }

    pub(in crate::protocol) fn take_changes(&mut self) -> Vec<Change> {
        std::mem::take(&mut self.changes)
    }
}

/// What must hold in every step of every protocol.
#[derive(Clone, Debug, Default)]
struct Audit {
    term: Published,
    /// Fences whose loss was proven.
    lost: HashSet<Fence>,
    highest: Option<Fence>,
}

/// What has been published about the latest term.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum Published {
    #[default]
    NoTerm,
    Live {
        fence: Fence,
        cancelled: Option<TermEnd>,
        deadline: Instant,
    },
    Stopped,
}

impl Audit {
    fn answered(&mut self, call: Option<&Call>, reply: &Reply) {
        if let (Some(Call::Renew(renew)), Reply::Renewed(Outcome::Lost(_))) = (call, reply) {
            self.lost.insert(renew.fence);
        }
    }

    fn asked(&self, call: &Call, levels: Levels) {
        assert_ne!(self.term, Published::Stopped, "a call after the end: {call:?}");
        match call {
            Call::Renew(renew) => assert!(!self.lost.contains(&renew.fence), "{call:?} was lost"),
            Call::Release(_) => assert_eq!(levels.guards, 0, "released over a guard"),
            Call::Inspect | Call::Place(_) | Call::Acquire(_) => {}
        }
    }

    fn changed(&mut self, change: &Change) {
        self.term = match (self.term, change) {
            (Published::NoTerm, &Change::Started { fence, deadline }) => {
                assert!(Some(fence) > self.highest, "{fence} is not above {:?}", self.highest);
                self.highest = Some(fence);
                Published::Live { fence, deadline, cancelled: None }
            }
            (Published::Live { fence, cancelled, .. }, &Change::Extended { deadline }) => {
                Published::Live { fence, cancelled, deadline }
            }
            (Published::Live { fence, deadline, cancelled: None }, &Change::Cancelled(end)) => {
                assert!(matches!(end, TermEnd::Resigned | TermEnd::Shutdown), "{end}");
                Published::Live { fence, deadline, cancelled: Some(end) }
            }
            (Published::Live { cancelled, .. }, Change::Ended(end)) => {
                let is_voluntary = matches!(end, TermEnd::Resigned | TermEnd::Shutdown);
                assert!(!is_voluntary || cancelled.is_some(), "{end} without being cancelled");
                Published::NoTerm
            }
            (Published::NoTerm, Change::StillHeld { guards }) => {
                assert_ne!(*guards, 0);
                Published::NoTerm
            }
            (Published::NoTerm, Change::Stopped { .. }) => Published::Stopped,
            (before, change) => panic!("{change:?} after {before:?}"),
        };
    }

    fn settled(&self, protocol: &Protocol, now: Instant, wake: Option<Instant>) {
        let published = match self.term {
            Published::Live { fence, deadline, .. } => Some((fence, deadline)),
            Published::NoTerm | Published::Stopped => None,
        };
        assert_eq!(protocol.term(), published, "what was published is not what is");
        if let Some((_, deadline)) = published {
            assert!(now < deadline, "a term at its deadline");
            assert!(wake <= Some(deadline), "nothing wakes it at its deadline");
        }
        let is_stopped = protocol.phase() == Phase::Stopped;
        assert_eq!(self.term == Published::Stopped, is_stopped);
        assert_eq!(wake.is_none(), is_stopped, "it must be woken as long as it has not stopped");
        assert!(wake.is_none_or(|wake| now < wake), "it must be woken at once: a hot loop");
    }
}
