//! One term after the other.

use super::{Phase, Status};
use crate::{lease::Fence, sync::watch, term::Term};

/// The terms of this candidate, one after the other. Made by [`Leadership::terms`](super::Leadership::terms).
#[derive(Debug)]
#[must_use = "it gives terms only when asked for the next one"]
pub struct Terms {
    status: watch::Receiver<Status>,
    last: Option<Fence>,
}

impl Terms {
    pub(super) fn new(status: watch::Receiver<Status>) -> Self {
        Self { status, last: None }
    }

    /// Waits for a term that it has not given before and that is live, whether or not it [is ready](Term::is_ready);
    /// `None` when the elector has stopped. A term that came and went while nobody waited is left out. Dropping the wait
    /// loses nothing.
    pub async fn next(&mut self) -> Option<Term> {
        loop {
            let status = self.status.borrow_and_update().clone();
            if let Some(term) = status.elected_term().filter(|term| term.is_live()) {
                // The fences of one candidate's terms rise.
                if self.last != Some(term.fence()) {
                    self.last = Some(term.fence());
                    return Some(term.clone());
                }
            }
            if status.phase() == Phase::Stopped {
                return None;
            }
            drop(status);
            self.status.changed().await.ok()?;
        }
    }
}
