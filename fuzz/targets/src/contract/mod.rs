//! The contract of a store, operation by operation, against a model of one record.
//!
//! [`play`] reads a sequence of operations of several candidates from bytes, with claims on what was seen long ago, fences
//! of others, floors, an administrator who deposes and one who deletes, and time that passes. After each of them the outcome
//! and the record have to be what the model says.

mod ground;
mod model;
mod operation;

use std::{future::Future, pin::pin, task};

use tenure::{
    Clock, ElectionName, Lease, MemoryStore, Store, StoreError,
    store::{Outcome, Session},
};

pub use self::ground::Ground;
use self::{
    ground::InMemory,
    model::{Model, Verdict},
    operation::{Operation, Seen},
};
use crate::input::Input;

/// More than one case needs to be interesting.
const MOST_OPERATIONS: usize = 60;

pub(crate) fn in_memory(bytes: &[u8]) {
    let (clock, hand) = Clock::manual();
    let ground = InMemory { store: MemoryStore::with_clock(clock), hand };
    let election = ElectionName::new("an election").unwrap();
    let play = pin!(play(bytes, &ground, &election, MOST_OPERATIONS));
    let polled = play.poll(&mut task::Context::from_waker(task::Waker::noop()));
    assert!(polled.is_ready(), "the in-process store never pends");
}

/// Plays the operations that the bytes stand for, `most` at most, on an election that nobody has led.
///
/// # Panics
/// If the store breaks its contract.
pub async fn play<G: Ground>(bytes: &[u8], ground: &G, election: &ElectionName, most: usize) {
    let mut input = Input::new(bytes);
    let store = ground.store();
    let sessions = operation::candidates().map(|_| store.session(election));
    let mut game = Game {
        ground,
        election,
        onlooker: store.session(election),
        store,
        sessions,
        model: Model::new(G::EXACT, ground.store().capabilities().clock),
        seen: Seen::default(),
        played: Vec::new(),
    };
    for _ in 0..most {
        if input.is_used_up() {
            break;
        }
        let operation = Operation::read(&mut input, &game.seen, game.model.record(), G::EXACT);
        game.play(operation).await;
    }
}

struct Game<'a, G: Ground> {
    ground: &'a G,
    election: &'a ElectionName,
    store: G::Store,
    sessions: [<G::Store as Store>::Session; 3],
    /// Takes no part.
    onlooker: <G::Store as Store>::Session,
    model: Model,
    seen: Seen,
    /// For whoever has to find out what went wrong.
    played: Vec<Operation>,
}

impl<G: Ground> Game<'_, G> {
    async fn play(&mut self, operation: Operation) {
        self.played.push(operation.clone());
        let expected = self.model.verdict(&operation);
        let told = self.perform(&operation).await;
        self.judge(&expected, told);
        if let Some(short) = operation.runs_out().filter(|_| expected.is_won()) {
            self.ground.wait_out(&mut self.onlooker, short).await;
            self.model.pass(short);
        }
        let found = self.onlooker.inspect().await.expect("the store answers");
        self.model.shows(found.as_ref()).unwrap_or_else(|why| self.fail(&why));
        self.seen.remember(found);
    }

    /// What the store says: the outcome, where there is one.
    async fn perform(&mut self, operation: &Operation) -> Result<Option<Outcome>, StoreError> {
        match operation {
            Operation::Inspect { by } => {
                self.sessions[*by].inspect().await.map(|found| Some(Outcome::Lost(found)))
            }
            Operation::Acquire { by, request } => {
                self.sessions[*by].acquire(request).await.map(Some)
            }
            Operation::Renew { by, request } => self.sessions[*by].renew(request).await.map(Some),
            Operation::Release { by, request } => {
                self.sessions[*by].release(request).await.map(Some)
            }
            Operation::Place { by, request } => {
                let placed = self.sessions[*by].place(request).await;
                // The call does not tell whether it was this one that placed it; the model does.
                placed.map(|lease| match self.model.record() {
                    None => Some(Outcome::Won(lease)),
                    Some(_) => Some(Outcome::Lost(Some(lease))),
                })
            }
            Operation::Depose => {
                let deposed = self.store.depose(self.election).await?;
                Ok(Some(deposed.map_or(Outcome::Lost(None), Outcome::Won)))
            }
            Operation::List => {
                let all = self.store.leaders().await?;
                let ours = |(election, lease): (ElectionName, Lease)| {
                    (election == *self.election).then_some(lease)
                };
                Ok(Some(Outcome::Lost(all.into_iter().find_map(ours))))
            }
            Operation::Forget => {
                self.ground.forget(self.election).await;
                Ok(None)
            }
            Operation::Pass(time) => {
                self.ground.pass(*time);
                Ok(None)
            }
        }
    }

    fn judge(&mut self, expected: &Verdict, told: Result<Option<Outcome>, StoreError>) {
        let judged = match (expected, told) {
            (Verdict::Fails | Verdict::LosesOrFails, Err(error)) if error.is_fatal() => Ok(()),
            (Verdict::Fails, told) => Err(format!("there is no fence left, but: {told:?}")),
            (_, Err(error)) => Err(format!("the store failed: {error} {error:?}")),
            (Verdict::Happens(record), Ok(None)) => {
                self.model.becomes(record.clone());
                Ok(())
            }
            (Verdict::Wins(write), Ok(Some(Outcome::Won(lease)))) => {
                self.model.wrote(write, &lease)
            }
            (Verdict::Loses | Verdict::LosesOrFails, Ok(Some(Outcome::Lost(found)))) => {
                self.model.shows(found.as_ref())
            }
            (expected, Ok(told)) => Err(format!("expected {expected:?}, but {told:?}")),
        };
        judged.unwrap_or_else(|why| self.fail(&why));
    }

    fn fail(&self, why: &str) -> ! {
        let played = self.played.iter().map(|operation| format!("\n  {operation:?}"));
        panic!("{why}\nthe model: {:?}\nafter:{}", self.model, played.collect::<String>());
    }
}
