//! How to reach the server, and the administration of the bucket.

use std::{fmt, path::Path, sync::Arc, time::Duration};

use async_nats::{Client, ConnectOptions};
use tenure::{
    ElectionName, Lease, StoreError,
    store::{Capabilities, Store},
};

use crate::{
    bucket::Bucket,
    entry::{Act, Entry, Memory},
    error::{NatsError, store_error},
    link::{Access, Connection, Link, Source, within},
    session::NatsSession,
    settings::{Setting, Storage},
    setup::{SetupError, check_bucket_name, check_replicas, servers_from_url},
};

/// How long administration may take; nobody else bounds it.
const ADMINISTRATION_LIMIT: Duration = Duration::from_secs(10);
/// What a call may take until an elector says how long its calls may take: as much as by default.
const CALL_LIMIT: Duration = Duration::from_secs(3);

/// Keeps leases in a NATS JetStream key-value bucket. Cheap to clone; making one does no I/O.
///
/// Every elector has a connection of its own, opened on the elector's own thread when it is first used, and another one
/// that waits for hints. An application that blocks its threads thus never delays a renewal.
///
/// ```
/// use tenure_nats::NatsStore;
///
/// let store = NatsStore::new("nats://app:secret@a.internal,nats://b.internal")?
///     .with_bucket("jobs")?
///     .with_replicas(3)?;
/// assert!(!format!("{store:?}").contains("secret"));
/// assert!(NatsStore::new("mysql://db.internal/app").is_err());
/// # Ok::<(), tenure_nats::SetupError>(())
/// ```
#[derive(Clone)]
pub struct NatsStore {
    pub(crate) source: Source,
    pub(crate) bucket: Arc<Bucket>,
    hints: bool,
}

impl NatsStore {
    /// The servers at these URLs, separated by commas: `nats://user:password@host:4222`, `nats://token@host`, or `tls://..` to
    /// insist on encryption. They are tried in this order. One without a login takes that of the first one that has
    /// one; percent-encode what has a meaning in URLs.
    ///
    /// # Errors
    /// [`SetupError`] if a URL is of another kind, names no host, or cannot be read.
    pub fn new(url: &str) -> Result<Self, SetupError> {
        Self::with_options(url, ConnectOptions::new())
    }

    /// The same with options of the driver: keys, certificates, a prefix for inboxes, and so on. What the URL says about
    /// the login wins.
    ///
    /// Of the options these are tenure's own, whatever was set: `event_callback`, `max_reconnects`, `connection_timeout`,
    /// `subscription_capacity` and `ignore_discovered_servers`. A connection that broke is replaced by a new one, at the
    /// next call.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn with_options(url: &str, options: ConnectOptions) -> Result<Self, SetupError> {
        let access = Access { servers: servers_from_url(url)?, options, credentials: None };
        Ok(Self::from_source(Source::Own(Arc::new(access))))
    }

    /// The application's own client, which all sessions share. Otherwise prefer [`new`](Self::new), for three reasons.
    ///
    /// - A client is driven by the runtime on which it connected. If that is the application's and all its threads are
    ///   busy, the elector's own thread waits with them.
    /// - A client that lost its connection keeps what it is to send, and sends it when it is back. Nothing is handed to it
    ///   while it is disconnected, but what it took just before may be sent late. That is harmless, as every late
    ///   request is, but it cannot be called back.
    /// - What the server does not permit, it tells to the application's event callback only; here such a call has no reply
    ///   in time.
    #[must_use]
    pub fn from_client(client: Client) -> Self {
        Self::from_source(Source::Client(client))
    }

    /// Uses this bucket instead of `leader_election`. All candidates of an election must name the same one. It should be
    /// tenure's alone.
    ///
    /// # Errors
    /// [`SetupError::BucketName`] unless it has 1 to 128 letters, digits, `_` and `-`.
    pub fn with_bucket(self, name: &str) -> Result<Self, SetupError> {
        check_bucket_name(name)?;
        Ok(self.bucket(|bucket| bucket.name = name.to_owned()))
    }

    /// Where the bucket keeps its messages. A bucket that exists is not changed: one of the other kind is refused, and
    /// [`migrate`](crate::migrate) moves elections. Defaults to [`Storage::File`].
    #[must_use]
    pub fn with_storage(self, storage: Storage) -> Self {
        self.bucket(|bucket| bucket.storage = storage)
    }

    /// How many servers keep a copy: 3 is the recommendation for a cluster. A bucket that exists with another number is
    /// refused, unless [`Setting::Replicas`] is adopted. Defaults to 1 for a bucket that is created, and to any for one
    /// that exists.
    ///
    /// # Errors
    /// [`SetupError::Replicas`] unless it lies between 1 and 5.
    pub fn with_replicas(self, replicas: usize) -> Result<Self, SetupError> {
        check_replicas(replicas)?;
        Ok(self.bucket(|bucket| bucket.replicas = Some(replicas)))
    }

    /// How large the bucket may become, for accounts that want this to be said. It takes about a kilobyte for each
    /// election, or as much as its payload. A bucket that exists with another limit is refused, unless [`Setting::MaxBytes`]
    /// is adopted. Defaults to no limit for a bucket that is created, and to any for one that exists.
    ///
    /// # Errors
    /// [`SetupError::NoBytes`] if it is zero.
    pub fn with_max_bytes(self, bytes: u64) -> Result<Self, SetupError> {
        if bytes == 0 {
            return Err(SetupError::NoBytes);
        }
        Ok(self.bucket(|bucket| bucket.max_bytes = Some(bytes)))
    }

    /// Has [`ensure_schema`](Self::ensure_schema) change these settings of a bucket that exists, if they are not as they
    /// must be, and no others. Defaults to none: a bucket that is not fit is an error.
    #[must_use]
    pub fn with_adopted(self, settings: impl IntoIterator<Item = Setting>) -> Self {
        self.bucket(|bucket| bucket.adopted = settings.into_iter().collect())
    }

    /// Logs in with the user's JWT and key in this file, as `nsc` writes it. It is read when a connection is made, each
    /// time anew.
    ///
    /// # Errors
    /// [`SetupError::NotOurClient`] after [`from_client`](Self::from_client).
    pub fn with_credentials_file(self, path: impl AsRef<Path>) -> Result<Self, SetupError> {
        let path = path.as_ref().to_owned();
        self.access("a file of credentials", |access| access.credentials = Some(path))
    }

    /// Trusts the authorities in this file of PEM as well. It is read when a connection is made.
    ///
    /// # Errors
    /// [`SetupError::NotOurClient`] after [`from_client`](Self::from_client).
    pub fn with_root_certificates(self, path: impl AsRef<Path>) -> Result<Self, SetupError> {
        let path = path.as_ref().to_owned();
        self.access("a root certificate", |access| {
            access.options = access.options.clone().add_root_certificates(path);
        })
    }

    /// Shows the server this certificate, with its key, both in files of PEM. They are read when a connection is made.
    ///
    /// # Errors
    /// [`SetupError::NotOurClient`] after [`from_client`](Self::from_client).
    pub fn with_client_certificate(
        self,
        certificate: impl AsRef<Path>,
        key: impl AsRef<Path>,
    ) -> Result<Self, SetupError> {
        let (certificate, key) = (certificate.as_ref().to_owned(), key.as_ref().to_owned());
        self.access("a client certificate", |access| {
            access.options = access.options.clone().add_client_certificate(certificate, key);
        })
    }

    /// Watches nothing: no connection for hints, and no consumer. Hand-overs then take until the next look.
    #[must_use]
    pub fn without_hints(mut self) -> Self {
        self.hints = false;
        self
    }

    /// Creates and prepares the bucket, unless that was done. Safe on every replica at once: where another one is at it, it is
    /// waited for, about a second at most. A user that may not create streams succeeds if somebody else has done so.
    ///
    /// # Errors
    /// [`StoreError`], fatal if the server does not allow it, or if the bucket is there and not fit: its source then is a
    /// [`BucketError`](crate::BucketError) that says which settings differ.
    ///
    /// # Cancel safety
    /// Dropped, it may have created the bucket or not, and can be called again.
    pub async fn ensure_schema(&self) -> Result<(), StoreError> {
        self.administer("create the bucket", async |connection| {
            self.bucket.ensure(connection).await
        })
        .await
    }

    /// Answers whether the server can be reached and the bucket is fit.
    ///
    /// # Errors
    /// [`StoreError`] that says what is wrong.
    pub async fn ping(&self) -> Result<(), StoreError> {
        self.administer("ping", async |connection| self.bucket.check(connection).await.map(drop))
            .await
    }

    /// Who leads what: every record there is, ordered by name.
    ///
    /// # Errors
    /// [`StoreError`] if the bucket could not be read, or a key of an election holds what tenure did not write.
    pub async fn leaders(&self) -> Result<Vec<(ElectionName, Lease)>, StoreError> {
        self.administer("list the leaders", async |connection| {
            self.bucket.check(connection).await?;
            let mut leaders = Vec::new();
            for election in self.bucket.elections(connection).await? {
                let memory = &mut Memory::default();
                let mut entry = Entry::new(connection, memory, &self.bucket, &election);
                let lease = entry.perform(Act::Look).await?.lease().cloned();
                leaders.extend(lease.map(|lease| (election, lease)));
            }
            Ok(leaders)
        })
        .await
    }

    /// An operator's step-down: takes the holder out of the record. The leader learns of it at its next renewal; everybody
    /// else may claim the lease when it runs out. Answers the record as it is then, or `None` if there is none.
    ///
    /// # Errors
    /// [`StoreError`]; the outcome is unknown.
    pub async fn depose(&self, election: &ElectionName) -> Result<Option<Lease>, StoreError> {
        self.administer(&format!("depose the leader of {election:?}"), async |connection| {
            let memory = &mut Memory::default();
            let mut entry = Entry::new(connection, memory, &self.bucket, election);
            Ok(entry.perform(Act::Depose).await?.lease().cloned())
        })
        .await
    }

    fn from_source(source: Source) -> Self {
        Self { source, bucket: Arc::default(), hints: true }
    }

    fn bucket(mut self, change: impl FnOnce(&mut Bucket)) -> Self {
        change(Arc::make_mut(&mut self.bucket));
        self
    }

    fn access(
        mut self,
        what: &'static str,
        change: impl FnOnce(&mut Access),
    ) -> Result<Self, SetupError> {
        match &mut self.source {
            Source::Own(access) => change(Arc::make_mut(access)),
            Source::Client(_) => return Err(SetupError::NotOurClient { what }),
        }
        Ok(self)
    }

    /// Does `work` on a connection that is thrown away afterwards: the next one may be asked for on another runtime.
    async fn administer<T>(
        &self,
        attempt: &str,
        work: impl AsyncFnOnce(&mut Connection) -> Result<T, NatsError>,
    ) -> Result<T, StoreError> {
        let work = async {
            let mut connection = self.source.connect(ADMINISTRATION_LIMIT * 3 / 4).await?;
            work(&mut connection).await
        };
        let outcome = within(ADMINISTRATION_LIMIT, work).await;
        outcome.map_err(|error| store_error(attempt, &self.source, error))
    }
}

impl Store for NatsStore {
    type Session = NatsSession;

    fn session(&self, election: &ElectionName) -> NatsSession {
        let link = Link::new(self.source.clone(), CALL_LIMIT);
        NatsSession::new(link, self.bucket.clone(), election.clone(), self.hints)
    }

    fn capabilities(&self) -> Capabilities {
        let mut capabilities = Capabilities::NONE;
        capabilities.hints = self.hints;
        capabilities
    }

    async fn ensure_schema(&self) -> Result<(), StoreError> {
        self.ensure_schema().await
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

/// Without options and logins, which contain secrets.
impl fmt::Debug for NatsStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NatsStore")
            .field("server", &self.source.server())
            .field("bucket", &self.bucket.name)
            .field("storage", &self.bucket.storage)
            .field("replicas", &self.bucket.replicas)
            .finish_non_exhaustive()
    }
}
