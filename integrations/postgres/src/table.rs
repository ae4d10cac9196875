//! The table, and the statements on it. What they have to be is said in [`tenure::store::Store`]; why they are as they
//! are, here.
//!
//! Each is the second half of one message (the first is that of [`link`](crate::link)), hence of one transaction at
//! READ COMMITTED: every statement sees what was committed before it began. The conditional write comes first and
//! answers the record if it was written; a plain look follows, for whoever lost. The first row is the answer.
//!
//! `now()` and its like stand still during a transaction, also while it waits for a lock, so nothing here uses them for
//! the time: it is `clock_timestamp()`.

use std::time::Duration;

use tenure::{
    ElectionName, Fence, Payload,
    store::{AcquireRequest, Observed, PlaceRequest, ReleaseRequest, RenewRequest, When},
};

use crate::{
    hints::notification,
    link::{is_within, limit_ms},
    literal::{bigint, bytes, identifier, micros, text},
    setup::{MAX_IDENTIFIER_BYTES, SetupError, check_identifier, check_schema},
};

/// What a record consists of, from the row `l`. How long it is still valid comes from two readings of the server's
/// clock. Whether the transaction is our own is told by its beginning, which is that of the message: a pool may hand
/// out a connection on which somebody left a transaction open, and what was written there may never be committed.
const RECORD: &str = "\
    l.holder, l.fence, l.version, l.duration_us, l.released, \
    (extract(epoch FROM l.expires_at - clock_timestamp()) * 1000000)::bigint AS ttl_us, \
    encode(l.payload, 'hex') AS payload, \
    transaction_timestamp() = statement_timestamp() AS own_transaction";

/// The server's clock as the least new fence, and as the least new version: neither may fall back to a number that was
/// given out before the record was lost, or restored from a backup.
const MILLISECONDS: &str = "(extract(epoch FROM clock_timestamp()) * 1000)::bigint";
const MICROSECONDS: &str = "(extract(epoch FROM clock_timestamp()) * 1000000)::bigint";

/// Where the records are. The schema is part of its name: with a `search_path`, replicas might look into different
/// tables and each find a leader of their own.
#[derive(Clone, Debug)]
pub(crate) struct Table {
    schema: String,
    /// Quoted, with the schema.
    name: String,
    channel: String,
}

impl Default for Table {
    fn default() -> Self {
        Self::named("public", "leader_election")
    }
}

impl Table {
    pub(crate) fn new(schema: &str, table: &str) -> Result<Self, SetupError> {
        check_schema(schema)?;
        check_identifier("table", table)?;
        Ok(Self::named(schema, table))
    }

    fn named(schema: &str, table: &str) -> Self {
        let channel = format!("tenure:{schema}.{table}");
        // As long as an identifier may be. Two tables with one channel only share their hints, which may be false.
        let channel = channel[..channel.floor_char_boundary(MAX_IDENTIFIER_BYTES)].to_owned();
        let schema = identifier(schema);
        Self { name: format!("{schema}.{}", identifier(table)), schema, channel }
    }

    /// Where releases are told.
    pub(crate) fn channel(&self) -> String {
        self.channel.clone()
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn create_schema(&self) -> String {
        format!("CREATE SCHEMA IF NOT EXISTS {};", self.schema)
    }

    /// Rows are updated in place as long as no index but that of the key exists and their page has room: so there is no
    /// other index, and pages are filled to 70 %.
    pub(crate) fn create(&self) -> String {
        let table = &self.name;
        format!(
            "CREATE TABLE IF NOT EXISTS {table} (
    name        text COLLATE \"C\" PRIMARY KEY,
    holder      text COLLATE \"C\",
    fence       bigint NOT NULL,
    version     bigint NOT NULL,
    duration_us bigint NOT NULL,
    released    boolean NOT NULL DEFAULT false,
    acquired_at timestamptz NOT NULL,
    renewed_at  timestamptz NOT NULL,
    expires_at  timestamptz NOT NULL,
    payload     bytea NOT NULL DEFAULT ''
) WITH (fillfactor = 70);"
        )
    }

    /// Fails unless the table is there with all its columns, and readable.
    pub(crate) fn look(&self) -> String {
        format!(
            "SELECT l.name, l.acquired_at, l.renewed_at, {RECORD} FROM {} AS l LIMIT 0",
            self.name
        )
    }

    pub(crate) fn list(&self) -> String {
        format!("SELECT l.name, {RECORD} FROM {} AS l ORDER BY l.name", self.name)
    }

    pub(crate) fn inspect(&self, election: &ElectionName) -> String {
        let name = text(election.as_str());
        format!("SELECT false AS won, {RECORD} FROM {} AS l WHERE l.name = {name}", self.name)
    }

    pub(crate) fn place(&self, election: &ElectionName, request: &PlaceRequest) -> String {
        let least = request.floor.map_or(1, i64::from);
        let record = NewRecord {
            holder: "NULL".to_owned(),
            least_fence: bigint(least),
            duration: micros(request.duration),
            payload: bytes(&[]),
        };
        self.insert(election, &record)
    }

    pub(crate) fn acquire(&self, election: &ElectionName, request: &AcquireRequest) -> String {
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

    /// Takes `FOR NO KEY UPDATE`, like any update that leaves the key alone, so that it passes whoever holds the term
    /// inside a transaction with `FOR KEY SHARE`.
    pub(crate) fn renew(&self, election: &ElectionName, request: &RenewRequest) -> String {
        let table = &self.name;
        let duration = micros(request.duration);
        let payload = request.payload.as_ref().map(Payload::as_bytes).map(bytes);
        let payload = payload.map_or(String::new(), |payload| format!(", payload = {payload}"));
        let ours = ours(election, request.holder.as_str(), request.fence);
        let look = self.inspect(election);
        format!(
            "UPDATE {table} AS l \
             SET version = greatest(l.version + 1, {MICROSECONDS}), duration_us = {duration}, renewed_at = clock_timestamp(), \
                 expires_at = clock_timestamp() + {duration} * interval '1 microsecond'{payload} \
             WHERE {ours} AND l.expires_at > clock_timestamp() \
             RETURNING true AS won, {RECORD}; {look}"
        )
    }

    /// Whoever listens is told when this commits, and only if there was something to release.
    ///
    /// Waits, like a take-over, for whoever holds the term inside a transaction: a term whose work goes on is not given
    /// back. The lock also tells those who come later with an older snapshot.
    pub(crate) fn release(
        &self,
        election: &ElectionName,
        request: &ReleaseRequest,
        told: Told,
    ) -> String {
        let table = &self.name;
        let ours = ours(election, request.holder.as_str(), request.fence);
        let tell = match told {
            Told::Nobody => String::new(),
            Told::Listeners => {
                let (channel, says) = (text(&self.channel), notification(election));
                format!(", pg_notify({channel}, '{says}')")
            }
        };
        let look = self.inspect(election);
        format!(
            "WITH locked AS MATERIALIZED (SELECT l.name FROM {table} AS l WHERE {ours} FOR UPDATE) \
             UPDATE {table} AS l SET version = greatest(l.version + 1, {MICROSECONDS}), released = true FROM locked \
             WHERE l.name = locked.name \
             RETURNING true AS won, {RECORD}{tell}; {look}"
        )
    }

    /// See [`hold_sql`](crate::PostgresStore::hold_sql). Takes `FOR KEY SHARE`, which renewals pass, and which a take-over
    /// and a step-down wait for. A predicate alone would not do: under the stricter isolation levels it judges an old
    /// snapshot, under the others it is out of date as soon as it was judged.
    ///
    /// Limits the wait for the lock, and puts back what was set before.
    pub(crate) fn hold(
        &self,
        election: &ElectionName,
        holder: &str,
        fence: Fence,
        patience: Duration,
    ) -> String {
        let table = &self.name;
        let ours = ours(election, holder, fence);
        let stricter = |name: &str, ms: &str| {
            let is_within = is_within(name, ms);
            format!(
                "set_config({name}, CASE WHEN {is_within} THEN current_setting({name}) ELSE ({ms})::text END, true)"
            )
        };
        let wait = stricter("'lock_timeout'", &limit_ms(patience).to_string());
        let idle = stricter(
            "'idle_in_transaction_session_timeout'",
            "greatest(1, least(2147483647, held.duration_us / 1000))",
        );
        format!(
            "WITH before AS MATERIALIZED (SELECT current_setting('lock_timeout') AS lock_timeout), \
             limits AS MATERIALIZED (SELECT before.lock_timeout, {wait} FROM before), \
             held AS MATERIALIZED (SELECT l.duration_us, l.expires_at, limits.lock_timeout \
                 FROM limits CROSS JOIN {table} AS l WHERE {ours} FOR KEY SHARE OF l), \
             bounded AS MATERIALIZED (SELECT set_config('lock_timeout', held.lock_timeout, true), {idle} \
                 FROM held WHERE held.expires_at > clock_timestamp()) \
             SELECT true AS held FROM bounded"
        )
    }

    /// The record as a transaction sees it that could not hold its term.
    pub(crate) fn look_instead(&self, election: &ElectionName) -> String {
        let name = text(election.as_str());
        format!("SELECT false AS held, {RECORD} FROM {} AS l WHERE l.name = {name}", self.name)
    }

    /// Waits, like a take-over, for whoever holds the term inside a transaction.
    pub(crate) fn depose(&self, election: &ElectionName) -> String {
        let table = &self.name;
        let name = text(election.as_str());
        let look = self.inspect(election);
        format!(
            "WITH locked AS MATERIALIZED (SELECT l.name FROM {table} AS l WHERE l.name = {name} FOR UPDATE) \
             UPDATE {table} AS l SET version = greatest(l.version + 1, {MICROSECONDS}), holder = NULL FROM locked \
             WHERE l.name = locked.name \
             RETURNING true AS won, {RECORD}; {look}"
        )
    }

    /// The record is only locked if it is still the one that was observed, so that losing writes nothing, not even a
    /// lock. Had it to wait for the lock, PostgreSQL checks the condition again on what is there then; and the time is
    /// read by a step of its own, after the lock was taken.
    fn take_over(
        &self,
        election: &ElectionName,
        observed: &Observed,
        when: When,
        record: &NewRecord,
    ) -> String {
        let table = &self.name;
        let name = text(election.as_str());
        // A version of some other store's making is never found here.
        let version = observed.version.as_u64().and_then(|version| i64::try_from(version).ok());
        let unchanged = version.map_or("false".to_owned(), |version| {
            let fence = bigint(observed.fence.into());
            format!("l.fence = {fence} AND l.version = {}", bigint(version))
        });
        let (expired, still_expired) = match when {
            When::Expired => {
                (" AND l.expires_at <= clock_timestamp()", " AND c.expires_at <= c.ts")
            }
            When::Unchanged => ("", ""),
        };
        let NewRecord { holder, least_fence, duration, payload } = record;
        let look = self.inspect(election);
        format!(
            "WITH locked AS MATERIALIZED (\
                 SELECT l.name, l.expires_at FROM {table} AS l \
                 WHERE l.name = {name} AND {unchanged}{expired} FOR UPDATE), \
             c AS MATERIALIZED (SELECT locked.*, clock_timestamp() AS ts FROM locked) \
             UPDATE {table} AS l \
             SET holder = {holder}, fence = greatest(l.fence + 1, {least_fence}, {MILLISECONDS}), \
                 version = greatest(l.version + 1, {MICROSECONDS}), duration_us = {duration}, released = false, \
                 acquired_at = c.ts, renewed_at = c.ts, \
                 expires_at = c.ts + {duration} * interval '1 microsecond', payload = {payload} \
             FROM c WHERE l.name = c.name{still_expired} \
             RETURNING true AS won, {RECORD}; {look}"
        )
    }

    /// Should it have to wait for another insert that is then rolled back, its own lease ends a little early, and says
    /// so: the time was read before the wait.
    fn insert(&self, election: &ElectionName, record: &NewRecord) -> String {
        let table = &self.name;
        let name = text(election.as_str());
        let NewRecord { holder, least_fence, duration, payload } = record;
        let look = self.inspect(election);
        format!(
            "INSERT INTO {table} AS l (name, holder, fence, version, duration_us, released, \
                                       acquired_at, renewed_at, expires_at, payload) \
             SELECT {name}, {holder}, greatest({least_fence}, {MILLISECONDS}), {MICROSECONDS}, \
                    {duration}, false, c.ts, c.ts, \
                    c.ts + {duration} * interval '1 microsecond', {payload} \
             FROM (SELECT clock_timestamp() AS ts OFFSET 0) AS c \
             ON CONFLICT (name) DO NOTHING \
             RETURNING true AS won, {RECORD}; {look}"
        )
    }
}

/// Who is told of a release.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Told {
    Listeners,
    Nobody,
}

/// What to write, as SQL.
struct NewRecord {
    holder: String,
    least_fence: String,
    duration: String,
    payload: String,
}

/// The least fence above the floor. Computed by the server, which refuses to go beyond the highest.
fn above(floor: Option<Fence>) -> String {
    floor.map_or(bigint(1), |floor| format!("{} + 1", bigint(floor.into())))
}

fn ours(election: &ElectionName, holder: &str, fence: Fence) -> String {
    let (name, holder) = (text(election.as_str()), text(holder));
    let fence = bigint(fence.into());
    format!("l.name = {name} AND l.holder = {holder} AND l.fence = {fence} AND NOT l.released")
}
