//! Transactions of the user's, in which a term is held.

use std::{convert::Infallible, error::Error, future::Future};

use tenure::{Term, store::HoldError};

/// What the user's own statements fail with.
pub type BoxError = Box<dyn Error + Send + Sync>;

/// A transaction of the user's own, on the database in which the leases are, and in it one number: how often somebody
/// has [added](Self::add) to it.
///
/// Dropped before its [commit](Self::commit), it is rolled back: nothing that was added in it is ever seen.
pub trait Transaction: Send {
    /// Holds `term`, by the method that the store has for it.
    fn hold(&mut self, term: &Term) -> impl Future<Output = Result<(), HoldError>> + Send;

    /// Reads the number, as one that has nothing to do with leases. Where the isolation level has a snapshot, the first
    /// statement of a transaction takes it.
    fn count(&mut self) -> impl Future<Output = Result<i64, BoxError>> + Send;

    /// Adds one to the number.
    fn add(&mut self) -> impl Future<Output = Result<(), BoxError>> + Send;

    /// Makes what was added visible. An error says that it is not, and never will be.
    fn commit(self) -> impl Future<Output = Result<(), BoxError>> + Send;
}

/// How a transaction is isolated from others, in SQL's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(clippy::exhaustive_enums)] // subjects match on all of them
pub enum Isolation {
    /// Each statement sees what was committed before it.
    ReadCommitted,
    /// All statements see what was committed before the first one.
    RepeatableRead,
    /// As if transactions came one after the other.
    Serializable,
}

impl Isolation {
    /// All of them, the weakest first.
    pub const ALL: [Self; 3] = [Self::ReadCommitted, Self::RepeatableRead, Self::Serializable];
}

/// Of a store that can not hold a term.
impl Transaction for Infallible {
    async fn hold(&mut self, _: &Term) -> Result<(), HoldError> {
        match *self {}
    }

    async fn count(&mut self) -> Result<i64, BoxError> {
        match *self {}
    }

    async fn add(&mut self) -> Result<(), BoxError> {
        match *self {}
    }

    async fn commit(self) -> Result<(), BoxError> {
        match self {}
    }
}
