//! What others ask of an elector: requests that are never lost, and never pile up.

use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use crate::lease::Payload;

/// Where requests are left for the elector. Those of one kind become one: two resignations are one, and of two payloads
/// the later counts (rule S13).
#[derive(Debug, Default)]
pub(crate) struct Requests {
    pending: Mutex<Pending>,
    arrived: Notify,
}

#[derive(Debug, Default)]
struct Pending {
    last_ticket: u64,
    requested: Requested,
}

/// What has been asked since it was last taken.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Requested {
    /// To resign: the highest ticket among the requests, to be published as `resigns_done`.
    pub(crate) resign: Option<u64>,
    /// To shut down. Once asked it stays asked.
    pub(crate) shutdown: bool,
    pub(crate) eligible: Option<bool>,
    pub(crate) payload: Option<Payload>,
}

impl Requests {
    /// Returns the ticket: the resignation is done when this number, or a higher one, is published.
    pub(crate) fn request_resign(&self) -> u64 {
        self.request(|pending| {
            pending.last_ticket += 1;
            pending.requested.resign = Some(pending.last_ticket);
            pending.last_ticket
        })
    }

    pub(crate) fn request_shutdown(&self) {
        self.request(|pending| pending.requested.shutdown = true);
    }

    pub(crate) fn set_eligible(&self, eligible: bool) {
        self.request(|pending| pending.requested.eligible = Some(eligible));
    }

    pub(crate) fn set_payload(&self, payload: Payload) {
        self.request(|pending| pending.requested.payload = Some(payload));
    }

    /// For the elector: all that was asked since the last time.
    pub(crate) fn take(&self) -> Requested {
        let requested = &mut self.lock().requested;
        let shutdown = requested.shutdown;
        let taken = std::mem::take(requested);
        requested.shutdown = shutdown;
        taken
    }

    /// Waits for a request that came after the last wait ended. One waits at a time; dropping the wait loses nothing.
    pub(crate) async fn changed(&self) {
        self.arrived.notified().await;
    }

    fn request<T>(&self, ask: impl FnOnce(&mut Pending) -> T) -> T {
        let answer = ask(&mut self.lock());
        // Keeps a permit if the elector is not waiting at the moment.
        self.arrived.notify_one();
        answer
    }

    fn lock(&self) -> MutexGuard<'_, Pending> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
