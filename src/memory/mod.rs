//! A store inside the process: the whole contract without a database.

mod records;

use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError},
};

use futures::stream;

use crate::{
    clock::Clock,
    instant::Instant,
    lease::{ElectionName, Lease},
    store::{
        AcquireRequest, Capabilities, Hints, Outcome, PlaceRequest, ReleaseRequest, RenewRequest,
        Session, Store, StoreError,
    },
};

use self::records::Records;

/// Keeps leases in the memory of this process: for tests, for development, and for a service that has one replica
/// today. Clones share their records; two stores made by [`new`](Self::new) have nothing in common.
///
/// It keeps the contract of [`Store`] to the letter and passes the same suite as the databases do. Its wall clock
/// stands at zero, so the fences of an election are 1, 2, 3. A release wakes the followers, so that a hand-over waits for
/// no polling period; [`WithoutHints`](crate::store::WithoutHints) turns that off.
///
/// ```
/// use std::time::Duration;
/// use tenure::{
///     ElectionName, Identity, MemoryStore,
///     store::{AcquireRequest, Outcome, Session, Store},
/// };
///
/// # futures::executor::block_on(async {
/// let store = MemoryStore::new();
/// let billing = ElectionName::new("billing")?;
/// let request = AcquireRequest::new(Identity::new("a")?, None, Duration::from_secs(15));
///
/// let outcome = store.session(&billing).acquire(&request).await?;
/// assert!(matches!(outcome, Outcome::Won(lease) if u64::from(lease.fence) == 1));
/// assert_eq!(store.leaders().await?.len(), 1);
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Default)]
pub struct MemoryStore(Arc<Shared>);

#[derive(Default)]
struct Shared {
    clock: Clock,
    records: Mutex<Records>,
}

impl MemoryStore {
    /// A store without any record.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// See [`Store::leaders`].
    ///
    /// # Errors
    /// None; the signature is that of every store.
    pub async fn leaders(&self) -> Result<Vec<(ElectionName, Lease)>, StoreError> {
        Ok(self.0.lock(|records, now| records.list(now)))
    }

    /// See [`Store::depose`].
    ///
    /// # Errors
    /// None; the signature is that of every store.
    pub async fn depose(&self, election: &ElectionName) -> Result<Option<Lease>, StoreError> {
        Ok(self.0.lock(|records, now| records.depose(election, now)))
    }

    /// See [`Store::ping`].
    ///
    /// # Errors
    /// None; the signature is that of every store.
    pub async fn ping(&self) -> Result<(), StoreError> {
        Ok(())
    }
}

/// For tests: a virtual clock, and what befalls databases but in normal operation never an election's record.
#[cfg(any(test, feature = "test-util"))]
#[cfg_attr(docsrs, doc(cfg(feature = "test-util")))]
impl MemoryStore {
    /// A store whose leases expire by `clock`, so that it shares one virtual time with the electors of a test.
    ///
    /// ```
    /// use std::{future, time::Duration};
    /// use tenure::{Clock, Elector, MemoryStore};
    ///
    /// // As in a test that begins with `#[tokio::test(start_paused = true)]`:
    /// # tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build()?.block_on(async {
    /// let clock = Clock::tokio();
    /// let store = MemoryStore::with_clock(clock.clone());
    /// let candidate = || Elector::builder("billing", store.clone()).clock(clock.clone()).build();
    /// let (first, second) = (candidate()?, candidate()?);
    /// let (leader, follower) = (first.leadership(), second.leadership());
    ///
    /// let first = tokio::spawn(first.run(future::pending()));
    /// leader.leading().await?;
    /// let second = second.spawn();
    /// tokio::time::sleep(Duration::from_secs(3600)).await; // takes no time
    /// assert!(leader.is_leader() && !follower.is_leader());
    ///
    /// first.abort(); // as a crash would
    /// follower.leading().await?;
    /// assert!(!leader.is_leader());
    /// second.shutdown().await?;
    /// # Ok::<_, Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<_, Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn with_clock(clock: Clock) -> Self {
        Self(Arc::new(Shared { clock, records: Mutex::default() }))
    }

    /// Deletes a record, as a careless operator would.
    pub fn forget(&self, election: &ElectionName) {
        self.0.lock(|records, _| records.table.remove(election));
    }

    /// A backup of all records, to be [restored](Self::restore) later.
    #[must_use]
    pub fn backup(&self) -> MemoryBackup {
        MemoryBackup(self.0.lock(|records, _| records.table.clone()))
    }

    /// Puts all records back as they were when the backup was made; those made since then are gone. Versions go on
    /// rising, as those of a database do that follow its clock.
    pub fn restore(&self, backup: &MemoryBackup) {
        self.0.lock(|records, _| records.table.clone_from(&backup.0));
    }
}

impl Store for MemoryStore {
    type Session = MemorySession;

    fn session(&self, election: &ElectionName) -> MemorySession {
        MemorySession { store: self.clone(), election: election.clone() }
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { clock: true, hints: true, ..Capabilities::NONE }
    }

    async fn ping(&self) -> Result<(), StoreError> {
        self.ping().await
    }

    async fn leaders(&self) -> Result<Vec<(ElectionName, Lease)>, StoreError> {
        self.leaders().await
    }

    async fn depose(&self, election: &ElectionName) -> Result<Option<Lease>, StoreError> {
        self.depose(election).await
    }
}

impl fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let elections = self.0.lock(|records, _| records.table.len());
        f.debug_struct("MemoryStore").field("elections", &elections).finish()
    }
}

/// The session of a [`MemoryStore`]. Every call is done at its first poll.
#[derive(Clone, Debug)]
pub struct MemorySession {
    store: MemoryStore,
    election: ElectionName,
}

impl Session for MemorySession {
    async fn inspect(&mut self) -> Result<Option<Lease>, StoreError> {
        Ok(self.store.0.lock(|records, now| records.read(&self.election, now)))
    }

    async fn place(&mut self, request: &PlaceRequest) -> Result<Lease, StoreError> {
        Ok(self.store.0.lock(|records, now| records.place(&self.election, request, now)))
    }

    async fn acquire(&mut self, request: &AcquireRequest) -> Result<Outcome, StoreError> {
        self.store.0.lock(|records, now| records.acquire(&self.election, request, now))
    }

    async fn renew(&mut self, request: &RenewRequest) -> Result<Outcome, StoreError> {
        Ok(self.store.0.lock(|records, now| records.renew(&self.election, request, now)))
    }

    async fn release(&mut self, request: &ReleaseRequest) -> Result<Outcome, StoreError> {
        Ok(self.store.0.lock(|records, now| records.release(&self.election, request, now)))
    }

    fn hints(&mut self) -> Hints {
        let released = self.store.0.lock(|records, _| records.listen(&self.election));
        Hints::new(stream::unfold(released, async |mut released| {
            // The sender is gone with the last clone of the store.
            released.changed().await.ok().map(|()| ((), released))
        }))
    }
}

/// All records of a [`MemoryStore`] at one point in time.
#[cfg(any(test, feature = "test-util"))]
#[cfg_attr(docsrs, doc(cfg(feature = "test-util")))]
#[derive(Clone)]
pub struct MemoryBackup(std::collections::BTreeMap<ElectionName, records::Record>);

#[cfg(any(test, feature = "test-util"))]
impl fmt::Debug for MemoryBackup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryBackup").field("elections", &self.0.len()).finish()
    }
}

impl Shared {
    /// Does `work` under the lock. The clock is read after the lock was taken, as every store must.
    fn lock<T>(&self, work: impl FnOnce(&mut Records, Instant) -> T) -> T {
        let mut records = self.records.lock().unwrap_or_else(PoisonError::into_inner);
        let now = self.clock.now();
        work(&mut records, now)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::{
        lease::{Fence, Identity},
        store::Observed,
    };

    const LEASE: Duration = Duration::from_secs(10);

    fn name(text: &str) -> ElectionName {
        ElectionName::new(text).unwrap()
    }

    fn request(holder: &str, observed: Option<&Lease>) -> AcquireRequest {
        let holder = Identity::new(holder).unwrap();
        AcquireRequest::new(holder, observed.map(Observed::from), LEASE)
    }

    fn won(outcome: Outcome) -> Lease {
        match outcome {
            Outcome::Won(lease) => lease,
            Outcome::Lost(by) => panic!("lost to {by:?}"),
        }
    }

    #[tokio::test]
    async fn fences_count_from_one_and_go_on_over_a_release() {
        let mut session = MemoryStore::new().session(&name("e"));
        let first = won(session.acquire(&request("a", None)).await.unwrap());
        let release = ReleaseRequest::new(Identity::new("a").unwrap(), first.fence);
        let released = won(session.release(&release).await.unwrap());
        let second = won(session.acquire(&request("a", Some(&released))).await.unwrap());
        assert_eq!((u64::from(first.fence), u64::from(second.fence)), (1, 2));
    }

    #[tokio::test]
    async fn a_clone_shows_the_same_records_and_a_new_store_none() {
        let store = MemoryStore::new();
        won(store.session(&name("e")).acquire(&request("a", None)).await.unwrap());
        assert_eq!(store.clone().leaders().await.unwrap().len(), 1);
        assert_eq!(MemoryStore::new().leaders().await.unwrap(), []);
    }

    #[tokio::test]
    async fn versions_repeat_neither_over_a_deleted_nor_over_a_restored_record() {
        let store = MemoryStore::new();
        let mut session = store.session(&name("e"));
        let empty = store.backup();
        let mut seen = Vec::new();
        for _ in 0..1_000 {
            seen.push(won(session.acquire(&request("a", None)).await.unwrap()).version.as_u64());
            store.forget(&name("e"));
            seen.push(won(session.acquire(&request("a", None)).await.unwrap()).version.as_u64());
            store.restore(&empty);
        }
        assert!(seen.is_sorted_by(|earlier, later| earlier < later));
    }

    #[tokio::test]
    async fn an_election_whose_fences_are_used_up_says_so_instead_of_starting_over() {
        let mut session = MemoryStore::new().session(&name("e"));
        let highest = PlaceRequest { duration: LEASE, floor: Fence::try_from(i64::MAX).ok() };
        let placed = session.place(&highest).await.unwrap();
        let error = session.acquire(&request("a", Some(&placed))).await.unwrap_err();
        assert!(error.is_fatal(), "{error}");
    }
}
