//! The table, and the statements on it.
//!
//! Each operation is one statement that commits by itself. SQLite takes the write lock before it looks at the rows, so
//! that nothing changes between the condition and the write. A transaction that reads first and writes afterwards would
//! fail whenever somebody else has written in between.

use std::{sync::Arc, time::Duration};

use sqlx::{AssertSqlSafe, Sqlite, query::Query, sqlite::SqliteArguments};
use tenure::{
    ElectionName, Fence, Identity, StoreError, Term,
    store::{AcquireRequest, Observed, PlaceRequest, ReleaseRequest, RenewRequest, When},
};

use crate::{clock::Reading, setup::SetupError};

/// A statement with its values.
pub(crate) type Statement<'a> = Query<'a, Sqlite, SqliteArguments>;

/// All that a lease is read from.
const COLUMNS: &str = "holder, fence, version, duration_us, released, expires_at, payload, boot_id";

/// SQLite's wall clock: the same throughout a statement, and known to every version of SQLite.
const WALL_MS: &str = "CAST(round((julianday('now') - 2440587.5) * 86400000.0) AS INTEGER)";

/// One table and the text of all statements on it.
#[derive(Debug)]
pub(crate) struct Table {
    name: String,
    pub(crate) schema: Arc<str>,
    look: Arc<str>,
    inspect: Arc<str>,
    list: Arc<str>,
    insert: Arc<str>,
    take: Arc<str>,
    renew: Arc<str>,
    release: Arc<str>,
    depose: Arc<str>,
    hold: Arc<str>,
}

impl Default for Table {
    fn default() -> Self {
        Self::of("leader_election")
    }
}

impl Table {
    /// Any text may serve as a name.
    pub(crate) fn new(name: &str) -> Result<Self, SetupError> {
        if name.is_empty() {
            return Err(SetupError::EmptyTable);
        }
        if name.contains('\0') {
            return Err(SetupError::Nul { what: "table's name" });
        }
        if name.get(..7).is_some_and(|start| start.eq_ignore_ascii_case("sqlite_")) {
            return Err(SetupError::ReservedTable { table: name.to_owned() });
        }
        Ok(Self::of(name))
    }

    fn of(name: &str) -> Self {
        let table = quoted(name);
        // Follows the wall clock where that is ahead, so that a record that was restored from a backup does not repeat
        // the versions that it has had since.
        let next_version = format!("max(version + 1, {WALL_MS} * 1000)");
        Self {
            schema: format!(
                "CREATE TABLE IF NOT EXISTS {table} (\n  \
                   name TEXT NOT NULL PRIMARY KEY,\n  \
                   holder TEXT,\n  \
                   fence INTEGER NOT NULL,\n  \
                   version INTEGER NOT NULL,\n  \
                   duration_us INTEGER NOT NULL,\n  \
                   released INTEGER NOT NULL,\n  \
                   acquired_at INTEGER NOT NULL,\n  \
                   renewed_at INTEGER NOT NULL,\n  \
                   expires_at INTEGER NOT NULL,\n  \
                   payload BLOB NOT NULL,\n  \
                   boot_id TEXT NOT NULL\n\
                 ) STRICT;\n"
            )
            .into(),
            look: format!("SELECT name, {COLUMNS} FROM {table} LIMIT 0").into(),
            inspect: format!("SELECT {COLUMNS} FROM {table} WHERE name = ?1").into(),
            list: format!("SELECT name, {COLUMNS} FROM {table} ORDER BY name").into(),
            insert: format!(
                "INSERT INTO {table} (name, holder, fence, version, duration_us, released, \
                   acquired_at, renewed_at, expires_at, payload, boot_id) \
                 VALUES (?1, ?2, max(?3, {WALL_MS}), max(1, {WALL_MS} * 1000), ?4, 0, ?5, ?5, ?6, ?7, ?8) \
                 ON CONFLICT (name) DO NOTHING RETURNING {COLUMNS}"
            )
            .into(),
            take: format!(
                "UPDATE {table} SET holder = ?2, fence = max(?3, {WALL_MS}), version = {next_version}, \
                   duration_us = ?4, released = 0, acquired_at = ?5, renewed_at = ?5, expires_at = ?6, \
                   payload = ?7, boot_id = ?8 \
                 WHERE name = ?1 AND fence = ?9 AND version = ?10 \
                   AND (?11 OR (boot_id = ?8 AND expires_at <= ?5)) RETURNING {COLUMNS}"
            )
            .into(),
            // A renewal that was abandoned while it waited for the lock may come after the one that was sent in its
            // place. Its reading is the older one, and it would shorten the lease on which the leader relies.
            renew: format!(
                "UPDATE {table} SET version = {next_version}, duration_us = ?4, renewed_at = ?5, \
                   expires_at = ?6, payload = coalesce(?7, payload), boot_id = ?8 \
                 WHERE name = ?1 AND holder = ?2 AND fence = ?3 AND NOT released \
                   AND (boot_id <> ?8 OR (renewed_at <= ?5 AND expires_at > ?5)) RETURNING {COLUMNS}"
            )
            .into(),
            release: format!(
                "UPDATE {table} SET version = {next_version}, released = 1 \
                 WHERE name = ?1 AND holder = ?2 AND fence = ?3 AND NOT released RETURNING {COLUMNS}"
            )
            .into(),
            depose: format!(
                "UPDATE {table} SET version = {next_version}, holder = NULL \
                 WHERE name = ?1 RETURNING {COLUMNS}"
            )
            .into(),
            hold: hold(&table, ["?1", "?2", "?3", "?4", "?5"]).into(),
            name: name.to_owned(),
        }
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn create(&self) -> Statement<'static> {
        statement(&self.schema)
    }

    /// Fails unless the table and its columns are there.
    pub(crate) fn look(&self) -> Statement<'static> {
        statement(&self.look)
    }

    pub(crate) fn list(&self) -> Statement<'static> {
        statement(&self.list)
    }

    pub(crate) fn inspect<'a>(&self, election: &'a ElectionName) -> Statement<'a> {
        statement(&self.inspect).bind(election.as_str())
    }

    pub(crate) fn place<'a>(
        &self,
        election: &'a ElectionName,
        request: &PlaceRequest,
        now: Reading,
    ) -> Result<Statement<'a>, StoreError> {
        let valid = Validity::new(request.duration, now)?;
        let least = request.floor.unwrap_or(Fence::MIN);
        Ok(statement(&self.insert)
            .bind(election.as_str())
            .bind(None::<&str>)
            .bind(i64::from(least))
            .bind(valid.duration)
            .bind(now.micros)
            .bind(valid.expires_at)
            .bind(&[][..] as &[u8])
            .bind(now.boot))
    }

    pub(crate) fn acquire<'a>(
        &self,
        election: &'a ElectionName,
        request: &'a AcquireRequest,
        now: Reading,
    ) -> Result<Statement<'a>, StoreError> {
        let valid = Validity::new(request.duration, now)?;
        let record = request.observed.as_ref().map(|observed| observed.fence);
        // The wall clock is SQLite's, and raises it further.
        let least = Fence::next(record, request.floor, 0).ok_or_else(|| {
            StoreError::fatal(format!("no fence is left for election {election:?}"))
        })?;
        let text = if record.is_some() { &self.take } else { &self.insert };
        let claim = statement(text)
            .bind(election.as_str())
            .bind(request.holder.as_str())
            .bind(i64::from(least))
            .bind(valid.duration)
            .bind(now.micros)
            .bind(valid.expires_at)
            .bind(request.payload.as_bytes())
            .bind(now.boot);
        Ok(match &request.observed {
            None => claim,
            Some(Observed { fence, version, .. }) => claim
                .bind(i64::from(*fence))
                // A version of another store's making matches none of ours.
                .bind(version.as_u64().and_then(|version| i64::try_from(version).ok()))
                .bind(request.when == When::Unchanged),
        })
    }

    pub(crate) fn renew<'a>(
        &self,
        election: &'a ElectionName,
        request: &'a RenewRequest,
        now: Reading,
    ) -> Result<Statement<'a>, StoreError> {
        let valid = Validity::new(request.duration, now)?;
        Ok(of_term(&self.renew, election, &request.holder, request.fence)
            .bind(valid.duration)
            .bind(now.micros)
            .bind(valid.expires_at)
            .bind(request.payload.as_ref().map(|payload| payload.as_bytes()))
            .bind(now.boot))
    }

    pub(crate) fn release<'a>(
        &self,
        election: &'a ElectionName,
        request: &'a ReleaseRequest,
    ) -> Statement<'a> {
        of_term(&self.release, election, &request.holder, request.fence)
    }

    pub(crate) fn hold<'a>(&self, term: &'a Term, now: Reading) -> Statement<'a> {
        of_term(&self.hold, term.election(), term.identity(), term.fence())
            .bind(now.boot)
            .bind(now.micros)
    }

    /// The same with its values in the text.
    pub(crate) fn hold_sql(&self, term: &Term, now: Reading) -> String {
        let values = [
            literal(term.election().as_str()),
            literal(term.identity().as_str()),
            i64::from(term.fence()).to_string(),
            literal(now.boot),
            now.micros.to_string(),
        ];
        hold(&quoted(&self.name), values.each_ref().map(String::as_str))
    }

    pub(crate) fn depose<'a>(&self, election: &'a ElectionName) -> Statement<'a> {
        statement(&self.depose).bind(election.as_str())
    }
}

fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// Takes the write lock, and answers a row if the term is current. It changes nothing: others go by the version. Values
/// are parameters or literals.
fn hold(table: &str, [name, holder, fence, boot, now]: [&str; 5]) -> String {
    format!(
        "UPDATE {table} SET fence = fence WHERE name = {name} AND holder = {holder} AND fence = {fence} \
           AND NOT released AND (boot_id <> {boot} OR expires_at > {now}) RETURNING fence"
    )
}

/// In SQLite nothing but a quote has a meaning in a text.
fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// The file's journal mode.
pub(crate) fn journal_mode() -> Statement<'static> {
    sqlx::query("PRAGMA journal_mode")
}

/// Switches the file to WAL mode for good, and answers the mode that it is in then.
pub(crate) fn switch_to_wal() -> Statement<'static> {
    sqlx::query("PRAGMA journal_mode = WAL")
}

fn statement<'a>(text: &Arc<str>) -> Statement<'a> {
    sqlx::query(AssertSqlSafe(text.clone()))
}

fn of_term<'a>(
    text: &Arc<str>,
    election: &'a ElectionName,
    holder: &'a Identity,
    fence: Fence,
) -> Statement<'a> {
    statement(text).bind(election.as_str()).bind(holder.as_str()).bind(i64::from(fence))
}

/// How long a lease is to be valid, in SQLite's integers.
struct Validity {
    duration: i64,
    expires_at: i64,
}

impl Validity {
    fn new(duration: Duration, now: Reading) -> Result<Self, StoreError> {
        let micros = i64::try_from(duration.as_micros()).ok();
        let expires_at = micros.and_then(|micros| now.micros.checked_add(micros));
        match (micros, expires_at) {
            (Some(duration), Some(expires_at)) => Ok(Self { duration, expires_at }),
            _ => Err(StoreError::fatal(format!("a lease of {duration:?} is too long for SQLite"))),
        }
    }
}
