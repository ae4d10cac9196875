//! A world: candidates, a store, the way between them, and what befalls them.

mod calm;
mod driver;
mod faults;
mod journey;

use std::time::Duration;

use tenure::protocol::{Call, Input, Reply};

use crate::{
    agenda::Agenda,
    coverage::Coverage,
    event::{Event, What, Who},
    network::Weather,
    oracle::{Oracle, Properties, Violation},
    participant::Participant,
    record::{Commit, Store},
    script::{END, Script},
    time::Moment,
};

/// What is going to happen.
#[derive(Clone, Debug)]
enum Happening {
    /// A request reaches the store.
    Arrive(Box<Request>),
    /// An answer reaches whoever asked.
    Deliver {
        who: Who,
        number: u64,
        reply: Reply,
    },
    /// Somebody who works for a term looks whether it is live.
    Look(Who),
    /// An elector's thread is run again.
    Resume(Who),
    Thaw(Who),
    /// A process begins in this place, unless one is running there.
    Join {
        slot: usize,
    },
    /// A candidate's eligibility changes back.
    ChangeBack {
        slot: usize,
    },
    TakeGuard {
        who: Who,
        lasts: Option<Duration>,
    },
    DropGuard {
        who: Who,
        epoch: u32,
    },
    FinishWork {
        who: Who,
        epoch: u32,
    },
    Hint(Who),
    /// The store comes back as it was so many writes ago.
    Restore {
        writes: usize,
    },
    /// No fault strikes any more.
    Calm,
    /// Nothing of the bad times is on its way any more.
    Settle,
    /// In good times the leader goes.
    LoseLeader,
}

#[derive(Clone, Debug)]
struct Request {
    who: Who,
    number: u64,
    call: Call,
    answered: Option<Duration>,
    worn: Duration,
    is_double: bool,
    /// How many terms there had been when it was sent.
    terms: u32,
}

/// What the way to the store is like.
#[derive(Clone, Debug)]
struct Conditions {
    weather: Weather,
    weather_until: Moment,
    outage_until: Moment,
    refuses: bool,
    /// Of each place: until when nothing passes there, and back.
    cut_there: Vec<Moment>,
    cut_back: Vec<Moment>,
}

/// More than this does not happen at one moment, unless an elector goes round in circles.
const MOST_AT_ONCE: u32 = 10_000;

/// What came of a run.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Run {
    /// What was violated, if anything was.
    pub violation: Option<Violation>,
    /// How many steps the protocols made.
    pub steps: u64,
    /// How many things happened.
    pub events: u64,
    /// What was exercised.
    pub coverage: Coverage,
    /// Everything that happened, if that was to be written down.
    pub history: Vec<Event>,
    /// Everything that was written to the record.
    pub log: Vec<Commit>,
}

/// Plays a script to its end, or to the first violation.
#[must_use]
pub fn play(script: &Script, watched: Properties, with_history: bool) -> Run {
    let mut world = World::new(script, watched, with_history);
    world.run();
    Run {
        violation: world.oracle.violation().cloned(),
        steps: world.steps,
        events: world.events,
        coverage: world.coverage,
        history: world.history.unwrap_or_default(),
        log: world.store.log().to_vec(),
    }
}

struct World<'s> {
    script: &'s Script,
    now: Moment,
    end: Moment,
    agenda: Agenda<Happening>,
    next_incident: usize,
    store: Store,
    participants: Vec<Participant>,
    conditions: Conditions,
    oracle: Oracle,
    coverage: Coverage,
    history: Option<Vec<Event>>,
    /// Who led last.
    leader: usize,
    /// How many terms there have been.
    terms: u32,
    deleted_at: Option<Moment>,
    clock_set_at: Option<Moment>,
    /// The record was set back, or the clock was: leases may seem to last for longer than they do.
    was_set_back: bool,
    is_calm: bool,
    /// Who hands over in good times, without any hint, and how long that may take from the release on.
    handing_over: Option<(Who, Duration)>,
    numbers: u64,
    /// How much has happened without any time passing.
    at_once: u32,
    random: u64,
    steps: u64,
    events: u64,
}

impl<'s> World<'s> {
    fn new(script: &'s Script, watched: Properties, with_history: bool) -> Self {
        let slots = script.candidates.len();
        let mut world = Self {
            script,
            now: Moment::START,
            end: END,
            agenda: Agenda::new(),
            next_incident: 0,
            store: Store::new(script.store, script.store_clock),
            participants: Vec::with_capacity(slots),
            conditions: Conditions {
                weather: Weather::Fair,
                weather_until: Moment::START,
                outage_until: Moment::START,
                refuses: false,
                cut_there: vec![Moment::START; slots],
                cut_back: vec![Moment::START; slots],
            },
            oracle: Oracle::new(script.store, watched),
            coverage: Coverage::default(),
            history: with_history.then(Vec::new),
            leader: 0,
            terms: 0,
            deleted_at: None,
            clock_set_at: None,
            was_set_back: false,
            is_calm: false,
            handing_over: None,
            numbers: 0,
            at_once: 0,
            random: script.jitter | 1,
            steps: 0,
            events: 0,
        };
        for (slot, candidate) in script.candidates.iter().enumerate() {
            let who = Who { slot, incarnation: 0 };
            world.participants.push(Participant::new(who, candidate, 0));
        }
        world.agenda.put(script.calm_from, Happening::Calm);
        world
    }

    fn run(&mut self) {
        for slot in 0..self.participants.len() {
            self.begin(slot);
        }
        while self.oracle.violation().is_none() && self.go_on() {}
        if self.oracle.violation().is_none() {
            self.oracle.finish(self.now);
        }
    }

    /// Does what comes next; false at the end.
    fn go_on(&mut self) -> bool {
        let mut next = self.agenda.next_at();
        let mut timer = None;
        for (slot, participant) in self.participants.iter().enumerate() {
            let wakes = participant.wakes();
            if wakes < next {
                (next, timer) = (wakes, Some(slot));
            }
        }
        let incident = self.script.incidents.get(self.next_incident);
        if let Some(incident) = incident.filter(|incident| incident.at <= next) {
            self.now = self.now.max(incident.at);
            self.next_incident += 1;
            self.strike(incident.fault);
            return true;
        }
        if next > self.end {
            self.now = self.end;
            return false;
        }
        self.at_once = if next > self.now { 0 } else { self.at_once + 1 };
        self.now = self.now.max(next);
        self.events += 1;
        match timer {
            Some(slot) => {
                if self.at_once > MOST_AT_ONCE {
                    self.oracle.spins(self.now, self.participants[slot].who);
                }
                self.look(slot);
                self.give(slot, Input::Wake);
            }
            None => {
                if let Some(happening) = self.agenda.take() {
                    self.happen(happening);
                }
            }
        }
        true
    }

    fn happen(&mut self, happening: Happening) {
        match happening {
            Happening::Arrive(request) => self.arrive(&request),
            Happening::Deliver { who, number, reply } => self.deliver(who, number, reply),
            Happening::Look(who) => {
                if self.is_current(who) {
                    self.look(who.slot);
                }
            }
            Happening::Resume(who) => self.resume(who),
            Happening::Thaw(who) => self.thaw(who),
            Happening::Join { slot } => self.rejoin(slot),
            Happening::ChangeBack { slot } => {
                if !self.is_calm {
                    self.change_eligibility(slot);
                }
            }
            Happening::TakeGuard { who, lasts } => {
                if self.is_current(who) {
                    self.take_guard(who.slot, lasts);
                }
            }
            Happening::DropGuard { who, epoch } => self.drop_guard(who, epoch),
            Happening::FinishWork { who, epoch } => self.finish_work(who, epoch),
            Happening::Hint(who) => {
                if self.is_current(who) {
                    self.hint(who.slot);
                }
            }
            Happening::Restore { writes } => {
                if self.may_lose() {
                    self.was_set_back = true;
                    self.write(|store, at| store.restore(writes, at));
                }
            }
            Happening::Calm => self.calm(),
            Happening::Settle => self.settle(),
            Happening::LoseLeader => self.lose_leader(),
        }
    }

    fn is_current(&self, who: Who) -> bool {
        let participant = &self.participants[who.slot];
        participant.who == who && participant.is_running
    }

    fn emit(&mut self, who: Option<Who>, what: What) {
        let event = Event { at: self.now, who, what };
        self.oracle.observe(&event);
        if let Some(history) = &mut self.history {
            history.push(event);
        }
    }

    /// Chance that shrinking leaves alone: jitter, and who of two that are ready comes first.
    fn bits(&mut self) -> u16 {
        self.random = self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.random >> 48) as u16
    }

    /// Something is written to the record, by nobody's call.
    fn write(&mut self, write: impl FnOnce(&mut Store, Moment)) {
        let before = self.store.log().len();
        write(&mut self.store, self.now);
        self.audit(before, None);
    }

    /// Hands what was written since to the oracle.
    fn audit(&mut self, before: usize, by: Option<Who>) {
        for commit in &self.store.log()[before..] {
            self.oracle.committed(by, commit);
        }
    }
}
