//! Why a message got no answer.

use tenure::{Leader, LeaderOnlyError, TermEnd};

/// Why a message to a leader-only actor got no answer.
///
/// Of the first four, no handler has seen the message, so it may be sent again, here or elsewhere. Of the others the
/// [outcome is unknown](Self::outcome_is_unknown).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LeaderSendError {
    /// This candidate does not lead, is not ready yet, or is about to hand over; or it stopped leading before a handler had
    /// begun.
    #[error("{}", not_leader(.leader.as_ref()))]
    NotLeader {
        /// Whom to ask instead: who else led when this candidate last looked, if anybody did.
        leader: Option<Leader>,
    },
    /// As many messages wait for the actor as its mailbox holds.
    #[error("the actor's mailbox is full")]
    MailboxFull,
    /// The supervisor is gone, and with it all actors that it could have started: its arbiter or `LocalSet` was stopped.
    #[error("the actor's supervisor is gone")]
    SupervisorGone,
    /// A handler had begun when the term ended.
    #[error("the term is over: {0}")]
    TermEnded(TermEnd),
    /// A handler had begun and gave no answer, though the term goes on: the actor panicked, stopped, or dropped the answer.
    #[error("the actor gave no answer")]
    Unanswered,
}

impl LeaderSendError {
    /// Whether a handler may have done what the message asked for.
    #[must_use]
    pub fn outcome_is_unknown(&self) -> bool {
        matches!(self, Self::TermEnded(_) | Self::Unanswered)
    }
}

/// In the same words as everywhere.
fn not_leader(leader: Option<&Leader>) -> LeaderOnlyError {
    LeaderOnlyError::NotLeader { leader: leader.cloned() }
}
