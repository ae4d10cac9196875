//! One candidate's process: its elector, and the work that it does while it leads.

use std::time::Duration;

use tenure::{
    Identity, Instant, Lease, Timing,
    protocol::{Input, Levels, Protocol, Reply, Step},
};

use crate::{
    event::{CallKind, Who},
    script::Candidate,
    term::Term,
    time::{Moment, Skew},
};

/// A process, and what is under way in it.
#[derive(Clone, Debug)]
pub(crate) struct Participant {
    pub(crate) who: Who,
    pub(crate) identity: Identity,
    pub(crate) timing: Timing,
    pub(crate) clock: Skew,
    pub(crate) machine: usize,
    pub(crate) protocol: Protocol,
    /// It has neither crashed nor stopped.
    pub(crate) is_running: bool,
    pub(crate) eligible: bool,
    /// Whether it gives leases back.
    pub(crate) releases: bool,
    pub(crate) is_stopping: bool,
    /// It was told to resign, and does not follow again yet.
    pub(crate) is_resigning: bool,
    /// It does not contend before this.
    pub(crate) pauses_until: Moment,
    /// When another process takes its place, once it has stopped.
    pub(crate) back_after: Option<Duration>,
    /// Nothing of it runs before this.
    pub(crate) frozen_until: Moment,
    pub(crate) outstanding: Option<Outstanding>,
    /// An answer that came while nothing of it ran.
    pub(crate) answer: Option<(u64, Reply)>,
    pub(crate) wake: Moment,
    pub(crate) mailbox: Mailbox,
    pub(crate) term: Option<Term>,
    /// Rises whenever the work that was under way is none of ours any more.
    pub(crate) work_epoch: u32,
    /// A step whose changes are not public yet, since the thread was not run, and what earlier ones asked for.
    pub(crate) interrupted: Option<(Step, Step)>,
    /// How long that takes when there are changes the next time.
    pub(crate) preempt: Option<Duration>,
    /// There is no thread for the watchdog of the next term.
    pub(crate) unwatched: bool,
    /// How many calls it has made, in this place.
    pub(crate) calls: usize,
    /// The longest lease and the highest fence that it was told of.
    pub(crate) seen: Option<(Duration, tenure::Fence)>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Outstanding {
    pub(crate) number: u64,
    pub(crate) kind: CallKind,
}

/// What an elector is to be told when it can be.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Mailbox {
    pub(crate) eligible: Option<bool>,
    pub(crate) resign: bool,
    pub(crate) shutdown: Option<Duration>,
    /// A level has changed.
    pub(crate) changed: bool,
    pub(crate) hint: bool,
}

impl Mailbox {
    /// The next thing to tell, in the order in which the elector asks.
    pub(crate) fn take(&mut self) -> Option<Input> {
        if let Some(eligible) = self.eligible.take() {
            return Some(Input::Eligible(eligible));
        }
        if std::mem::take(&mut self.resign) {
            return Some(Input::Resign);
        }
        if let Some(drain) = self.shutdown.take() {
            return Some(Input::ShutdownWithin { drain });
        }
        if std::mem::take(&mut self.changed) {
            return Some(Input::Wake);
        }
        std::mem::take(&mut self.hint).then_some(Input::Hint)
    }
}

impl Participant {
    pub(crate) fn new(who: Who, candidate: &Candidate, calls: usize) -> Self {
        let timing = candidate.timings[who.incarnation as usize % candidate.timings.len()];
        let identity = Identity::new(who.to_string()).expect("a short text without NUL");
        let mut protocol = Protocol::new(identity.clone(), timing, candidate.eligible);
        if !candidate.releases {
            protocol = protocol.without_release();
        }
        Self {
            who,
            identity,
            timing,
            clock: candidate.clock,
            machine: candidate.machine,
            protocol,
            is_running: true,
            eligible: candidate.eligible,
            releases: candidate.releases,
            is_stopping: false,
            is_resigning: false,
            pauses_until: Moment::START,
            back_after: None,
            frozen_until: Moment::START,
            outstanding: None,
            answer: None,
            wake: Moment::NEVER,
            mailbox: Mailbox::default(),
            term: None,
            work_epoch: 0,
            interrupted: None,
            preempt: None,
            unwatched: false,
            calls,
            seen: None,
        }
    }

    /// What its own clock shows.
    pub(crate) fn now(&self, at: Moment) -> Instant {
        self.clock.shows(at)
    }

    /// Whether its elector can be told anything.
    pub(crate) fn listens(&self, at: Moment) -> bool {
        self.is_running && at >= self.frozen_until && self.interrupted.is_none()
    }

    /// When its timer goes off, if nothing comes before.
    pub(crate) fn wakes(&self) -> Moment {
        if !self.is_running || self.interrupted.is_some() || self.wake == Moment::NEVER {
            return Moment::NEVER;
        }
        self.wake.max(self.frozen_until)
    }

    pub(crate) fn levels(&self) -> Levels {
        self.term.as_ref().map_or_else(Levels::default, |term| Levels {
            guards: term.guards as usize,
            in_flight: term.in_flight as usize,
        })
    }

    /// Whether it may work at this moment.
    pub(crate) fn leads(&self, at: Moment) -> bool {
        let now = self.now(at);
        self.is_running && self.term.as_ref().is_some_and(|term| term.lasts(now))
    }

    /// Whether it could lead before long, if the others did not.
    pub(crate) fn is_able(&self) -> bool {
        let stuck = self.term.as_ref().is_some_and(|term| term.forever > 0);
        self.is_running && self.eligible && !self.is_stopping && !stuck
    }

    /// The pause after a resignation begins when it follows again.
    pub(crate) fn follows(&mut self, at: Moment) {
        if std::mem::take(&mut self.is_resigning) {
            self.pauses_until = self.clock.reaches(self.now(at) + self.timing.resign_pause());
        }
    }

    pub(crate) fn saw(&mut self, lease: Option<&Lease>) {
        if let Some(lease) = lease {
            let (longest, highest) = self.seen.unwrap_or((lease.duration, lease.fence));
            self.seen = Some((longest.max(lease.duration), highest.max(lease.fence)));
        }
    }
}
