//! Which failures pass by themselves, and what to do about those that don't.

use sqlx::mysql::MySqlDatabaseError;
use tenure::store::{
    StoreError,
    StoreErrorKind::{self, Fatal, Transient},
};

use crate::{link::Source, table::Table};

/// What MySQL or MariaDB, or the driver, said: the source of every [`StoreError`] that one of them caused.
///
#[doc = include_str!("errors.md")]
///
/// ```
/// use std::error::Error;
/// use tenure::StoreError;
/// use tenure_mysql::MysqlError;
///
/// fn is_deadlock(error: &StoreError) -> bool {
///     let cause = error.source().and_then(|source| source.downcast_ref::<MysqlError>());
///     cause.and_then(MysqlError::number) == Some(1213)
/// }
/// # assert!(!is_deadlock(&StoreError::transient("of another kind")));
/// ```
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct MysqlError(#[from] sqlx::Error);

impl MysqlError {
    /// The server's error number, if it was the server that refused. [MySQL's], [MariaDB's].
    ///
    /// [MySQL's]: https://dev.mysql.com/doc/mysql-errors/8.0/en/server-error-reference.html
    /// [MariaDB's]: https://mariadb.com/kb/en/mariadb-error-code-reference/
    #[must_use]
    pub fn number(&self) -> Option<u16> {
        number(&self.0)
    }

    /// The driver's error.
    #[must_use]
    pub fn driver(&self) -> &sqlx::Error {
        &self.0
    }
}

const READ_ONLY: &str = "the server is read-only: connect to the primary, or mend `transaction_read_only`. After a fail-over it \
                         passes, since every attempt connects anew";
const ENDED: &str = "the server ended the connection";
const FULL: &str = "the server, or the user, has no connection left: raise its limit if this lasts";
const LOGIN: &str =
    "the server refuses the login: look at the user's name, its host and its authentication plugin";
const MISSING: &str =
    "{table} or {hold} is missing: call `ensure_schema()`, or run what `schema_sql()` gives";
const OTHER_TABLE: &str = "{table} or {hold} is not the table that `schema_sql()` describes; choose another one by `with_table()`";
const PRIVILEGE: &str = "the user lacks a privilege: GRANT SELECT, INSERT, UPDATE on {table} and {hold}; for `ensure_schema()` also \
                         CREATE, or run what `schema_sql()` gives as another user";
const SLOW: &str = "it took longer than the call may take, or was cancelled; a transaction may be in the way, such as one that holds \
                    the term";
const SYNTAX: &str =
    "the server does not understand the statement; it must be MySQL 8.0, MariaDB 10.6, or newer";

/// SQLSTATE does not tell these apart.
#[rustfmt::skip]
const BY_NUMBER: &[(u16, StoreErrorKind, &str)] = &[
    (1020, Transient, "somebody has changed the row since the transaction began"),
    (1021, Fatal,     "the server's disk is full"),
    (1036, Fatal,     READ_ONLY),
    (1037, Transient, "the server is short of memory"),
    (1040, Transient, FULL),
    (1041, Transient, "the server is short of memory"),
    (1042, Fatal,     LOGIN),
    (1043, Transient, "the connection broke while it was made"),
    (1044, Fatal,     "the user may not use the database, or there is none of this name: create it, grant it, or correct the URL"),
    (1045, Fatal,     "the server refuses the login: the user's name, its host or the password is wrong"),
    (1046, Fatal,     "no database is chosen: name one in the URL, or by `with_database()`"),
    (1047, Transient, "the node takes no statements just now: it is no part of its cluster"),
    (1049, Fatal,     "there is no such database: create it, or correct the URL"),
    (1053, Transient, "the server is shutting down"),
    (1054, Fatal,     OTHER_TABLE),
    (1064, Fatal,     SYNTAX),
    (1079, Transient, ENDED),
    (1105, Transient, "the server failed"),
    (1114, Fatal,     "the table is full, or the server's disk is"),
    (1129, Fatal,     "the server has blocked this host after too many failures: look for what breaks connections, then FLUSH HOSTS"),
    (1130, Fatal,     LOGIN),
    (1142, Fatal,     PRIVILEGE),
    (1143, Fatal,     PRIVILEGE),
    (1146, Fatal,     MISSING),
    (1153, Fatal,     "the payload does not fit into the server's `max_allowed_packet`"),
    (1158, Transient, ENDED),
    (1159, Transient, ENDED),
    (1160, Transient, ENDED),
    (1161, Transient, ENDED),
    (1203, Transient, FULL),
    (1205, Transient, "a transaction is in the way: one that holds the term (`hold_term`), or one that was left open and has a lock on \
                       {table} or {hold}"),
    (1213, Transient, "it collided with another transaction, or with one on another node"),
    (1226, Transient, FULL),
    (1227, Fatal,     PRIVILEGE),
    (1251, Fatal,     LOGIN),
    (1290, Fatal,     READ_ONLY),
    (1317, Transient, SLOW),
    (1347, Fatal,     OTHER_TABLE),
    (1364, Fatal,     OTHER_TABLE),
    (1370, Fatal,     PRIVILEGE),
    (1406, Fatal,     OTHER_TABLE),
    (1568, Transient, "somebody left the connection inside a transaction; it was discarded"),
    (1665, Fatal,     "the server's `binlog_format` is STATEMENT, under which it takes no writes at READ COMMITTED: set it to ROW or MIXED"),
    (1690, Fatal,     "a number is out of range: no higher fence is left, or the duration is absurd"),
    (1698, Fatal,     LOGIN),
    (1792, Fatal,     READ_ONLY),
    (1820, Fatal,     "the password has expired"),
    (1836, Fatal,     READ_ONLY),
    (1862, Fatal,     "the password has expired"),
    (1874, Fatal,     READ_ONLY),
    (1927, Transient, ENDED),
    (1969, Transient, SLOW),
    (3024, Transient, SLOW),
    (3032, Transient, "the server takes no statements just now"),
    (3118, Fatal,     "the user's account is locked"),
    (3159, Fatal,     "the server takes encrypted connections only: look at `ssl-mode`"),
    (3168, Transient, "the server takes no statements just now"),
    (3572, Transient, SLOW),
    (4031, Transient, ENDED),
    (4151, Fatal,     "the user's account is locked"),
];

/// Makes a [`StoreError`] of what the driver reported while `attempt` ("renew the lease of ..") was under way.
pub(crate) fn store_error(
    attempt: &str,
    table: &Table,
    source: &Source,
    error: sqlx::Error,
) -> StoreError {
    describe(attempt, table, &source.server(), error)
}

/// The same for a statement on somebody else's connection to `server`.
pub(crate) fn describe(
    attempt: &str,
    table: &Table,
    server: &str,
    error: sqlx::Error,
) -> StoreError {
    let (kind, advice) = judge(&error);
    let advice = advice
        .replace("{table}", table.name())
        .replace("{hold}", table.hold_name())
        .replace("{server}", server);
    let number = number(&error).map_or(String::new(), |number| format!(" (error {number})"));
    StoreError::new(kind, format!("could not {attempt}{number}: {advice}"))
        .with_source(MysqlError(error))
}

pub(crate) fn number(error: &sqlx::Error) -> Option<u16> {
    Some(error.as_database_error()?.try_downcast_ref::<MySqlDatabaseError>()?.number())
}

/// Whether a table is not there, or not even its database.
pub(crate) fn is_gone(error: &sqlx::Error) -> bool {
    matches!(number(error), Some(1049 | 1146))
}

/// Whether a connection that had been idle turned out to be closed, by a restart or a time limit. That may be tried again
/// on a fresh one within the same call: nothing that tenure sends does harm if it is executed twice.
pub(crate) fn is_disconnect(error: &sqlx::Error) -> bool {
    match error {
        sqlx::Error::Io(_) => true,
        error => matches!(number(error), Some(1053 | 1079 | 1158..=1161 | 1927 | 4031)),
    }
}

fn judge(error: &sqlx::Error) -> (StoreErrorKind, &'static str) {
    match error {
        sqlx::Error::Database(refusal) => judge_refusal(number(error), refusal.code().as_deref()),
        sqlx::Error::Io(_) => (
            Transient,
            "{server} cannot be reached, or broke off: look at the URL, and whether it runs",
        ),
        sqlx::Error::Tls(_) => {
            (Fatal, "no encrypted connection: look at `ssl-mode` and the certificates")
        }
        sqlx::Error::PoolTimedOut => (
            Transient,
            "the pool had no connection free: the application holds them all. A store made by `MysqlStore::new` has its \
             own",
        ),
        sqlx::Error::PoolClosed => (Fatal, "the pool was closed"),
        sqlx::Error::Configuration(_) | sqlx::Error::InvalidArgument(_) => {
            (Fatal, "the connection's options are not valid")
        }
        sqlx::Error::ColumnNotFound(_)
        | sqlx::Error::ColumnDecode { .. }
        | sqlx::Error::Decode(_) => (
            Fatal,
            "{table} holds what tenure did not write; choose another table by `with_table()`",
        ),
        _ => (Transient, "the conversation with the server failed"),
    }
}

fn judge_refusal(number: Option<u16>, sqlstate: Option<&str>) -> (StoreErrorKind, &'static str) {
    let known = BY_NUMBER.iter().find(|(known, ..)| Some(*known) == number);
    match (known, sqlstate.and_then(|state| state.get(..2))) {
        (Some(&(_, kind, advice)), _) => (kind, advice),
        (None, Some("22")) => (Fatal, "the server refuses a value"),
        (None, Some("28")) => (Fatal, LOGIN),
        (None, Some("42")) => (Fatal, SYNTAX),
        (None, _) => (Transient, "the server failed"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_number_stands_once_and_in_its_place() {
        assert!(BY_NUMBER.is_sorted_by(|(one, ..), (next, ..)| one < next));
    }

    /// Write what this expects into the file, and read it.
    #[test]
    fn the_documents_table_is_that_of_the_code() {
        let rows = BY_NUMBER.iter().map(|&(number, kind, advice)| {
            let passes = if kind == Fatal { "no" } else { "yes" };
            let advice =
                advice.replace("{table}", "the table").replace("{hold}", "its `_hold` table");
            format!("| {number} | {passes} | {advice} |\n")
        });
        let expected: String = rows.collect();
        let documented = include_str!("errors.md");
        assert!(documented.contains(&expected), "expected in errors.md:\n{expected}");
    }

    #[test]
    fn an_unknown_number_is_judged_by_its_class() {
        assert_eq!(judge_refusal(Some(9_999), Some("42000")).0, Fatal);
        assert_eq!(judge_refusal(Some(9_999), Some("28000")).0, Fatal);
        assert_eq!(judge_refusal(Some(9_999), Some("HY000")).0, Transient);
        assert_eq!(judge_refusal(None, None).0, Transient);
    }

    #[test]
    fn what_passes_is_told_from_what_someone_must_mend() {
        let judged = [
            (sqlx::Error::Io(std::io::ErrorKind::ConnectionRefused.into()), Transient),
            (sqlx::Error::PoolTimedOut, Transient),
            (sqlx::Error::WorkerCrashed, Transient),
            (sqlx::Error::PoolClosed, Fatal),
            (sqlx::Error::Tls("no".into()), Fatal),
            (sqlx::Error::Configuration("no".into()), Fatal),
            (sqlx::Error::InvalidArgument("no".into()), Fatal),
            (sqlx::Error::ColumnNotFound("fence".into()), Fatal),
            (sqlx::Error::Decode("no".into()), Fatal),
        ];
        for (error, expected) in judged {
            assert_eq!(judge(&error).0, expected, "{error}");
        }
    }
}
