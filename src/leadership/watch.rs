//! Being woken when a status changes.

use super::{Phase, Status, Stopped};
use crate::sync::watch;

/// Wakes when an election's [`Status`] changes. Made by [`Leadership::watch`](super::Leadership::watch).
///
/// It works like a receiver of tokio's `watch` channel, except that it gives statuses away instead of lending them: a
/// loan locks the channel, and whoever kept it, over a `match` or a long job, would stop the elector, and with it all
/// others of the process.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
/// use tenure::{Elector, MemoryStore};
///
/// let candidacy = Elector::builder("invoice-reconciler", MemoryStore::new()).build()?.spawn();
/// let mut watch = candidacy.leadership().watch();
/// while !watch.borrow_and_update().is_leader() {
///     watch.changed().await?;
/// }
/// # candidacy.shutdown().await?;
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct StatusWatch(watch::Receiver<Status>);

impl StatusWatch {
    /// What is current when `status` comes in counts as seen.
    pub(super) fn new(mut status: watch::Receiver<Status>) -> Self {
        status.mark_unchanged();
        Self(status)
    }

    /// The receiver of tokio's channel beneath, for libraries that ask for one, such as streams.
    ///
    /// Do not keep what it lends: as long as a loan lives, the elector that publishes here waits, and with it all others of
    /// the process: nobody renews, and nobody is woken. Whoever asks this elector's [`Leadership`](super::Leadership) waits
    /// behind it. A [`Term`](crate::Term) and a [`Status`] that somebody has in hand still answer, by the clock.
    #[must_use]
    pub fn into_receiver(self) -> watch::Receiver<Status> {
        self.0
    }

    /// The current status. Whether it was seen before stays as it is.
    #[must_use]
    pub fn borrow(&self) -> Status {
        self.0.borrow().clone()
    }

    /// The current status, which counts as seen from now on.
    #[must_use]
    pub fn borrow_and_update(&mut self) -> Status {
        self.0.borrow_and_update().clone()
    }

    /// Waits for a change that was not seen yet, which then counts as seen. Dropping the wait loses nothing.
    ///
    /// # Errors
    /// [`Stopped`] when the elector is gone, and its last change was seen.
    pub async fn changed(&mut self) -> Result<(), Stopped> {
        self.0.changed().await.map_err(|_| Stopped)
    }

    /// Waits for a status that is as `wanted`, and gives it. The current one is asked first, then every one that comes
    /// while nobody is slow. Dropping the wait loses nothing.
    ///
    /// # Errors
    /// [`Stopped`] when the elector has stopped, and its last status is not as wanted.
    pub async fn wait_for(
        &mut self,
        mut wanted: impl FnMut(&Status) -> bool,
    ) -> Result<Status, Stopped> {
        loop {
            // A copy: what is asked is somebody else's code.
            let current = self.borrow_and_update();
            if wanted(&current) {
                return Ok(current);
            }
            if current.phase() == Phase::Stopped {
                return Err(Stopped);
            }
            self.changed().await?;
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;
    use crate::testing::ManualLeadership;

    #[test]
    fn whoever_waits_for_what_never_comes_is_told_when_the_elector_has_stopped() {
        let manual = ManualLeadership::new("billing");
        let mut watch = manual.leadership().watch();
        assert!(watch.wait_for(|status| status.is_leader()).now_or_never().is_none());
        drop(manual);
        let waited = watch.wait_for(|status| status.is_leader()).now_or_never().unwrap();
        assert!(matches!(waited, Err(Stopped)), "{waited:?}");
    }
}
