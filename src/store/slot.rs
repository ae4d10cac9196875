//! Where a session keeps its connection between calls.

use std::{
    fmt,
    ops::{Deref, DerefMut},
};

/// Keeps a session's connection between two calls, and not during one.
///
/// A call that is dropped at an await point, or that fails, leaves its connection in the middle of something: a reply
/// may still be on its way, and would be taken for that of the next call. So a call takes the connection out, and
/// [keeps](Taken::keep) it only after a whole reply; whatever happens before that discards it, and the next call makes
/// a fresh one.
///
/// ```
/// use tenure::store::Slot;
///
/// # futures::executor::block_on(async {
/// let mut slot = Slot::default();
/// async fn connect(number: u32) -> Result<u32, std::io::Error> { Ok(number) }
///
/// let first = slot.take_or(connect(1)).await?;
/// first.keep();
/// let again = slot.take_or(connect(2)).await?;
/// assert_eq!(*again, 1);
/// drop(again); // this call failed: its connection is gone with it
/// assert_eq!(*slot.take_or(connect(3)).await?, 3);
/// # Ok::<_, std::io::Error>(())
/// # })?;
/// # Ok::<_, std::io::Error>(())
/// ```
pub struct Slot<C>(Option<C>);

impl<C> Slot<C> {
    /// A slot without a connection.
    #[must_use]
    pub const fn new() -> Self {
        Self(None)
    }

    /// Takes the connection out, or makes one by `connect`, which is not polled if there is one.
    ///
    /// # Errors
    /// What `connect` answers.
    ///
    /// # Cancel safety
    /// Dropped while it connects, it leaves the slot empty.
    pub async fn take_or<E>(
        &mut self,
        connect: impl Future<Output = Result<C, E>>,
    ) -> Result<Taken<'_, C>, E> {
        let connection = match self.0.take() {
            Some(connection) => connection,
            None => connect.await?,
        };
        Ok(Taken { slot: self, connection })
    }

    /// Discards the connection unless it is `fit` to be used again.
    pub fn retain(&mut self, fit: impl FnOnce(&C) -> bool) {
        self.0 = self.0.take().filter(fit);
    }

    /// Takes the connection out for good, for example to close it.
    #[must_use]
    pub fn take(&mut self) -> Option<C> {
        self.0.take()
    }

    /// Whether the next call needs to make a connection.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.0.is_none()
    }
}

impl<C> Default for Slot<C> {
    fn default() -> Self {
        Self::new()
    }
}

impl<C> fmt::Debug for Slot<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_empty() { "Slot(empty)" } else { "Slot(connected)" })
    }
}

/// A connection that was taken out of its [`Slot`] for the time of a call. Dropping it discards the connection.
#[must_use = "dropping it discards the connection"]
pub struct Taken<'a, C> {
    slot: &'a mut Slot<C>,
    connection: C,
}

impl<C> Taken<'_, C> {
    /// Puts the connection back: the reply was read to its end.
    pub fn keep(self) {
        self.slot.0 = Some(self.connection);
    }
}

impl<C> Deref for Taken<'_, C> {
    type Target = C;

    fn deref(&self) -> &C {
        &self.connection
    }
}

impl<C> DerefMut for Taken<'_, C> {
    fn deref_mut(&mut self) -> &mut C {
        &mut self.connection
    }
}

impl<C> fmt::Debug for Taken<'_, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Taken")
    }
}

#[cfg(test)]
mod tests {
    use std::{convert::Infallible, future, pin::pin};

    use futures::FutureExt;

    use super::*;

    async fn connect(number: u32) -> Result<u32, Infallible> {
        Ok(number)
    }

    #[tokio::test]
    async fn a_kept_connection_is_used_again_and_no_other_is_made() {
        let mut slot = Slot::new();
        slot.take_or(connect(1)).await.unwrap().keep();
        let unpolled = async { panic!("there is a connection already") };
        let taken = slot.take_or::<Infallible>(unpolled).await.unwrap();
        assert_eq!(*taken, 1);
    }

    #[tokio::test]
    async fn a_call_that_is_dropped_half_way_discards_its_connection() {
        let mut slot = Slot::new();
        slot.take_or(connect(1)).await.unwrap().keep();
        {
            let mut call = pin!(async {
                let taken = slot.take_or(connect(2)).await.unwrap();
                future::pending::<()>().await;
                taken.keep();
            });
            assert!(call.as_mut().now_or_never().is_none());
        }
        assert!(slot.is_empty());
        assert_eq!(*slot.take_or(connect(3)).await.unwrap(), 3);
    }

    #[tokio::test]
    async fn a_connection_that_is_not_fit_any_more_is_discarded() {
        let mut slot = Slot::new();
        slot.take_or(connect(1)).await.unwrap().keep();
        slot.retain(|number| *number == 1);
        assert!(!slot.is_empty());
        slot.retain(|number| *number == 2);
        assert!(slot.is_empty());
    }

    #[tokio::test]
    async fn a_connection_that_can_not_be_made_leaves_the_slot_empty() {
        let mut slot = Slot::<u32>::new();
        assert_eq!(slot.take_or(async { Err("refused") }).await.err(), Some("refused"));
        assert!(slot.is_empty());
    }

    #[tokio::test]
    async fn a_connection_can_be_changed_while_it_is_out_and_be_taken_for_good() {
        let mut slot = Slot::default();
        let mut taken = slot.take_or(connect(1)).await.unwrap();
        *taken += 1;
        taken.keep();
        assert_eq!(slot.take(), Some(2));
        assert!(slot.is_empty());
    }

    /// It may be one with a password in it.
    #[tokio::test]
    async fn a_slot_shows_whether_there_is_a_connection_and_not_which() {
        let mut slot = Slot::default();
        assert_eq!(format!("{slot:?}"), "Slot(empty)");
        let taken = slot.take_or(connect(1)).await.unwrap();
        assert_eq!(format!("{taken:?}"), "Taken");
        taken.keep();
        assert_eq!(format!("{slot:?}"), "Slot(connected)");
    }
}
