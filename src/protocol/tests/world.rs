//! Several protocols on one virtual timeline, against a model of a store and of the way to it.

use std::{collections::BTreeMap, time::Duration};

use super::{
    candidate::Candidate,
    database::{Database, Record, Skew},
};
use crate::{
    instant::Instant,
    lease::{Fence, Identity},
    protocol::{Call, Change, Input, Jitter, Levels, Phase, Reply, Timing},
    store::Outcome,
};

/// What becomes of one call.
#[derive(Clone, Copy, Debug)]
pub(in crate::protocol) struct Fate {
    /// When it is executed, counted from the send; twice if the network doubles it, never if it loses it.
    pub(in crate::protocol) executed: [Option<Duration>; 2],
    pub(in crate::protocol) answer: Answer,
}

#[derive(Clone, Copy, Debug)]
pub(in crate::protocol) enum Answer {
    /// The store's, this long after each execution; the first one that arrives counts.
    After(Duration),
    /// An error, this long after the send.
    Failed(Duration),
    /// "You have lost", at once, though nothing was executed.
    Lost,
    /// None, ever.
    Never,
}

impl Fate {
    pub(in crate::protocol) const HANGS: Self = Self { executed: [None; 2], answer: Answer::Never };

    pub(in crate::protocol) const fn round_trip(duration: Duration) -> Self {
        let there = Duration::from_nanos(duration.as_nanos() as u64 / 2);
        Self { executed: [Some(there), None], answer: Answer::After(there) }
    }
}

/// What happens at some point of the agenda.
#[derive(Clone, Debug)]
enum Event {
    Execute { member: usize, number: u64, call: Call, back: Option<Duration> },
    Deliver { member: usize, number: u64, reply: Reply },
    Thaw(usize),
}

/// A candidate in the world.
#[derive(Clone, Debug)]
pub(in crate::protocol) struct Member {
    pub(in crate::protocol) candidate: Candidate,
    clock: Skew,
    is_alive: bool,
    frozen_until: Duration,
    /// The number of the outstanding call.
    number: u64,
    wake: Option<Instant>,
}

type Network = Box<dyn FnMut(Duration, &Call) -> Fate>;

pub(in crate::protocol) struct World {
    /// Real time since the beginning.
    pub(in crate::protocol) now: Duration,
    pub(in crate::protocol) database: Database,
    pub(in crate::protocol) members: Vec<Member>,
    pub(in crate::protocol) network: Network,
    /// When a call was made, and by whom.
    pub(in crate::protocol) calls: Vec<(Duration, usize, Call)>,
    /// Everything that was published.
    pub(in crate::protocol) changes: Vec<(Duration, usize, Change)>,
    agenda: BTreeMap<(Duration, u64), Event>,
    count: u64,
    highest: Option<Fence>,
    random: u64,
}

impl World {
    pub(in crate::protocol) fn new(database: Skew, seed: u64, network: Network) -> Self {
        Self {
            now: Duration::ZERO,
            database: Database::new(database),
            members: Vec::new(),
            network,
            calls: Vec::new(),
            changes: Vec::new(),
            agenda: BTreeMap::new(),
            count: 0,
            highest: None,
            random: seed,
        }
    }

    /// A new candidate, and where to find it.
    pub(in crate::protocol) fn join(&mut self, timing: Timing, clock: Skew) -> usize {
        let member = self.members.len();
        let identity = Identity::new(format!("candidate-{member}")).unwrap();
        self.members.push(Member {
            candidate: Candidate::idle(identity, timing, true, clock.shows(self.now)),
            clock,
            is_alive: true,
            frozen_until: Duration::ZERO,
            number: 0,
            wake: None,
        });
        self.give(member, Input::Wake);
        member
    }

    /// Who leads at this instant: judged by its clock, as all its work is.
    pub(in crate::protocol) fn leader(&self) -> Option<usize> {
        (0..self.members.len()).find(|member| self.leads(*member))
    }

    fn leads(&self, member: usize) -> bool {
        let Member { candidate, clock, is_alive, .. } = &self.members[member];
        let term = candidate.protocol.term();
        *is_alive && term.is_some_and(|(_, deadline)| clock.shows(self.now) < deadline)
    }

    /// Goes on until `done` or `until`; answers whether it was done. `done` is asked after every step.
    pub(in crate::protocol) fn run(
        &mut self,
        until: Duration,
        mut done: impl FnMut(&Self) -> bool,
    ) -> bool {
        while !done(self) {
            let next_event = self.agenda.first_key_value().map(|((at, _), _)| *at);
            let next_wake = (0..self.members.len()).filter_map(|m| Some((self.wakes(m)?, m))).min();
            let Some(next) = next_event.into_iter().chain(next_wake.map(|(at, _)| at)).min() else {
                return false;
            };
            if next > until {
                self.now = until.max(self.now);
                return done(self);
            }
            self.now = next.max(self.now);
            match next_wake {
                Some((at, member)) if next_event.is_none_or(|event| at < event) => {
                    self.give(member, Input::Wake);
                }
                _ => self.happen(),
            }
        }
        true
    }

    fn wakes(&self, member: usize) -> Option<Duration> {
        let Member { wake, clock, is_alive, frozen_until, .. } = &self.members[member];
        wake.filter(|_| *is_alive).map(|wake| clock.reaches(wake).max(*frozen_until))
    }

    fn happen(&mut self) {
        let Some((_, event)) = self.agenda.pop_first() else { return };
        match event {
            Event::Execute { member, number, call, back } => {
                let reply = self.database.execute(&call, self.now);
                if let Some(back) = back {
                    self.later(back, Event::Deliver { member, number, reply });
                }
            }
            Event::Deliver { member, number, reply } => {
                let Member { frozen_until, number: awaited, candidate, is_alive, .. } =
                    &self.members[member];
                if self.now < *frozen_until {
                    let delay = *frozen_until - self.now;
                    self.later(delay, Event::Deliver { member, number, reply });
                } else if *is_alive && *awaited == number && candidate.call.is_some() {
                    self.give(member, Input::Reply(reply));
                }
            }
            Event::Thaw(member) => self.give(member, Input::Wake),
        }
    }

    pub(in crate::protocol) fn give(&mut self, member: usize, input: Input) {
        let jitter = self.jitter();
        let Member { candidate, clock, is_alive, frozen_until, .. } = &mut self.members[member];
        if !*is_alive || self.now < *frozen_until {
            return;
        }
        candidate.now = clock.shows(self.now);
        candidate.jitter = jitter;
        let step = candidate.give(input).clone();
        self.members[member].wake = step.wake;
        for change in step.changes {
            if let Change::Started { fence, .. } = &change {
                self.started(member, *fence);
            }
            self.changes.push((self.now, member, change));
        }
        if let Some(call) = step.call {
            self.send(member, &call);
        }
    }

    /// A term begins: nobody else has one, it is numbered above all others, and nothing is left of this candidate's old
    /// one.
    fn started(&mut self, member: usize, fence: Fence) {
        let others = (0..self.members.len()).filter(|other| *other != member);
        for other in others {
            assert!(!self.leads(other), "{other} and {member} lead at {:?}", self.now);
        }
        assert!(Some(fence) > self.highest, "{fence} comes after {:?}", self.highest);
        assert_eq!(self.members[member].candidate.levels.guards, 0, "an old guard is held");
        self.highest = Some(fence);
    }

    fn send(&mut self, member: usize, call: &Call) {
        self.calls.push((self.now, member, call.clone()));
        assert!(self.calls.len() < 100_000, "a hot loop at {:?}", self.now);
        let fate = (self.network)(self.now, call);
        self.count += 1;
        let number = self.count;
        self.members[member].number = number;
        let back = match fate.answer {
            Answer::After(back) => Some(back),
            Answer::Failed(_) | Answer::Lost | Answer::Never => None,
        };
        for delay in fate.executed.into_iter().flatten() {
            self.later(delay, Event::Execute { member, number, call: call.clone(), back });
        }
        let (delay, reply) = match fate.answer {
            Answer::Failed(delay) => (delay, Reply::Failed),
            Answer::Lost => (Duration::ZERO, self.refusal(call)),
            Answer::After(_) | Answer::Never => return,
        };
        self.later(delay, Event::Deliver { member, number, reply });
    }

    fn refusal(&self, call: &Call) -> Reply {
        let lease = self.database.read(self.now);
        match call {
            Call::Acquire(_) => Reply::Acquired(Outcome::Lost(lease)),
            Call::Renew(_) => Reply::Renewed(Outcome::Lost(lease)),
            Call::Release(_) => Reply::Released(Outcome::Lost(lease)),
            Call::Inspect | Call::Place(_) => Reply::Failed,
        }
    }

    fn later(&mut self, delay: Duration, event: Event) {
        self.count += 1;
        self.agenda.insert((self.now + delay, self.count), event);
    }

    fn jitter(&mut self) -> Jitter {
        self.random = self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        Jitter::new((self.random >> 48) as u16)
    }

    // What operators and machines do.

    pub(in crate::protocol) fn kill(&mut self, member: usize) {
        self.members[member].is_alive = false;
    }

    pub(in crate::protocol) fn freeze(&mut self, member: usize, duration: Duration) {
        self.members[member].frozen_until = self.now + duration;
        self.later(duration, Event::Thaw(member));
    }

    /// Nobody gets a guard of a term that is over.
    pub(in crate::protocol) fn set_levels(&mut self, member: usize, levels: Levels) {
        let leads = self.leads(member);
        let held = &mut self.members[member].candidate.levels;
        let guards = if leads { levels.guards } else { levels.guards.min(held.guards) };
        *held = Levels { guards, ..levels };
        self.give(member, Input::Wake);
    }

    pub(in crate::protocol) fn depose(&mut self) {
        self.database.depose();
    }

    /// Deletes the record, unless that is what the design assumes nobody does: while somebody has not seen it, or while
    /// a request is on its way that would create one as if there had never been any.
    pub(in crate::protocol) fn delete(&mut self) {
        let Some(Record { lease, .. }) = &self.database.record else { return };
        let has_seen = |member: &Member| {
            let known = &member.candidate.protocol.known;
            known.longest >= Some(lease.duration) && known.floor >= Some(lease.fence)
        };
        let creates = |event: &Event| match event {
            Event::Execute { call: Call::Acquire(request), .. } => request.observed.is_none(),
            Event::Execute { call: Call::Place(_), .. } => true,
            _ => false,
        };
        let is_known = self.members.iter().filter(|member| member.is_alive).all(has_seen);
        if is_known && !self.agenda.values().any(creates) {
            self.database.record = None;
        }
    }

    pub(in crate::protocol) fn move_clock(&mut self, by: Duration, back: bool) {
        self.database.move_clock(by, back);
    }

    pub(in crate::protocol) fn is_running(&self, member: usize) -> bool {
        let Member { is_alive, candidate, .. } = &self.members[member];
        *is_alive && candidate.phase() != Phase::Stopped
    }

    /// Whether it was neither killed nor asked to stop.
    pub(in crate::protocol) fn takes_part(&self, member: usize) -> bool {
        let is_stopping = self.members[member].candidate.protocol.shutdown.is_some();
        self.is_running(member) && !is_stopping
    }

    /// When the last request that is on its way is executed.
    pub(in crate::protocol) fn settled_at(&self) -> Duration {
        self.agenda.last_key_value().map_or(self.now, |((at, _), _)| (*at).max(self.now))
    }
}
