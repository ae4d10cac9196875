//! What others ask of an elector: requests that are never lost, and never pile up.

use std::{
    future::pending,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::sync::Notify;

use crate::{clock::Clock, instant::Instant, lease::Payload};

/// Where requests are left for the elector. Those of one kind become one: two resignations are one, and of two payloads
/// the later counts (rule S13).
#[derive(Debug, Default)]
pub(crate) struct Requests {
    pending: Mutex<Pending>,
    arrived: Notify,
    /// There is a limit, or an earlier one.
    limited: Notify,
}

#[derive(Debug, Default)]
struct Pending {
    last_ticket: u64,
    requested: Requested,
    /// When the elector is to be gone.
    limit: Option<Instant>,
}

/// What has been asked since it was last taken.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Requested {
    /// To resign: the highest ticket among the requests, to be published as `resigns_done`.
    pub(crate) resign: Option<u64>,
    /// To shut down, and how long to wait for work meanwhile.
    pub(crate) shutdown: Option<Duration>,
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
        self.request_drain(Duration::MAX);
    }

    /// To be gone at `limit`, whatever is under way then.
    pub(crate) fn request_shutdown_by(&self, limit: Instant, drain: Duration) {
        self.request_drain(drain);
        let mut pending = self.lock();
        pending.limit = Some(pending.limit.map_or(limit, |before| before.min(limit)));
        drop(pending);
        self.limited.notify_one();
    }

    fn request_drain(&self, drain: Duration) {
        self.request(|pending| {
            let shutdown = &mut pending.requested.shutdown;
            *shutdown = Some(shutdown.map_or(drain, |before| before.min(drain)));
        });
    }

    pub(crate) fn set_eligible(&self, eligible: bool) {
        self.request(|pending| pending.requested.eligible = Some(eligible));
    }

    pub(crate) fn set_payload(&self, payload: Payload) {
        self.request(|pending| pending.requested.payload = Some(payload));
    }

    /// For the elector: all that was asked since the last time.
    pub(crate) fn take(&self) -> Requested {
        std::mem::take(&mut self.lock().requested)
    }

    /// Waits until a limit that was set has passed. One waits at a time; dropping the wait loses nothing.
    pub(crate) async fn out_of_time(&self, clock: &Clock) {
        loop {
            let limit = self.lock().limit;
            let passed = async {
                match limit {
                    Some(limit) => clock.sleep_until(limit).await,
                    None => pending().await,
                }
            };
            tokio::select! {
                () = passed => return,
                () = self.limited.notified() => {}
            }
        }
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
