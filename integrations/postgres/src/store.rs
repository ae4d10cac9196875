//! How to reach the database, and the administration of its table.

use std::{fmt, sync::Arc, time::Duration};

use sqlx::{PgPool, postgres::PgConnectOptions};
use tenure::{
    ElectionName, Lease, StoreError,
    store::{Capabilities, Hold, Store, within},
};

use crate::{
    error::{sqlstate, store_error, was_created_by_another},
    link::{Link, Source},
    record,
    session::PostgresSession,
    setup::{SetupError, options_from_url},
    table::Table,
};

/// How long administration may take; nobody else bounds it.
const ADMINISTRATION_LIMIT: Duration = Duration::from_secs(10);
/// What a call may take until an elector says how long its calls may take: as much as by default.
const CALL_LIMIT: Duration = Duration::from_secs(3);
/// How long a session keeps its connection, at most.
const MAX_CONNECTION_AGE: Duration = Duration::from_secs(30 * 60);

/// Keeps leases in a PostgreSQL table. Cheap to clone; making one does no I/O.
///
/// Every elector has a connection of its own, opened on the elector's own thread when it is first used. An application
/// that blocks its threads, or uses up its pool, thus never delays a renewal.
///
/// ```
/// use tenure_postgres::PostgresStore;
///
/// let store = PostgresStore::new("postgres://app:secret@db.internal/app")?.with_table("jobs", "leases")?;
/// assert!(store.schema_sql().contains(r#"CREATE TABLE IF NOT EXISTS "jobs"."leases""#));
/// assert!(PostgresStore::new("mysql://db.internal/app").is_err());
/// # Ok::<(), tenure_postgres::SetupError>(())
/// ```
#[derive(Clone)]
pub struct PostgresStore {
    source: Source,
    /// How to reach the server for listening.
    listen: Option<Arc<PgConnectOptions>>,
    table: Arc<Table>,
}

impl PostgresStore {
    /// The database at this URL: `postgres://user:password@host:port/database?sslmode=verify-full`. Parameters are those of
    /// [`PgConnectOptions`], and others are refused; what the URL leaves out, apart from the host, comes from the usual `PG..` variables and the
    /// password file. The URL may lead to a pooler, also to one that pools transactions.
    ///
    /// What the URL says is sent as it is, and a time limit in its `options` (`-c statement_timeout=1000`) or of the role is
    /// left alone if it is stricter than what a call may take.
    ///
    /// # Errors
    /// [`SetupError`] if the URL is of another kind, names no host, or cannot be read.
    pub fn new(url: &str) -> Result<Self, SetupError> {
        options_from_url(url).map(Self::from_options)
    }

    /// The database that these options lead to.
    ///
    /// The setting `extra_float_digits` is never sent, whatever the options say: poolers refuse it, and no number with a
    /// fraction is ever read.
    #[must_use]
    pub fn from_options(options: PgConnectOptions) -> Self {
        let options = Arc::new(options.extra_float_digits(None));
        Self::from_source(Source::Own(options, MAX_CONNECTION_AGE))
    }

    /// The application's own pool, of which every call borrows a connection: for many elections that are to share few
    /// connections. Otherwise prefer [`new`](Self::new), for two reasons.
    ///
    /// - When the application holds all connections, renewals wait for one like everybody else, and the term may end.
    ///   Set the pool's `acquire_timeout` below the elector's `operation_timeout`, or errors will not say so.
    /// - A connection is driven by the runtime on which the pool opened it. If that runtime is the application's and all
    ///   its threads are busy, the elector's own thread waits with them.
    ///
    /// Behind a pooler the pool's options need `extra_float_digits(None)`.
    #[must_use]
    pub fn from_pool(pool: PgPool) -> Self {
        Self::from_source(Source::Pool(pool))
    }

    /// Uses this table instead of `public.leader_election`. Any text may serve as a name: it is quoted, and so it is
    /// taken as it is, capital letters included.
    ///
    /// All candidates of an election must name the same table.
    ///
    /// # Errors
    /// [`SetupError`] if a name is empty, has more than 63 bytes, or contains a NUL character; or if the schema's begins with
    /// `pg_`, as those of the server itself do, and `pg_temp`, which is another one on every connection.
    pub fn with_table(mut self, schema: &str, table: &str) -> Result<Self, SetupError> {
        self.table = Arc::new(Table::new(schema, table)?);
        Ok(self)
    }

    /// How old a session's own connection may become: an older one is replaced between two calls, each up to a tenth
    /// earlier, so that not all are at once. Servers and poolers can thus be drained, and what a connection has piled up
    /// on the server goes away. Of no effect on a store that was made [from a pool](Self::from_pool), which has its own
    /// rule. Defaults to 30 minutes.
    #[must_use]
    pub fn max_connection_age(mut self, age: Duration) -> Self {
        if let Source::Own(_, max_age) = &mut self.source {
            *max_age = age;
        }
        self
    }

    /// Listens for releases at this URL, which must lead to the same database: a hand-over then takes milliseconds
    /// instead of a candidate's next look. It must not lead through a pooler of transactions, in which nobody can
    /// listen; the other URL may. Defaults to not listening.
    ///
    /// Each session has one more connection for that, opened when its elector first calls the store. It is tried every
    /// 15 seconds, and made anew when it broke, after pauses of up to 30 seconds. Nothing depends on it: if the server
    /// cannot be reached at this URL, an event of `tracing` says so, and candidates look as often as without.
    ///
    /// Every release tells its listeners on the channel `tenure:SCHEMA.TABLE` (cut off after 63 bytes) which election it
    /// is of, by the hexadecimal digits of its name, whether or not this was called: by a `NOTIFY` in the same
    /// transaction, hence also through a pooler.
    ///
    /// # Errors
    /// [`SetupError`] if the URL is of another kind, names no host, or cannot be read.
    pub fn listen_url(mut self, url: &str) -> Result<Self, SetupError> {
        let options = options_from_url(url)?.extra_float_digits(None);
        self.listen = Some(Arc::new(options));
        Ok(self)
    }

    /// What [`ensure_schema`](Self::ensure_schema) creates, for migration tools. It may be run any number of times.
    #[must_use]
    pub fn schema_sql(&self) -> String {
        format!("{}\n{}\n", self.table.create_schema(), self.table.create())
    }

    /// Creates the table, and its schema, unless they are there. Safe on every replica at once. A role that may not
    /// create anything succeeds if somebody else has done so.
    ///
    /// # Errors
    /// [`StoreError`], fatal if the database does not allow it.
    ///
    /// # Cancel safety
    /// Dropped, it may have created the table or not.
    pub async fn ensure_schema(&self) -> Result<(), StoreError> {
        self.administer("create the schema", async |link| {
            let mut looked = link.ask(&self.table.look()).await;
            // As often as somebody else may get in between: to create the schema, and the table.
            for _ in 0..4 {
                match &looked {
                    Err(error) if sqlstate(error) == Some("42P01") => self.create(link).await?,
                    _ => break,
                }
                looked = link.ask(&self.table.look()).await;
            }
            looked.map(drop)
        })
        .await
    }

    /// Answers whether the database can be reached and the table is there.
    ///
    /// # Errors
    /// [`StoreError`] that says what is wrong.
    pub async fn ping(&self) -> Result<(), StoreError> {
        let look = self.table.look();
        self.administer("ping", async |link| link.ask(&look).await.map(drop)).await
    }

    /// Who leads what: every record there is, ordered by name.
    ///
    /// # Errors
    /// [`StoreError`] if the table could not be read.
    pub async fn leaders(&self) -> Result<Vec<(ElectionName, Lease)>, StoreError> {
        let list = self.table.list();
        self.administer("list the leaders", async |link| {
            link.ask(&list).await?.iter().map(record::listed).collect()
        })
        .await
    }

    /// An operator's step-down: takes the holder out of the record. The leader learns of it at its next renewal; everybody
    /// else may claim the lease when it runs out. Answers the record as it is then, or `None` if there is none.
    ///
    /// # Errors
    /// [`StoreError`]; the outcome is unknown.
    pub async fn depose(&self, election: &ElectionName) -> Result<Option<Lease>, StoreError> {
        let depose = self.table.depose(election);
        self.administer(&format!("depose the leader of {election:?}"), async |link| {
            record::found(&link.ask(&depose).await?)
        })
        .await
    }

    fn from_source(source: Source) -> Self {
        Self { source, listen: None, table: Arc::default() }
    }

    pub(crate) fn source(&self) -> &Source {
        &self.source
    }

    pub(crate) fn table(&self) -> &Table {
        &self.table
    }

    async fn create(&self, link: &mut Link) -> Result<(), sqlx::Error> {
        let created = match link.ask(&self.table.create()).await {
            Err(error) if sqlstate(&error) == Some("3F000") => {
                // Asked for only when it is missing: that takes a privilege on the whole database.
                link.ask(&self.table.create_schema()).await
            }
            created => created,
        };
        match created {
            Err(error) if was_created_by_another(&error) => Ok(()),
            created => created.map(drop),
        }
    }

    /// Does `work` on a connection that is thrown away afterwards: the next one may be asked for on another runtime.
    async fn administer<T>(
        &self,
        attempt: &str,
        work: impl AsyncFnOnce(&mut Link) -> Result<T, sqlx::Error>,
    ) -> Result<T, StoreError> {
        let mut link = Link::new(self.source.clone(), ADMINISTRATION_LIMIT);
        let work = async {
            let outcome = work(&mut link).await;
            link.close().await;
            outcome
        };
        match within(ADMINISTRATION_LIMIT, work).await {
            Some(outcome) => {
                outcome.map_err(|error| store_error(attempt, &self.table, &self.source, error))
            }
            None => Err(StoreError::transient(format!(
                "could not {attempt}: no answer from {} within {ADMINISTRATION_LIMIT:?}",
                self.source.server()
            ))),
        }
    }
}

impl Store for PostgresStore {
    type Session = PostgresSession;

    fn session(&self, election: &ElectionName) -> PostgresSession {
        let link = Link::new(self.source.clone(), CALL_LIMIT);
        PostgresSession::new(link, self.listen.clone(), self.table.clone(), election.clone())
    }

    fn capabilities(&self) -> Capabilities {
        let mut capabilities = Capabilities::NONE;
        capabilities.clock = true;
        capabilities.hints = self.listen.is_some();
        capabilities.hold = Hold::Shared;
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

/// Without the options, which contain the password.
impl fmt::Debug for PostgresStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let options = match &self.source {
            Source::Own(options, _) => options.clone(),
            Source::Pool(pool) => pool.connect_options(),
        };
        f.debug_struct("PostgresStore")
            .field("host", &options.get_host())
            .field("port", &options.get_port())
            .field("database", &options.get_database())
            .field("table", &self.table.name())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    /// The system accepts the connection, and nobody says anything.
    #[tokio::test(start_paused = true)]
    async fn administration_does_not_wait_for_ever_for_an_answer() {
        let silent = TcpListener::bind("127.0.0.1:0").unwrap();
        let addr = silent.local_addr().unwrap();
        let store = PostgresStore::new(&format!("postgres://app@{addr}/app")).unwrap();
        let error = store.ping().await.unwrap_err();
        assert!(error.is_retryable(), "{error}");
        let says = format!("could not ping: no answer from the server at {addr} within 10s");
        assert_eq!(error.to_string(), says);
    }
}
