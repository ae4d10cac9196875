//! Where the database is, and the administration of its table.

use std::{fmt, sync::Arc, time::Duration};

use sqlx::{Row, SqliteConnection, SqlitePool, sqlite::SqliteRow};
use tenure::{
    ElectionName, Lease, StoreError, Term,
    store::{Capabilities, Hold, HoldError, Store, within},
};

use crate::{
    clock::Reading,
    error::{is_busy, is_missing_table, store_error},
    hold::hold_term,
    link::{Link, Source},
    record,
    session::SqliteSession,
    setup::{File, SetupError},
    table::{Table, journal_mode, switch_to_wal},
};

/// How long administration may take; nobody else bounds it.
const ADMINISTRATION_LIMIT: Duration = Duration::from_secs(10);
/// What a call may take until an elector says how long its calls may take: as much as by default.
const CALL_LIMIT: Duration = Duration::from_secs(3);
/// How long to wait where SQLite does not wait by itself: while somebody else switches the file to WAL mode.
const PAUSE: Duration = Duration::from_millis(20);

/// Keeps leases in a table of a SQLite file. Cheap to clone; making one does no I/O.
///
/// Every elector has a connection of its own, opened when it is first used, and with it a thread on which SQLite works.
///
/// ```
/// use tenure_sqlite::SqliteStore;
///
/// let store = SqliteStore::new("sqlite:/var/lib/app/app.db")?.with_table("leases")?;
/// assert!(store.schema_sql().contains(r#"CREATE TABLE IF NOT EXISTS "leases""#));
/// assert!(SqliteStore::new("sqlite::memory:").is_err());
/// # Ok::<(), tenure_sqlite::SetupError>(())
/// ```
#[derive(Clone)]
pub struct SqliteStore {
    source: Source,
    table: Arc<Table>,
}

impl SqliteStore {
    /// The database file at this path, or at this URL: `sqlite:app.db`, `sqlite:/var/lib/app.db`, `sqlite:///var/lib/app.db`.
    /// A relative path is completed now, by the current directory.
    ///
    /// [`ensure_schema`](Self::ensure_schema) creates the file, unless the URL ends with `?mode=rw`. Other parameters are
    /// refused, and so is `:memory:`: every connection would have a database of its own, and every candidate be the only
    /// one. [`tenure::MemoryStore`] is for that.
    ///
    /// # Errors
    /// [`SetupError`] if the URL is of another kind, names no file, or cannot be read.
    pub fn new(url: impl AsRef<str>) -> Result<Self, SetupError> {
        let file = File::from_url(url.as_ref())?;
        Ok(Self { source: Source::File(Arc::new(file)), table: Arc::default() })
    }

    /// The application's own pool, of which every call borrows a connection: for many elections that are to share few
    /// connections. Otherwise prefer [`new`](Self::new), for these reasons.
    ///
    /// - When the application holds all connections, renewals wait for one like everybody else, and the term may end.
    ///   Set the pool's `acquire_timeout` below the elector's `operation_timeout`, or errors will not say so.
    /// - The pool's settings stay as they are. Its `busy_timeout` should be shorter than `operation_timeout` as well, and
    ///   its journal mode WAL: [`ensure_schema`](Self::ensure_schema) does not change that of a pool's database.
    /// - A pool whose connections each have a database in memory must have a single one that is never closed.
    #[must_use]
    pub fn from_pool(pool: SqlitePool) -> Self {
        Self { source: Source::Pool(pool), table: Arc::default() }
    }

    /// Uses this table instead of `leader_election`. Any text may serve as a name: it is quoted. SQLite does not
    /// distinguish between capital and small ASCII letters in it.
    ///
    /// All candidates of an election must name the same table.
    ///
    /// # Errors
    /// [`SetupError`] if the name is empty, contains a NUL character, or begins with `sqlite_`.
    pub fn with_table(mut self, table: &str) -> Result<Self, SetupError> {
        self.table = Arc::new(Table::new(table)?);
        Ok(self)
    }

    /// What [`ensure_schema`](Self::ensure_schema) creates, for migration tools. It may be run any number of times.
    /// Whoever creates the table like this should also set `PRAGMA journal_mode = WAL` once: in the other modes writers
    /// are starved by readers.
    #[must_use]
    pub fn schema_sql(&self) -> String {
        self.table.schema.to_string()
    }

    /// Creates the file and the table unless they are there, and switches the file to WAL mode, which stays. Safe on
    /// every replica at once.
    ///
    /// # Errors
    /// [`StoreError`], fatal if the file cannot be created or written, or if WAL mode is not possible where it lies.
    ///
    /// # Cancel safety
    /// Dropped, it may have created the table or not.
    pub async fn ensure_schema(&self) -> Result<(), StoreError> {
        let attempt = "create the schema";
        let link = Link::creating(self.source.clone(), ADMINISTRATION_LIMIT);
        let mode = self
            .administer(attempt, link, async |link| {
                loop {
                    match self.create(link).await {
                        Err(error) if is_busy(&error) => tokio::time::sleep(PAUSE).await,
                        outcome => return outcome,
                    }
                }
            })
            .await?;
        check_mode(attempt, &self.source, &mode)
    }

    /// Answers whether the file can be opened and the table is there.
    ///
    /// # Errors
    /// [`StoreError`] that says what is wrong.
    pub async fn ping(&self) -> Result<(), StoreError> {
        let look = self.table.look();
        self.administer("ping", self.link(), async |link| link.ask(look).await.map(drop)).await
    }

    /// Who leads what: every record there is, ordered by name.
    ///
    /// # Errors
    /// [`StoreError`] if the table could not be read.
    pub async fn leaders(&self) -> Result<Vec<(ElectionName, Lease)>, StoreError> {
        self.administer("list the leaders", self.link(), async |link| {
            let now = Reading::now();
            let rows = link.ask(self.table.list()).await?;
            rows.iter().map(|row| record::listed(row, now)).collect()
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
        self.administer(&attempt, self.link(), async |link| {
            let now = Reading::now();
            record::found(&link.ask(self.table.depose(election)).await?, now)
        })
        .await
    }

    /// Holds `term` in the transaction that is open on `connection`: nobody takes over before it ends, and if the term is
    /// not current there any more, this fails. It is the only protection of a write that is already on its way when the
    /// process is frozen and another candidate takes over.
    ///
    /// The transaction must be one on the file in which the leases are. From here on it has the file's one write lock:
    /// **nobody else writes to the file, the leader's own renewals included** ([`Hold::Exclusive`]). Keep it far shorter
    /// than the lease; a process that is frozen in it keeps everybody waiting until it goes on or dies. Hold the term
    /// before anything else is read or written, so that the transaction need not be repeated.
    ///
    /// ```
    /// # use tenure::Term;
    /// # use tenure_sqlite::{SqliteStore, sqlx};
    /// # async fn example(store: SqliteStore, pool: sqlx::SqlitePool, term: Term) -> Result<(), Box<dyn std::error::Error>> {
    /// let mut transaction = pool.begin().await?;
    /// store.hold_term(&mut transaction, &term).await?;
    /// sqlx::query("UPDATE invoices SET paid = TRUE").execute(&mut *transaction).await?;
    /// transaction.commit().await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// - [`HoldError::Ended`]: the term is over here; the database was not asked, or had others to wait for.
    /// - [`HoldError::NotCurrent`]: its lease expired, was released, taken over, deposed, or is gone.
    /// - [`HoldError::NotInTransaction`]: none is open on the connection, so that nothing would be held.
    /// - [`HoldError::Store`]: retryable if others were writing for longer than the connection's `busy_timeout`, or have
    ///   written since the transaction first read something.
    ///
    /// After each of them, roll back.
    ///
    /// # Cancel safety
    /// Dropped, it may hold the term or not: roll back.
    pub async fn hold_term(
        &self,
        connection: &mut SqliteConnection,
        term: &Term,
    ) -> Result<(), HoldError> {
        hold_term(&self.table, &self.source, connection, term).await
    }

    /// The statement with which [`hold_term`](Self::hold_term) holds `term`, for other drivers: to be executed within a
    /// transaction, on the file in which the leases are. It answers one row if the term is held. If it answers none, or
    /// fails, roll back; its failures are those of any writing statement.
    ///
    /// It is made for one transaction: it carries the time at which it was made. Ask [`Term::may_finish`] before it and
    /// after it.
    #[must_use]
    pub fn hold_sql(&self, term: &Term) -> String {
        self.table.hold_sql(term, Reading::now())
    }

    fn link(&self) -> Link {
        Link::new(self.source.clone(), ADMINISTRATION_LIMIT)
    }

    /// Answers the journal mode that the file is in then.
    async fn create(&self, link: &mut Link) -> Result<String, sqlx::Error> {
        let mode = |rows: Vec<SqliteRow>| {
            rows.first().ok_or(sqlx::Error::RowNotFound)?.try_get::<String, _>(0)
        };
        let mut found = mode(link.ask(journal_mode()).await?)?;
        if found != "wal" && matches!(self.source, Source::File(_)) {
            found = mode(link.ask(switch_to_wal()).await?)?;
        }
        // A process that may not write succeeds if somebody else has created the table.
        match link.ask(self.table.look()).await {
            Err(error) if is_missing_table(&error) => link.ask(self.table.create()).await?,
            looked => looked?,
        };
        link.ask(self.table.look()).await?;
        Ok(found)
    }

    /// Does `work` on a connection that is thrown away afterwards: the next one may be asked for on another runtime.
    async fn administer<T>(
        &self,
        attempt: &str,
        mut link: Link,
        work: impl AsyncFnOnce(&mut Link) -> Result<T, sqlx::Error>,
    ) -> Result<T, StoreError> {
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
                "could not {attempt}: no answer within {ADMINISTRATION_LIMIT:?}"
            ))),
        }
    }
}

/// A file of ours has to be in WAL mode, a pool's is its application's business.
fn check_mode(attempt: &str, source: &Source, mode: &str) -> Result<(), StoreError> {
    match source {
        Source::File(file) if mode != "wal" => Err(StoreError::fatal(format!(
            "could not {attempt}: {} stays in the journal mode {mode:?}; it must lie on a local file system that lets \
             processes share memory",
            file.path.display()
        ))),
        Source::File(_) | Source::Pool(_) => Ok(()),
    }
}

impl Store for SqliteStore {
    type Session = SqliteSession;

    fn session(&self, election: &ElectionName) -> SqliteSession {
        SqliteSession::new(self.source.clone(), CALL_LIMIT, self.table.clone(), election.clone())
    }

    fn capabilities(&self) -> Capabilities {
        let mut capabilities = Capabilities::NONE;
        capabilities.clock = true;
        capabilities.hold = Hold::Exclusive;
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

impl fmt::Debug for SqliteStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("SqliteStore");
        match &self.source {
            Source::File(file) => debug.field("file", &file.path),
            Source::Pool(_) => debug.field("pool", &format_args!("..")),
        };
        debug.field("table", &self.table.name()).finish()
    }
}

#[cfg(test)]
mod tests {
    use sqlx::sqlite::SqlitePoolOptions;

    use super::*;

    #[test]
    fn a_file_that_cannot_be_in_wal_mode_is_named_with_the_mode_that_it_is_in() {
        let file = Source::File(File::from_url("/net/leases.db").unwrap().into());
        let error = check_mode("create the schema", &file, "delete").unwrap_err();
        assert!(error.is_fatal(), "{error}");
        let says =
            "could not create the schema: /net/leases.db stays in the journal mode \"delete\"";
        assert!(error.to_string().starts_with(says), "{error}");
        assert!(check_mode("create the schema", &file, "wal").is_ok());
    }

    #[tokio::test]
    async fn administration_does_not_wait_for_ever_for_a_connection() {
        let longer = 2 * ADMINISTRATION_LIMIT;
        let options = SqlitePoolOptions::new().max_connections(1).acquire_timeout(longer);
        let pool = options.connect("sqlite::memory:").await.unwrap();
        let _taken = pool.acquire().await.unwrap();
        tokio::time::pause();
        let error = SqliteStore::from_pool(pool).ping().await.unwrap_err();
        assert!(error.is_retryable(), "{error}");
        assert_eq!(error.to_string(), "could not ping: no answer within 10s");
    }
}
