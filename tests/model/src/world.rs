//! All candidates, their store, and what is under way between them.

use std::time::Duration;

use tenure::{
    Fence, Phase, TermEnd, Version,
    protocol::{Call, Change, Input, Jitter, Reply},
    store::Outcome,
};

use crate::{
    candidate::{Candidate, Effects, Flight, Stage, Wrong, observed},
    record::{Caller, Store},
    scope::{Scope, TICK},
    tally::{Mark, Tally},
};

/// A state of the model.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct World {
    pub(crate) store: Store,
    /// Where one candidate after the other lives.
    pub(crate) places: Vec<Option<Candidate>>,
    /// Writes that nobody waits for any more, and which may still be executed, each by whom.
    pub(crate) strays: Vec<(Caller, Call)>,
    /// Which clocks have run ahead: the candidates', then the store's.
    pub(crate) ahead: Vec<bool>,
    pub(crate) crashes: usize,
    pub(crate) requests: usize,
    pub(crate) freezes: usize,
    /// Calls that failed, or were late, as far as they are counted.
    pub(crate) misses: usize,
    /// Faults have stopped; how long it may still take until somebody leads.
    pub(crate) recovery: Option<Duration>,
    pub(crate) wrong: Option<Wrong>,
    highest: Option<Fence>,
}

/// How a step goes that might go in several ways.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Luck {
    /// The longest jitter instead of the shortest.
    pub(crate) lingers: bool,
    /// A request that is given up in this step is never executed.
    pub(crate) loses: bool,
    /// A guard is taken between the count of guards and the step.
    pub(crate) slips: bool,
}

impl World {
    pub(crate) fn new(scope: &Scope) -> Self {
        Self {
            store: Store::default(),
            places: vec![Some(Candidate::new(scope)); scope.candidates],
            strays: Vec::new(),
            ahead: vec![false; scope.candidates + 1],
            crashes: 0,
            requests: 0,
            freezes: 0,
            misses: 0,
            recovery: None,
            wrong: None,
            highest: None,
        }
    }

    pub(crate) fn candidates(&self) -> impl Iterator<Item = (usize, &Candidate)> {
        let places = self.places.iter().enumerate();
        places.filter_map(|(place, candidate)| Some((place, candidate.as_ref()?)))
    }

    pub(crate) fn leaders(&self) -> usize {
        self.candidates().filter(|(_, candidate)| candidate.leads().is_some()).count()
    }

    /// Whether anybody is left who could lead.
    pub(crate) fn can_recover(&self) -> bool {
        self.candidates().any(|(_, candidate)| !candidate.is_leaving)
    }

    /// Whether all terms of the scope are over, with all that they left behind.
    pub(crate) fn is_done(&self, terms: i64) -> bool {
        let begun = self.store.record.as_ref().is_some_and(|it| i64::from(it.fence) >= terms);
        begun && self.candidates().all(|(_, it)| it.phase() == Phase::Following && !it.has_won())
    }

    fn candidate_mut(&mut self, place: usize) -> Option<&mut Candidate> {
        self.places.get_mut(place)?.as_mut()
    }

    /// A new candidate, whom nobody takes for the one before it, starts.
    pub(crate) fn start(&mut self, place: usize, scope: &Scope) {
        self.places[place] = Some(Candidate::new(scope));
    }

    /// A candidate dies in the middle of whatever it does. A request of its that is under way may still be executed.
    pub(crate) fn crash(&mut self, place: usize, scope: &Scope, luck: Luck, tally: &Tally) {
        let Some(dead) = self.places[place].take() else { return };
        self.crashes += 1;
        if dead.leads().is_some() {
            tally.add(Mark::LeaderCrashed);
        }
        let stray = dead.flight.and_then(Flight::into_stray);
        self.abandon(place, stray, scope, luck);
        self.bury(place);
    }

    /// Nothing of what is left of who lived there is any newcomer's.
    fn bury(&mut self, place: usize) {
        let record = self.store.record.iter_mut().filter_map(|record| record.holder.as_mut());
        let strays = self.strays.iter_mut().map(|(caller, _)| caller);
        let mut left: Vec<&mut Caller> = record.chain(strays).collect();
        let is_free = |number: &usize| left.iter().all(|it| **it != Caller::Dead(*number));
        let Some(number) = (0..).find(is_free) else { return };
        for caller in left.iter_mut().filter(|it| ***it == Caller::At(place)) {
            **caller = Caller::Dead(number);
        }
    }

    /// A candidate goes on by one input.
    pub(crate) fn give(
        &mut self,
        place: usize,
        input: Input,
        scope: &Scope,
        luck: Luck,
        tally: &Tally,
    ) {
        let was_won = matches!(input, Input::Reply(Reply::Acquired(Outcome::Won(_))));
        let jitter = Jitter::new(if luck.lingers { u16::MAX } else { 0 });
        let Some(candidate) = self.candidate_mut(place) else { return };
        let counted = candidate.guards;
        if luck.slips {
            candidate.guards += 1;
            tally.add(Mark::GuardSlippedIn);
        }
        let Effects { changes, abandoned, wrong } = candidate.give(input, jitter, counted);
        self.wrong = self.wrong.or(wrong);
        if was_won && changes.is_empty() {
            tally.add(Mark::WonForNothing);
        }
        self.abandon(place, abandoned, scope, luck);
        for change in changes {
            self.changed(change, tally);
        }
    }

    fn changed(&mut self, change: Change, tally: &Tally) {
        match change {
            Change::Started { fence, .. } => {
                if Some(fence) <= self.highest {
                    self.wrong = self.wrong.or(Some(Wrong::FenceUsedBefore));
                }
                self.highest = self.highest.max(Some(fence));
            }
            Change::Extended { .. } => tally.add(Mark::Extended),
            Change::Ended(TermEnd::Expired) => tally.add(Mark::Expired),
            Change::Ended(TermEnd::Lost) => tally.add(Mark::Lost),
            Change::Ended(TermEnd::Resigned) => tally.add(Mark::Resigned),
            Change::Ended(TermEnd::Shutdown) => tally.add(Mark::ShutDown),
            _ => {}
        }
    }

    fn abandon(&mut self, place: usize, call: Option<Call>, scope: &Scope, luck: Luck) {
        let Some(call) = call.filter(|_| !luck.loses) else { return };
        if self.strays.len() < scope.strays {
            self.strays.push((Caller::At(place), call));
        }
    }

    /// A candidate learns that its call failed, and not whether it was executed.
    pub(crate) fn fail(&mut self, place: usize, scope: &Scope, luck: Luck, tally: &Tally) {
        let flight = self.candidate_mut(place).and_then(|it| it.flight.take());
        self.abandon(place, flight.and_then(Flight::into_stray), scope, luck);
        self.give(place, Input::Reply(Reply::Failed), scope, luck, tally);
    }

    pub(crate) fn freeze(&mut self, place: usize) {
        if let Some(candidate) = self.candidate_mut(place) {
            candidate.is_frozen = true;
            self.freezes += 1;
        }
    }

    pub(crate) fn thaw(&mut self, place: usize) {
        if let Some(candidate) = self.candidate_mut(place) {
            candidate.is_frozen = false;
        }
    }

    pub(crate) fn set_guards(&mut self, place: usize, guards: usize) {
        if let Some(candidate) = self.candidate_mut(place) {
            candidate.guards = guards;
        }
    }

    /// The store executes the request that a candidate waits for.
    pub(crate) fn execute(&mut self, place: usize, scope: &Scope, tally: &Tally) {
        let Some(call) = self.request_of(place).cloned() else { return };
        let caller = Caller::At(place);
        self.note_claim(caller, &call, tally);
        let version = self.fresh_version(self.fence_after(caller, &call));
        let reply = self.store.execute(caller, &call, version, scope.shows_clock());
        if let Some(flight) = self.candidate_mut(place).and_then(|it| it.flight.as_mut()) {
            flight.stage = Stage::Replied(reply);
        }
    }

    pub(crate) fn lose_reply(&mut self, place: usize) {
        if let Some(flight) = self.candidate_mut(place).and_then(|it| it.flight.as_mut()) {
            flight.stage = Stage::Lost;
        }
    }

    /// The store executes a request that nobody waits for.
    pub(crate) fn execute_stray(&mut self, stray: usize, tally: &Tally) {
        let (caller, call) = self.strays.remove(stray);
        tally.add(Mark::LateExecution);
        let request = match caller {
            Caller::At(place) => self.request_of(place),
            Caller::Dead(_) => None,
        };
        if request.is_some_and(|request| !matches!(request, Call::Inspect)) {
            tally.add(Mark::LateDuplicate);
        }
        self.note_claim(caller, &call, tally);
        let version = self.fresh_version(self.fence_after(caller, &call));
        // Whatever the reply is, it reaches nobody.
        let _ = self.store.execute(caller, &call, version, false);
    }

    /// The request of a candidate that has not been executed yet.
    pub(crate) fn request_of(&self, place: usize) -> Option<&Call> {
        let flight = self.places.get(place)?.as_ref()?.flight.as_ref()?;
        matches!(flight.stage, Stage::Requested).then_some(&flight.call)
    }

    fn note_claim(&self, caller: Caller, call: &Call, tally: &Tally) {
        if self.store.begins(caller, call).is_none() {
            return;
        }
        let Some(record) = &self.store.record else { return };
        if record.holder == Some(caller) && !record.released {
            tally.add(Mark::LostReply);
        } else if record.released {
            tally.add(Mark::HandOver);
        } else {
            tally.add(Mark::TakeOver);
        }
        if !matches!(record.holder, Some(Caller::At(_))) {
            tally.add(Mark::Succeeded);
        }
    }

    pub(crate) fn note_situation(&self, tally: &Tally) {
        let leads = self.leaders() > 0;
        if leads && self.candidates().any(|(_, candidate)| candidate.is_unaware()) {
            tally.add(Mark::Unaware);
        }
        if self.candidates().any(|(_, candidate)| candidate.outlives_its_term()) {
            tally.add(Mark::Outlived);
        }
        if leads && self.recovery.is_some() {
            tally.add(Mark::Recovered);
        }
    }

    /// An operator ends the term.
    pub(crate) fn depose(&mut self) {
        self.requests += 1;
        let fence = self.store.record.as_ref().map(|record| record.fence);
        self.store.depose(self.fresh_version(fence));
    }

    /// The fence in the record once the call has been executed.
    fn fence_after(&self, caller: Caller, call: &Call) -> Option<Fence> {
        let found = self.store.record.as_ref().map(|record| record.fence);
        self.store.begins(caller, call).or(found)
    }

    /// A version that nobody can mistake for another one: it tells the fence, and is the first such that is not to be found
    /// anywhere. That it was given out before makes no difference when nobody is left to compare it.
    fn fresh_version(&self, fence: Option<Fence>) -> Version {
        let fence = fence.map_or(0, u64::from);
        let in_use = |version: &Version| {
            let record = self.store.record.iter().map(|record| &record.version);
            let strays = self.strays.iter().filter_map(|(_, call)| observed(call));
            let candidates = self.candidates().flat_map(|(_, candidate)| candidate.versions());
            record.chain(strays).chain(candidates).any(|used| used == version)
        };
        let mut number = fence * 100;
        while in_use(&Version::from(number)) {
            number += 1;
        }
        Version::from(number)
    }

    /// How many requests are late if time passes.
    pub(crate) fn waiting(&self) -> usize {
        let places = 0..self.places.len();
        places.filter(|place| self.request_of(*place).is_some()).count()
    }

    /// Time passes, on all clocks alike.
    pub(crate) fn pass(&mut self, time: Duration) {
        self.store.pass(time);
        for candidate in self.places.iter_mut().flatten() {
            candidate.pass(time);
        }
    }

    /// One clock runs ahead of the others.
    pub(crate) fn leap(&mut self, clock: usize) {
        self.ahead[clock] = true;
        if clock == self.places.len() {
            self.store.pass(TICK);
        } else if let Some(candidate) = self.candidate_mut(clock) {
            candidate.pass(TICK);
        }
    }

    /// From here on nothing goes wrong any more: what was under way is lost, guarded work ends, calls are answered at once,
    /// and nobody is late.
    pub(crate) fn calm_down(&mut self, scope: &Scope, tally: &Tally) {
        let timing = scope.timing();
        self.recovery = Some(timing.worst_case().recovery + timing.resign_pause());
        self.strays.clear();
        for place in 0..self.places.len() {
            let Some(candidate) = self.candidate_mut(place) else { continue };
            (candidate.guards, candidate.is_frozen) = (0, false);
            if let Some(flight) = &mut candidate.flight
                && flight.stage == Stage::Requested
            {
                flight.stage = Stage::Lost;
            }
            self.give(place, Input::Wake, scope, Luck::default(), tally);
        }
    }

    /// Time passes until somebody has something to do, or until it has taken too long.
    pub(crate) fn wait(&mut self) {
        let Some(left) = self.recovery else { return };
        let wait = |candidate: &Candidate| Some(candidate.wake?.saturating_since(candidate.now));
        let next = self.candidates().filter_map(|(_, candidate)| wait(candidate)).min();
        match next.filter(|next| *next <= left) {
            Some(next) => {
                self.recovery = Some(left - next);
                self.pass(next);
            }
            None => self.wrong = self.wrong.or(Some(Wrong::NobodyLeads)),
        }
    }

    /// Makes states the same that differ in nothing that matters.
    pub(crate) fn normalise(&mut self, scope: &Scope) {
        let (store, rounds) = (&self.store, self.recovery.is_none());
        self.strays.retain(|(caller, call)| !store.refuses_for_good(*caller, call));
        for place in 0..self.places.len() {
            match &mut self.places[place] {
                // Nothing will ever happen to it again.
                Some(candidate) if candidate.phase() == Phase::Stopped => {
                    self.places[place] = None;
                    self.bury(place);
                }
                Some(candidate) => candidate.settle(scope, rounds),
                None => {}
            }
        }
        self.line_up();
    }
}
