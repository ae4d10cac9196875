//! How to reach the database, and the administration of its tables.

use std::{fmt, sync::Arc, time::Duration};

use sqlx::{MySqlPool, Row, mysql::MySqlConnectOptions};
use tenure::{
    ElectionName, Lease, StoreError,
    store::{Capabilities, Hold, Store, within},
};

use crate::{
    error::{is_gone, store_error},
    link::{Limits, Link, Message, Source},
    record,
    session::MysqlSession,
    setup::{SetupError, options_from_url},
    table::Table,
};

/// How long administration may take; nobody else bounds it.
const ADMINISTRATION_LIMIT: Duration = Duration::from_secs(10);
/// What a call may take until an elector says how long its calls may take: as much as by default.
const CALL_LIMIT: Duration = Duration::from_secs(3);

/// Keeps leases in a table of MySQL or MariaDB. Cheap to clone; making one does no I/O.
///
/// Every elector has a connection of its own, opened on the elector's own thread when it is first used. An application
/// that blocks its threads, or uses up its pool, thus never delays a renewal.
///
/// ```
/// use tenure_mysql::MysqlStore;
///
/// let store = MysqlStore::new("mysql://app:secret@db.internal/app")?.with_table("leases")?;
/// assert!(store.schema_sql().contains("CREATE TABLE IF NOT EXISTS `leases`"));
/// assert!(MysqlStore::new("postgres://db.internal/app").is_err());
/// # Ok::<(), tenure_mysql::SetupError>(())
/// ```
#[derive(Clone)]
pub struct MysqlStore {
    source: Source,
    table: Arc<Table>,
    shortcuts: bool,
}

impl MysqlStore {
    /// The database at this URL: `mysql://user:password@host:port/database?ssl-mode=VERIFY_IDENTITY`, or `mariadb://`.
    /// Parameters are those of [`MySqlConnectOptions`]; others are refused.
    ///
    /// # Errors
    /// [`SetupError`] if the URL is of another kind, names no host, or cannot be read.
    pub fn new(url: &str) -> Result<Self, SetupError> {
        options_from_url(url).map(Self::from_options)
    }

    /// The database that these options lead to. All of them are left as they are: none changes what tenure's statements
    /// mean.
    #[must_use]
    pub fn from_options(options: MySqlConnectOptions) -> Self {
        Self::from_source(Source::Own(Arc::new(options)))
    }

    /// The application's own pool, of which every call borrows a connection: for many elections that are to share few
    /// connections. Otherwise prefer [`new`](Self::new), for these reasons.
    ///
    /// - When the application holds all connections, renewals wait for one like everybody else, and the term may end.
    ///   Set the pool's `acquire_timeout` below the elector's `operation_timeout`, or errors will not say so.
    /// - A connection is driven by the runtime on which the pool opened it. If that runtime is the application's and all
    ///   its threads are busy, the elector's own thread waits with them.
    /// - In MySQL, unlike MariaDB, nothing but a setting of the session makes the server give up a wait for a lock, and
    ///   those of the pool's connections are left alone. Set `innodb_lock_wait_timeout` to a third of `operation_timeout`
    ///   in the pool's `after_connect`, or what a call gave up may linger for as long as the server's default of 50 s. It
    ///   does no harm when it is executed at last.
    #[must_use]
    pub fn from_pool(pool: MySqlPool) -> Self {
        Self::from_source(Source::Pool(pool))
    }

    /// Uses this table instead of `leader_election`, and beside it one whose name ends with `_hold`. Any text may serve as
    /// a name: it is quoted. Whether capital letters count is up to the server (`lower_case_table_names`).
    ///
    /// All candidates of an election must name the same table.
    ///
    /// # Errors
    /// [`SetupError`] if the name is empty, has more than 59 characters, or one that MySQL does not allow.
    pub fn with_table(mut self, table: &str) -> Result<Self, SetupError> {
        self.table = Arc::new(Table::clone(&self.table).with_table(table)?);
        Ok(self)
    }

    /// Looks for the table in this database instead of the one that the URL or the options name.
    ///
    /// # Errors
    /// [`SetupError`] if the name is empty, has more than 64 characters, or one that MySQL does not allow.
    pub fn with_database(mut self, database: &str) -> Result<Self, SetupError> {
        self.table = Arc::new(Table::clone(&self.table).with_database(database)?);
        Ok(self)
    }

    /// Asks a MariaDB server for what MySQL understands as well: to test that on MariaDB.
    #[doc(hidden)]
    #[must_use]
    pub fn without_mariadb_shortcuts(mut self) -> Self {
        self.shortcuts = false;
        self
    }

    /// What [`ensure_schema`](Self::ensure_schema) creates, for migration tools. It may be run any number of times.
    #[must_use]
    pub fn schema_sql(&self) -> String {
        self.table.create().map(|table| table + ";\n").concat()
    }

    /// Creates the tables unless they are there. Safe on every replica at once. A user who may not create anything
    /// succeeds if somebody else has done so. The database must be there.
    ///
    /// # Errors
    /// [`StoreError`], fatal if the database does not allow it, or has such a table that is not InnoDB's.
    ///
    /// # Cancel safety
    /// Dropped, it may have created the tables or not.
    pub async fn ensure_schema(&self) -> Result<(), StoreError> {
        let engines = self.administer("create the schema", async |link| {
            match link.ask(&self.table.look()).await {
                Err(error) if is_gone(&error) => {
                    for table in self.table.create() {
                        link.ask(&Message::define(table)).await?;
                    }
                    link.ask(&self.table.look()).await?;
                }
                looked => drop(looked?),
            }
            self.other_engines(link).await
        });
        self.demand_innodb("create the schema", &engines.await?)
    }

    /// Answers whether the database can be reached and the tables are there.
    ///
    /// # Errors
    /// [`StoreError`] that says what is wrong.
    pub async fn ping(&self) -> Result<(), StoreError> {
        let engines = self.administer("ping", async |link| {
            link.ask(&self.table.look()).await?;
            self.other_engines(link).await
        });
        self.demand_innodb("ping", &engines.await?)
    }

    /// Who leads what: every record there is, ordered by name.
    ///
    /// # Errors
    /// [`StoreError`] if the table could not be read.
    pub async fn leaders(&self) -> Result<Vec<(ElectionName, Lease)>, StoreError> {
        self.administer("list the leaders", async |link| {
            link.ask(&self.table.list()).await?.iter().map(record::listed).collect()
        })
        .await
    }

    /// An operator's step-down: takes the holder out of the record. The leader learns of it at its next renewal; everybody
    /// else may claim the lease when it runs out. Answers the record as it is then, or `None` if there is none.
    ///
    /// # Errors
    /// [`StoreError`]; the outcome is unknown.
    pub async fn depose(&self, election: &ElectionName) -> Result<Option<Lease>, StoreError> {
        let attempt = format!("depose the leader of {election:?}");
        self.administer(&attempt, async |link| {
            let rows = link.ask(&self.table.depose(election)).await?;
            record::outcome(&rows).map(|outcome| outcome.lease().cloned())
        })
        .await
    }

    fn from_source(source: Source) -> Self {
        Self { source, table: Arc::default(), shortcuts: true }
    }

    pub(crate) fn table(&self) -> &Table {
        &self.table
    }

    fn link(&self, limit: Duration) -> Link {
        let limits = Limits::within(limit);
        Link::new(self.source.clone(), if self.shortcuts { limits } else { limits.portable() })
    }

    async fn other_engines(&self, link: &mut Link) -> Result<Vec<String>, sqlx::Error> {
        let rows = link.ask(&self.table.other_engines()).await?;
        let name = |name: Vec<u8>| String::from_utf8_lossy(&name).into_owned();
        rows.iter().map(|row| row.try_get("engine").map(name)).collect()
    }

    /// Other engines know no transactions: a lease would be taken twice.
    fn demand_innodb(&self, attempt: &str, others: &[String]) -> Result<(), StoreError> {
        let Some(engine) = others.first() else { return Ok(()) };
        Err(StoreError::fatal(format!(
            "could not {attempt}: {} or {} is a table of the engine {engine}; run ALTER TABLE .. ENGINE = InnoDB",
            self.table.name(),
            self.table.hold_name()
        )))
    }

    /// Does `work` on a connection that is thrown away afterwards: the next one may be asked for on another runtime.
    async fn administer<T>(
        &self,
        attempt: &str,
        work: impl AsyncFnOnce(&mut Link) -> Result<T, sqlx::Error>,
    ) -> Result<T, StoreError> {
        let mut link = self.link(ADMINISTRATION_LIMIT);
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

impl Store for MysqlStore {
    type Session = MysqlSession;

    fn session(&self, election: &ElectionName) -> MysqlSession {
        MysqlSession::new(self.link(CALL_LIMIT), self.table.clone(), election.clone())
    }

    fn capabilities(&self) -> Capabilities {
        let mut capabilities = Capabilities::NONE;
        capabilities.clock = true;
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
impl fmt::Debug for MysqlStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let options = match &self.source {
            Source::Own(options) => options.clone(),
            Source::Pool(pool) => pool.connect_options(),
        };
        f.debug_struct("MysqlStore")
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
        let store = MysqlStore::new(&format!("mysql://app@{addr}/app")).unwrap();
        let error = store.ping().await.unwrap_err();
        assert!(error.is_retryable(), "{error}");
        let says = format!("could not ping: no answer from the server at {addr} within 10s");
        assert_eq!(error.to_string(), says);
    }
}
