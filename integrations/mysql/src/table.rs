//! The two tables, and the statements on them. What these have to be is said in [`tenure::store::Store`]; why they are as
//! they are, here.
//!
//! Each operation is one message of several statements, which [`link`](crate::link) makes one transaction at READ
//! COMMITTED. A conditional write first locks the record if it is the one that is meant, which answers its version; then
//! writes it, if the time allows; then looks at it. Whoever lost has written nothing, and who won is known from the
//! versions: neither the count of affected rows, which drivers and proxies count in two ways, nor anything that lasts
//! longer than the transaction takes part.
//!
//! `UTC_TIMESTAMP` is read when a statement begins. The statement that writes begins after the lock was taken, so its
//! time is that of the lock, whatever the session's time zone is, and whatever `--sysdate-is-now` makes of `SYSDATE`. No
//! assignment reads what another one writes, since sql_mode decides what it would read.
//!
//! **The second table** has one row for each election, and is there for transactions of the user's that hold a term.
//! InnoDB knows shared and exclusive locks only: whoever shares a lock on the record keeps renewals away. So holders share
//! a lock on that other row, and everything that ends a term takes it exclusively, before it touches the record. Renewals
//! pass. The row repeats the fence of the term that may be held, since only what is locked is sure to be read as it is
//! now, and not as it was when the transaction began.

use tenure::{
    ElectionName, Fence, Identity, Payload,
    store::{AcquireRequest, Observed, PlaceRequest, ReleaseRequest, RenewRequest, When},
};

use crate::{
    link::Message,
    literal::{bytes, identifier, micros, text},
    setup::{SetupError, check_identifier},
};

/// The server's clock, in microseconds since 1970. Also the least new version, and in milliseconds the least new fence:
/// neither may fall back to a number that was given out before the record was lost, or restored from a backup.
const NOW: &str = "TIMESTAMPDIFF(MICROSECOND, TIMESTAMP'1970-01-01 00:00:00', UTC_TIMESTAMP(6))";

/// What the second table's name ends with.
const HOLD: &str = "_hold";

/// Where the records are.
#[derive(Clone, Debug)]
pub(crate) struct Table {
    database: Option<String>,
    table: String,
    /// Quoted, with the database if one is given.
    name: String,
    /// That of the second table.
    hold: String,
}

impl Default for Table {
    fn default() -> Self {
        Self::quoted(None, "leader_election".to_owned())
    }
}

impl Table {
    pub(crate) fn with_table(self, table: &str) -> Result<Self, SetupError> {
        check_identifier("table", table, HOLD.len())?;
        Ok(Self::quoted(self.database, table.to_owned()))
    }

    pub(crate) fn with_database(self, database: &str) -> Result<Self, SetupError> {
        check_identifier("database", database, 0)?;
        Ok(Self::quoted(Some(database.to_owned()), self.table))
    }

    fn quoted(database: Option<String>, table: String) -> Self {
        let place = database.as_deref().map_or(String::new(), |name| identifier(name) + ".");
        let name = format!("{place}{}", identifier(&table));
        let hold = format!("{place}{}", identifier(&format!("{table}{HOLD}")));
        Self { database, table, name, hold }
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn hold_name(&self) -> &str {
        &self.hold
    }

    /// Names and holders are bytes: a collation would take `a` for `A`, or for `a `.
    pub(crate) fn create(&self) -> [String; 2] {
        let Self { name, hold, .. } = self;
        [
            format!(
                "CREATE TABLE IF NOT EXISTS {name} (
    name        VARBINARY(255) NOT NULL PRIMARY KEY,
    holder      VARBINARY(255) NULL,
    fence       BIGINT NOT NULL,
    version     BIGINT NOT NULL,
    duration_us BIGINT NOT NULL,
    released    BOOLEAN NOT NULL DEFAULT FALSE,
    acquired_us BIGINT NOT NULL,
    renewed_us  BIGINT NOT NULL,
    expires_us  BIGINT NOT NULL,
    payload     MEDIUMBLOB NOT NULL
) ENGINE = InnoDB"
            ),
            format!(
                "CREATE TABLE IF NOT EXISTS {hold} (
    election    VARBINARY(255) NOT NULL PRIMARY KEY,
    held_fence  BIGINT NULL
) ENGINE = InnoDB"
            ),
        ]
    }

    /// Fails unless both tables are there with all their columns, and readable.
    pub(crate) fn look(&self) -> Message {
        let Self { name, hold, .. } = self;
        Message::look(format!(
            "SELECT l.name, l.acquired_us, l.renewed_us, h.held_fence, {} \
             FROM {name} AS l LEFT JOIN {hold} AS h ON h.election = l.name LIMIT 0",
            record()
        ))
    }

    /// The tables of these names that are not InnoDB's.
    pub(crate) fn other_engines(&self) -> Message {
        let name = |name: &str| format!("CONVERT({} USING utf8mb4)", text(name));
        let database = self.database.as_deref().map_or("DATABASE()".to_owned(), name);
        let tables = [name(&self.table), name(&format!("{}{HOLD}", self.table))].join(", ");
        Message::look(format!(
            "SELECT CAST(t.ENGINE AS BINARY) AS engine FROM information_schema.TABLES AS t \
             WHERE t.TABLE_SCHEMA = {database} AND t.TABLE_NAME IN ({tables}) AND t.ENGINE <> 'InnoDB'"
        ))
    }

    pub(crate) fn list(&self) -> Message {
        Message::look(format!(
            "SELECT l.name, {} FROM {} AS l ORDER BY l.name",
            record(),
            self.name
        ))
    }

    pub(crate) fn inspect(&self, election: &ElectionName) -> Message {
        Message::look(self.read(&named(election)))
    }

    pub(crate) fn place(&self, election: &ElectionName, request: &PlaceRequest) -> Message {
        let record = NewRecord {
            holder: "NULL".to_owned(),
            least_fence: request.floor.map_or(1, i64::from).to_string(),
            duration: micros(request.duration),
            payload: bytes(&[]),
        };
        self.insert(election, &record)
    }

    pub(crate) fn acquire(&self, election: &ElectionName, request: &AcquireRequest) -> Message {
        let record = NewRecord {
            holder: text(request.holder.as_str()),
            least_fence: above(request.floor),
            duration: micros(request.duration),
            payload: bytes(request.payload.as_bytes()),
        };
        match &request.observed {
            None => self.insert(election, &record),
            Some(observed) => self.take_over(election, observed, request.when, &record),
        }
    }

    /// Leaves the second table alone, and so passes whoever holds the term.
    pub(crate) fn renew(&self, election: &ElectionName, request: &RenewRequest) -> Message {
        let ours = ours(election, &request.holder, request.fence);
        let duration = micros(request.duration);
        let payload = request.payload.as_ref().map(Payload::as_bytes).map(bytes);
        let payload = payload.map_or(String::new(), |payload| format!(", l.payload = {payload}"));
        let set = format!(
            "{}, l.duration_us = {duration}, l.renewed_us = {NOW}, \
             l.expires_us = {NOW} + {duration}{payload}",
            next_version()
        );
        let valid = format!("{ours} AND l.expires_us > {NOW}");
        Message::write([self.lock(&ours), self.update(&set, &valid), self.read(&named(election))])
    }

    pub(crate) fn release(&self, election: &ElectionName, request: &ReleaseRequest) -> Message {
        let ours = ours(election, &request.holder, request.fence);
        self.end(election, &ours, &format!("{}, l.released = 1", next_version()))
    }

    pub(crate) fn depose(&self, election: &ElectionName) -> Message {
        self.end(election, &named(election), &format!("{}, l.holder = NULL", next_version()))
    }

    fn take_over(
        &self,
        election: &ElectionName,
        observed: &Observed,
        when: When,
        record: &NewRecord,
    ) -> Message {
        // A version of some other store's making is never found here.
        let version = observed.version.as_u64().and_then(|version| i64::try_from(version).ok());
        let unchanged = match version {
            Some(version) => {
                let fence = i64::from(observed.fence);
                format!("{} AND l.fence = {fence} AND l.version = {version}", named(election))
            }
            None => format!("{} AND FALSE", named(election)),
        };
        let claimable = match when {
            When::Expired => format!("{unchanged} AND l.expires_us <= {NOW}"),
            When::Unchanged => unchanged.clone(),
        };
        Message::write([
            self.keep_holders_out(election),
            self.lock(&unchanged),
            self.update(&record.set(), &claimable),
            self.follow(election),
            self.read(&named(election)),
        ])
    }

    /// Makes a record with the version 0, and takes that over, in one transaction: nobody else ever sees one with this
    /// version, and the time is read after whatever the insert had to wait for.
    fn insert(&self, election: &ElectionName, record: &NewRecord) -> Message {
        let (table, name) = (&self.name, text(election.as_str()));
        let made = format!("{} AND l.version = 0", named(election));
        Message::write([
            self.keep_holders_out(election),
            format!(
                "INSERT INTO {table} (name, fence, version, duration_us, released, \
                                      acquired_us, renewed_us, expires_us, payload) \
                 VALUES ({name}, 0, 0, 0, 0, 0, 0, 0, X'') \
                 ON DUPLICATE KEY UPDATE version = version"
            ),
            self.lock(&made),
            self.update(&record.set(), &made),
            self.follow(election),
            self.read(&named(election)),
        ])
    }

    /// What ends a term without starting another one.
    fn end(&self, election: &ElectionName, condition: &str, set: &str) -> Message {
        Message::write([
            self.keep_holders_out(election),
            self.lock(condition),
            self.update(set, condition),
            self.follow(election),
            self.read(&named(election)),
        ])
    }

    /// Waits for the transactions that hold the term, and keeps new ones out until the commit. Whatever takes locks on both
    /// rows takes this one first, or two that lose might wait for each other.
    fn keep_holders_out(&self, election: &ElectionName) -> String {
        format!(
            "INSERT INTO {} (election) VALUES ({}) ON DUPLICATE KEY UPDATE held_fence = held_fence",
            self.hold,
            text(election.as_str())
        )
    }

    /// Answers the version of the record if it meets the condition, and locks it.
    fn lock(&self, condition: &str) -> String {
        format!("SELECT l.version FROM {} AS l WHERE {condition} FOR UPDATE", self.name)
    }

    fn update(&self, set: &str, condition: &str) -> String {
        format!("UPDATE {} AS l SET {set} WHERE {condition}", self.name)
    }

    /// Says which term may be held now, if any. Changes nothing if the record was not written.
    fn follow(&self, election: &ElectionName) -> String {
        let Self { name, hold, .. } = self;
        format!(
            "UPDATE {hold} AS h JOIN {name} AS l ON l.name = h.election \
             SET h.held_fence = IF(l.holder IS NULL OR l.released, NULL, l.fence) \
             WHERE h.election = {}",
            text(election.as_str())
        )
    }

    fn read(&self, condition: &str) -> String {
        format!("SELECT {} FROM {} AS l WHERE {condition}", record(), self.name)
    }

    /// Answers a row, and keeps it locked, if the term may be held: it is that of the row now, and its lease is valid as
    /// far as the transaction can see, to which a subquery adds no lock. What it sees may be old; but a lease is only ever
    /// prolonged, and should it have run out, nobody can take it any more.
    pub(crate) fn hold(&self, election: &ElectionName, holder: &Identity, fence: Fence) -> String {
        let (Self { name, hold, .. }, ours) = (self, ours(election, holder, fence));
        let fence = i64::from(fence);
        format!(
            "SELECT h.held_fence FROM {hold} AS h \
             WHERE h.election = {} AND h.held_fence = {fence} \
               AND EXISTS (SELECT 1 FROM {name} AS l WHERE {ours} AND l.expires_us > {NOW}) \
             LOCK IN SHARE MODE",
            text(election.as_str())
        )
    }

    /// Answers the row as well, if it is that of the term, and then the record as it is now, which takes a lock on it:
    /// renewals wait for the end of the transaction. There is no other way to see it in a transaction that sees what was.
    pub(crate) fn hold_exactly(&self, election: &ElectionName, fence: Fence) -> [String; 2] {
        let (name, fence) = (text(election.as_str()), i64::from(fence));
        [
            format!(
                "SELECT h.held_fence FROM {} AS h \
                 WHERE h.election = {name} AND h.held_fence = {fence} LOCK IN SHARE MODE",
                self.hold
            ),
            format!("{} LOCK IN SHARE MODE", self.read(&named(election))),
        ]
    }
}

/// No version comes twice: not after a restore from a backup either, since it follows the clock.
fn next_version() -> String {
    format!("l.version = GREATEST(l.version + 1, {NOW})")
}

/// What a record consists of, from the row `l`. How long it is still valid comes from two readings of the server's
/// clock.
fn record() -> String {
    format!(
        "l.holder, l.fence, l.version, l.duration_us, l.released, l.expires_us - {NOW} AS ttl_us, l.payload"
    )
}

/// What to write, as SQL.
struct NewRecord {
    holder: String,
    least_fence: String,
    duration: i64,
    payload: String,
}

impl NewRecord {
    fn set(&self) -> String {
        let Self { holder, least_fence, duration, payload } = self;
        format!(
            "l.holder = {holder}, l.fence = GREATEST(l.fence + 1, {least_fence}, {NOW} DIV 1000), {}, \
             l.duration_us = {duration}, l.released = 0, l.acquired_us = {NOW}, l.renewed_us = {NOW}, \
             l.expires_us = {NOW} + {duration}, l.payload = {payload}",
            next_version()
        )
    }
}

/// The least fence above the floor. Computed by the server, which refuses to go beyond the highest.
fn above(floor: Option<Fence>) -> String {
    floor.map_or("1".to_owned(), |floor| format!("{} + 1", i64::from(floor)))
}

fn named(election: &ElectionName) -> String {
    format!("l.name = {}", text(election.as_str()))
}

fn ours(election: &ElectionName, holder: &Identity, fence: Fence) -> String {
    format!(
        "{} AND l.holder = {} AND l.fence = {} AND l.released = 0",
        named(election),
        text(holder.as_str()),
        i64::from(fence)
    )
}
