//! Model checking: everything that can happen in a small election, on the state machine that ships.
//!
//! [`explore`] has stateright go through all states that [`Election`] can come to within a [`Scope`]. A state is a few
//! `tenure::protocol::Protocol`s, as they ship, with a clock each; one record, which is this crate's own; and the calls that are
//! under way. What may happen next is an [`Action`]: a tick, a step, an execution, a reply, an error, a loss, a guard, a
//! crash. Timings are as short as the library allows, so that a lease is five ticks long.
//!
//! # What is shown
//! Always: at most one term is live, by the clock of each candidate; fences rise; nothing is released, and no term begins,
//! over a guard; a term that is over, also one that nobody has looked at since, is never live again. And within a scope that
//! `recovers`: from whatever state faults stop in, somebody leads within `timing.worst_case().recovery`, and a resign pause
//! more, which that does not count.
//!
//! The last is a property of safety, with the time that is left as part of the state, and not one of stateright's `eventually`:
//! those forget a counterexample when two ways lead to one state, of which one had a leader before. It is also the stronger
//! one, since it says by when.
//!
//! An exploration in which nothing happens would show all of that. So a scope also says what must have happened somewhere in it
//! (`sometimes`): take-overs, lost replies, late executions, and so on; they are counted in the transitions, which are not
//! kept in states.
//!
//! # Within which bounds
//! - Two candidates or three; two terms, after which nothing new begins.
//! - Whoever is not frozen does what is due before the next tick, in any order with everybody else. Jitter is the shortest or
//!   the longest.
//! - A clock that is fast runs ahead by one tick, at any moment: the whole margin, once in a run. Rates that differ for longer
//!   than two terms are for the simulation, as is what happens between ticks.
//! - A few of each of the other faults, as the scope says. Failures, losses and delays of calls are not counted, but where the
//!   scope says how many there may be (`misses`): among three candidates it is one, so that terms end there because a leader
//!   freezes or dies.
//! - In a *prompt* scope a reply takes no time, if it comes. Late requests are still late there.
//!
//! # What makes states the same
//! Each of these is argued where it is done: who lives where, since candidates are alike (`World::line_up`); the time of day, and the age of what is merely past (`Candidate::settle`); versions,
//! of which only equality means something (`World::fresh_version`); late writes that can write nothing any more
//! (`Store::refuses_for_good`); candidates that have stopped.

mod candidate;
mod explore;
mod model;
mod record;
mod scope;
mod symmetry;
mod tally;
mod world;

pub use crate::{
    candidate::Wrong,
    explore::{Report, explore},
    model::{Action, Election},
    scope::Scope,
    world::{Luck, World},
};
