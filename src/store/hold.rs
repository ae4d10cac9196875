//! Holding a term inside a transaction of the user's.

use crate::{
    lease::{Fence, Lease, TermEnd},
    store::StoreError,
};

/// Whether a store can hold a term inside a transaction of the user's, so that nobody takes over before its commit, and
/// what that costs the leader.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Hold {
    /// It can't.
    #[default]
    None,
    /// It can, and the leader's own renewals wait until the transaction ends: keep it much shorter than the lease, or the
    /// term ends at its deadline.
    Exclusive,
    /// It can, and renewals pass meanwhile. Several transactions may hold one term.
    Shared,
}

/// Why a term is not held: nothing that the transaction does from here on would be protected. Roll it back.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HoldError {
    /// The term is over here: it was before the database was asked, or ended while it waited for a lock.
    #[error("the term has ended ({0}): roll back")]
    Ended(TermEnd),
    /// The term is not current on the server: its lease expired, was released, taken over, or is gone.
    #[error("the term with fence {fence} is not current on the server: roll back")]
    NotCurrent {
        /// The fence of the term that was to be held.
        fence: Fence,
        /// The record that is there instead, as far as the transaction may see it.
        current: Option<Box<Lease>>,
    },
    /// The connection is not inside a transaction, so that a lock would be gone at once: nothing is held.
    #[error("the connection is not inside a transaction, so nothing is held")]
    NotInTransaction,
    /// The database could not be asked, or the transaction collided with another one. If the error is retryable, so is the
    /// whole transaction.
    #[error(transparent)]
    Store(#[from] StoreError),
}
