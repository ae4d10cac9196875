//! What may happen next, and what must hold.

use stateright::{Model, Property};
use tenure::{
    Phase,
    protocol::{Call, Input},
};

use crate::{
    candidate::{Candidate, Stage, Wrong},
    record::{Caller, Record},
    scope::{EXPIRY, Scope, TICK},
    tally::{Mark, Tally},
    world::{Luck, World},
};

/// One thing that happens. A candidate is named by its place, which it may change after each.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Action {
    /// Time passes, whoever is late by it.
    Tick,
    /// One clock runs ahead.
    Leap(usize),
    /// A candidate looks at its clock and does what is due.
    Wake(usize, Luck),
    /// The store executes a candidate's request.
    Execute(usize),
    /// The reply arrives.
    Deliver(usize, Luck),
    /// An error arrives instead, whatever became of the request.
    Fail(usize, Luck),
    /// The store executes a request that nobody waits for.
    ExecuteStray(usize),
    /// A candidate freezes: it does nothing, and no reply reaches it.
    Freeze(usize),
    /// It goes on.
    Thaw(usize),
    /// Work that nobody can stop begins.
    TakeGuard(usize),
    /// It ends.
    DropGuard(usize),
    /// Somebody asks a candidate to hand over.
    Resign(usize, Luck),
    /// Somebody asks a candidate to hand over and stop.
    ShutDown(usize, Luck),
    /// An operator ends the term.
    Depose,
    /// A candidate dies.
    Crash(usize, Luck),
    /// Another one takes its place.
    Start(usize),
    /// Faults stop.
    CalmDown,
    /// The store executes a request, and the reply arrives at once.
    RoundTrip(usize, Luck),
    /// The store executes a request, and the reply is lost.
    Swallow(usize),
    /// Time passes until somebody has something to do.
    Wait,
}

/// An election within a [`Scope`].
#[derive(Clone, Debug)]
pub struct Election {
    scope: Scope,
    tally: Tally,
}

impl Election {
    /// All that may happen within this scope.
    #[must_use]
    pub fn new(scope: Scope) -> Self {
        Self { scope, tally: Tally::default() }
    }

    /// What was explored, and how often.
    pub fn marks(&self) -> impl Iterator<Item = (&'static str, u64)> {
        Mark::ALL.iter().map(|(mark, name)| (*name, self.tally.count(*mark)))
    }

    /// Whether this must happen somewhere within the scope.
    fn is_within_reach(&self, mark: Mark) -> bool {
        let Scope { terms, strays, crashes, freezes, requests, guards, recovers, .. } = self.scope;
        let expires = freezes > 0 || self.scope.misses.is_none_or(|most| most >= EXPIRY);
        match mark {
            Mark::Extended => true,
            Mark::Expired => expires,
            Mark::TakeOver => terms > 1 && (expires || crashes > 0),
            Mark::HandOver => terms > 1 && expires,
            Mark::LostReply => terms > 1,
            Mark::LateExecution | Mark::LateDuplicate => strays > 0,
            Mark::WonForNothing => freezes > 0 || requests > 0,
            Mark::Unaware => freezes > 0 && terms > 1,
            Mark::LeaderCrashed => crashes > 0,
            Mark::Succeeded => crashes > 0 && terms > 1,
            Mark::Lost | Mark::Resigned | Mark::ShutDown => requests > 0,
            Mark::Outlived => guards,
            Mark::GuardSlippedIn => guards,
            Mark::Recovered => recovers,
        }
    }

    /// While things go wrong.
    fn troubles(&self, world: &World, actions: &mut Vec<Action>) {
        let scope = &self.scope;
        if scope.recovers && world.can_recover() {
            actions.push(Action::CalmDown);
        }
        let is_held = |record: &Record| record.holder.is_some() && !record.released;
        if world.requests < scope.requests && world.store.record.as_ref().is_some_and(is_held) {
            actions.push(Action::Depose);
        }
        // Nothing that is explored can begin any more.
        if world.is_done(scope.terms) {
            return;
        }
        // Whoever is not frozen does what is due before time goes on.
        let is_anybody_due = world.candidates().any(|(_, candidate)| candidate.is_due());
        if !is_anybody_due && self.may_miss(world, world.waiting()) {
            actions.push(Action::Tick);
        }
        let fast = world.ahead.iter().filter(|is_ahead| **is_ahead).count();
        for (clock, is_ahead) in world.ahead.iter().enumerate() {
            if fast < scope.fast_clocks && !is_ahead {
                actions.push(Action::Leap(clock));
            }
        }
        for (place, candidate) in world.candidates() {
            self.candidate_troubles(world, place, candidate, actions);
        }
        for (place, it) in world.places.iter().enumerate() {
            if it.is_none() {
                actions.push(Action::Start(place));
            }
        }
        for (stray, (caller, call)) in world.strays.iter().enumerate() {
            if self.is_in_scope(world, *caller, call) {
                actions.push(Action::ExecuteStray(stray));
            }
        }
    }

    fn candidate_troubles(
        &self,
        world: &World,
        place: usize,
        candidate: &Candidate,
        actions: &mut Vec<Action>,
    ) {
        let scope = &self.scope;
        let given_up = given_up(world, place, scope);
        if world.crashes < scope.crashes {
            for loses in given_up {
                actions.push(Action::Crash(place, Luck { loses: *loses, ..Luck::default() }));
            }
        }
        match world.request_of(place) {
            Some(call) if self.is_in_scope(world, Caller::At(place), call) => {
                if scope.is_prompt && !candidate.is_frozen {
                    actions.extend(
                        lucks(candidate, &[false]).map(|luck| Action::RoundTrip(place, luck)),
                    );
                    if self.may_miss(world, 1) {
                        actions.push(Action::Swallow(place));
                    }
                } else {
                    actions.push(Action::Execute(place));
                }
            }
            _ => {}
        }
        if candidate.is_frozen {
            return actions.push(Action::Thaw(place));
        }
        let writes = world.request_of(place).is_some_and(|call| !matches!(call, Call::Inspect));
        if world.freezes < scope.freezes && (writes || candidate.leads().is_some()) {
            actions.push(Action::Freeze(place));
        }
        if candidate.is_due() {
            actions.extend(lucks(candidate, given_up).map(|luck| Action::Wake(place, luck)));
            // A guard that was taken in time, after they were counted and before the clock was read.
            if scope.guards && candidate.is_unaware() && candidate.guards == 0 {
                let luck = Luck { slips: true, loses: true, ..Luck::default() };
                actions.push(Action::Wake(place, luck));
            }
        }
        match candidate.flight.as_ref().map(|flight| &flight.stage) {
            Some(Stage::Requested) if self.may_miss(world, 1) => {
                actions.extend(lucks(candidate, given_up).map(|luck| Action::Fail(place, luck)));
            }
            Some(Stage::Replied(_)) => {
                actions.extend(lucks(candidate, &[false]).map(|luck| Action::Deliver(place, luck)));
            }
            Some(Stage::Requested | Stage::Lost) | None => {}
        }
        let admits = candidate.phase() == Phase::Leading && candidate.leads().is_some();
        let takes_guard = scope.guards && admits && candidate.guards == 0;
        if takes_guard {
            actions.push(Action::TakeGuard(place));
        }
        if candidate.guards > 0 {
            actions.push(Action::DropGuard(place));
        }
        if world.requests < scope.requests && !candidate.is_leaving {
            for slips in [false, true] {
                if takes_guard || !slips {
                    let luck = Luck { slips, ..Luck::default() };
                    actions.push(Action::Resign(place, luck));
                    actions.push(Action::ShutDown(place, luck));
                }
            }
        }
    }

    /// Whether that many more calls may fail or be late.
    fn may_miss(&self, world: &World, more: usize) -> bool {
        self.scope.misses.is_none_or(|most| world.misses + more <= most)
    }

    /// Those that do with this are counted, if they are.
    fn misses(&self, world: &World, action: Action) -> usize {
        match action {
            _ if self.scope.misses.is_none() => 0,
            Action::Tick => world.waiting(),
            Action::Fail(..) | Action::Swallow(_) => 1,
            _ => 0,
        }
    }

    /// Whether a term that the call would begin is one of those that are explored.
    fn is_in_scope(&self, world: &World, caller: Caller, call: &Call) -> bool {
        let begins = world.store.begins(caller, call);
        begins.is_none_or(|fence| i64::from(fence) <= self.scope.terms)
    }

    /// When nothing goes wrong any more, all that is due happens before time passes, in any order.
    fn recovery(world: &World, actions: &mut Vec<Action>) {
        if world.leaders() > 0 || world.wrong.is_some() {
            return;
        }
        for (place, candidate) in world.candidates() {
            let lucks = || lucks(candidate, &[false]);
            match candidate.flight.as_ref().map(|flight| &flight.stage) {
                Some(Stage::Requested) => {
                    actions.extend(lucks().map(|luck| Action::RoundTrip(place, luck)));
                }
                Some(Stage::Replied(_)) => {
                    actions.extend(lucks().map(|luck| Action::Deliver(place, luck)));
                }
                Some(Stage::Lost) | None => {}
            }
            if candidate.is_due() {
                actions.extend(lucks().map(|luck| Action::Wake(place, luck)));
            }
        }
        if actions.is_empty() {
            actions.push(Action::Wait);
        }
    }

    fn reply(&self, world: &mut World, place: usize, luck: Luck) {
        let candidate = world.places[place].as_ref();
        let stage = candidate.and_then(|it| it.flight.as_ref()).map(|flight| flight.stage.clone());
        if let Some(Stage::Replied(reply)) = stage {
            world.give(place, Input::Reply(reply), &self.scope, luck, &self.tally);
        }
    }

    fn happen(&self, world: &mut World, action: Action) {
        let Self { scope, tally } = self;
        world.misses += self.misses(world, action);
        match action {
            Action::Tick => world.pass(TICK),
            Action::Leap(clock) => world.leap(clock),
            Action::Wake(place, luck) => world.give(place, Input::Wake, scope, luck, tally),
            Action::Execute(place) => world.execute(place, scope, tally),
            Action::Deliver(place, luck) => self.reply(world, place, luck),
            Action::Fail(place, luck) => world.fail(place, scope, luck, tally),
            Action::ExecuteStray(stray) => world.execute_stray(stray, tally),
            Action::Freeze(place) => world.freeze(place),
            Action::Thaw(place) => world.thaw(place),
            Action::TakeGuard(place) => world.set_guards(place, 1),
            Action::DropGuard(place) => world.set_guards(place, 0),
            Action::Resign(place, luck) => {
                world.requests += 1;
                world.give(place, Input::Resign, scope, luck, tally);
            }
            Action::ShutDown(place, luck) => {
                world.requests += 1;
                world.give(place, Input::Shutdown, scope, luck, tally);
            }
            Action::Depose => world.depose(),
            Action::Crash(place, luck) => world.crash(place, scope, luck, tally),
            Action::Start(place) => world.start(place, scope),
            Action::CalmDown => world.calm_down(scope, tally),
            Action::RoundTrip(place, luck) => {
                world.execute(place, scope, tally);
                self.reply(world, place, luck);
            }
            Action::Swallow(place) => {
                world.execute(place, scope, tally);
                world.lose_reply(place);
            }
            Action::Wait => world.wait(),
        }
        world.note_situation(tally);
    }
}

/// Whether a request of the candidate that is given up is lost: both, if it may still be executed.
fn given_up(world: &World, place: usize, scope: &Scope) -> &'static [bool] {
    let is_write = world.request_of(place).is_some_and(|call| !matches!(call, Call::Inspect));
    if is_write && world.strays.len() < scope.strays { &[true, false] } else { &[true] }
}

/// How a step may go: jitter makes a difference where it sets the next look.
fn lucks(candidate: &Candidate, loses: &'static [bool]) -> impl Iterator<Item = Luck> {
    let looks = candidate.phase() == Phase::Following && candidate.flight.is_some();
    let lingers = if looks { [false, true].as_slice() } else { &[false] };
    let both = move |loses: &bool| {
        let loses = *loses;
        lingers.iter().map(move |lingers| Luck { lingers: *lingers, loses, slips: false })
    };
    loses.iter().flat_map(both)
}

impl Model for Election {
    type State = World;
    type Action = Action;

    fn init_states(&self) -> Vec<World> {
        vec![World::new(&self.scope)]
    }

    fn actions(&self, world: &World, actions: &mut Vec<Action>) {
        match world.recovery {
            _ if world.wrong.is_some() => {}
            None => self.troubles(world, actions),
            Some(_) => Self::recovery(world, actions),
        }
    }

    fn next_state(&self, before: &World, action: Action) -> Option<World> {
        let mut world = before.clone();
        self.happen(&mut world, action);
        world.normalise(&self.scope);
        (world != *before).then_some(world)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        let mut properties = vec![
            Property::always("at most one term is live", |_, world: &World| world.leaders() <= 1),
            Property::always("fences rise", |_, world: &World| {
                world.wrong != Some(Wrong::FenceUsedBefore)
            }),
            Property::always("nothing is released or begun over a guard", |_, world: &World| {
                world.wrong != Some(Wrong::OverAGuard)
            }),
            Property::always("a term that is over is never live again", |_, world: &World| {
                world.wrong != Some(Wrong::LiveAgain)
            }),
            Property::always(
                "somebody leads in time once faults have stopped",
                |_, world: &World| world.wrong != Some(Wrong::NobodyLeads),
            ),
        ];
        // What stateright takes is a function that keeps nothing, hence one for each.
        macro_rules! happens {
            ($($mark:ident)*) => {
                $(if self.is_within_reach(Mark::$mark) {
                    properties.push(Property::sometimes(Mark::$mark.name(), |model: &Self, _| {
                        model.tally.count(Mark::$mark) > 0
                    }));
                })*
            };
        }
        happens!(TakeOver HandOver LostReply LateExecution LateDuplicate WonForNothing Unaware Extended Expired Lost
            Resigned ShutDown LeaderCrashed Succeeded Outlived GuardSlippedIn Recovered);
        properties
    }
}

#[cfg(test)]
pub(crate) mod tests;
