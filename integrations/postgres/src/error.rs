//! Which failures pass by themselves, and what to do about those that don't.

use sqlx::error::DatabaseError;
use tenure::store::{
    StoreError,
    StoreErrorKind::{self, Fatal, Transient},
};

use crate::{link::Source, table::Table};

/// What PostgreSQL, or the driver, said: the source of every [`StoreError`] that one of them caused.
///
#[doc = include_str!("errors.md")]
///
/// ```
/// use std::error::Error;
/// use tenure::StoreError;
/// use tenure_postgres::PostgresError;
///
/// fn is_deadlock(error: &StoreError) -> bool {
///     let cause = error.source().and_then(|source| source.downcast_ref::<PostgresError>());
///     cause.and_then(PostgresError::sqlstate) == Some("40P01")
/// }
/// # assert!(!is_deadlock(&StoreError::transient("of another kind")));
/// ```
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct PostgresError(#[from] sqlx::Error);

impl PostgresError {
    /// The server's [error code], if it was the server that refused.
    ///
    /// [error code]: https://www.postgresql.org/docs/current/errcodes-appendix.html
    #[must_use]
    pub fn sqlstate(&self) -> Option<&str> {
        sqlstate(&self.0)
    }

    /// The driver's error.
    #[must_use]
    pub fn driver(&self) -> &sqlx::Error {
        &self.0
    }
}

/// The first entry with which a code begins is the one for it.
#[rustfmt::skip]
const BY_SQLSTATE: &[(&str, StoreErrorKind, &str)] = &[
    ("08",    Transient, "the connection broke"),
    ("0A",    Fatal,     "the server does not support this; it must be PostgreSQL 13 or newer"),
    ("22003", Fatal,     "a number is out of range: no higher fence is left, or the duration is absurd"),
    ("22",    Fatal,     "the server refuses a value"),
    ("25006", Fatal,     "the database is read-only: connect to the primary, or mend `default_transaction_read_only`. After a \
                          fail-over it passes, since every attempt connects anew"),
    ("25P02", Transient, "the transaction had failed before"),
    ("25",    Transient, "somebody left the connection inside a transaction; it was discarded"),
    ("26",    Transient, "a pooler mixed up prepared statements, of which tenure uses none"),
    ("28P01", Fatal,     "the password is wrong"),
    ("28",    Fatal,     "the server refuses the login: look at the user's name and at pg_hba.conf"),
    ("3D",    Fatal,     "there is no such database: create it, or correct the URL"),
    ("3F",    Fatal,     "the schema is missing: call `ensure_schema()`, or run what `schema_sql()` gives"),
    ("40",    Transient, "it collided with another transaction"),
    ("42501", Fatal,     "the role lacks a privilege: GRANT SELECT, INSERT, UPDATE ON {table}; for `ensure_schema()` also CREATE on its \
                          schema, or run what `schema_sql()` gives as another role"),
    ("42703", Fatal,     "{table} lacks a column: it is not the table that `schema_sql()` describes; choose another one by \
                          `with_table()`"),
    ("42P01", Fatal,     "{table} is missing: call `ensure_schema()`, or run what `schema_sql()` gives"),
    ("42P05", Transient, "a pooler mixed up prepared statements, of which tenure uses none"),
    ("42809", Fatal,     "{table} is not a table"),
    ("42",    Fatal,     "the server does not understand the statement; it must be PostgreSQL 13 or newer"),
    ("53100", Fatal,     "the server's disk is full"),
    ("53300", Transient, "the server, or the role, has no connection left: raise its limit if this lasts"),
    ("53",    Transient, "the server is short of resources"),
    ("54",    Fatal,     "the server refuses a value that is too long for it"),
    ("55P03", Transient, "another transaction is in the way: it holds the term (`hold_term`), or it has locked {table} or the row"),
    ("57014", Transient, "it took longer than the call, or `statement_timeout`, allows, or was cancelled"),
    ("57P03", Transient, "the server takes no connections just now"),
    ("57P04", Fatal,     "the database was dropped"),
    ("57",    Transient, "the server ended the connection"),
    ("XX001", Fatal,     "the server reports damaged data"),
    ("XX002", Fatal,     "the server reports damaged data"),
];

/// Makes a [`StoreError`] of what the driver reported while `attempt` ("renew the lease of ..") was under way.
pub(crate) fn store_error(
    attempt: &str,
    table: &Table,
    source: &Source,
    error: sqlx::Error,
) -> StoreError {
    let (kind, advice) = judge(&error);
    let advice = advice.replace("{table}", table.name()).replace("{server}", &source.server());
    let code = sqlstate(&error).map_or(String::new(), |code| format!(" (SQLSTATE {code})"));
    StoreError::new(kind, format!("could not {attempt}{code}: {advice}"))
        .with_source(PostgresError(error))
}

pub(crate) fn sqlstate(error: &sqlx::Error) -> Option<&str> {
    let error = error.as_database_error()?;
    Some(error.try_downcast_ref::<sqlx::postgres::PgDatabaseError>()?.code())
}

/// Whether the table is not there, or not even its schema.
pub(crate) fn is_missing_table(error: &sqlx::Error) -> bool {
    matches!(sqlstate(error), Some("42P01" | "3F000"))
}

/// Whether a connection that had been idle turned out to be closed, by a restart, a pooler or a time limit. That may be
/// tried again on a fresh one within the same call: nothing that tenure sends does harm if it is executed twice.
pub(crate) fn is_disconnect(error: &sqlx::Error) -> bool {
    match error {
        sqlx::Error::Io(_) => true,
        error => match sqlstate(error) {
            Some("08003" | "08006" | "57P01" | "57P02" | "57P05") => true,
            // A pooler closes the connection after whatever it says itself.
            Some("08P01") => judge(error).0 == Transient,
            _ => false,
        },
    }
}

/// Whether nobody can be told anything, because somebody who listens does not read.
pub(crate) fn is_full_of_notifications(error: &sqlx::Error) -> bool {
    sqlstate(error) == Some("54000")
}

/// Whether a statement that creates something failed because somebody else has just created it: `IF NOT EXISTS` looks
/// before the other one commits.
pub(crate) fn was_created_by_another(error: &sqlx::Error) -> bool {
    matches!(sqlstate(error), Some("23505" | "42P06" | "42P07" | "42710"))
}

fn judge(error: &sqlx::Error) -> (StoreErrorKind, &'static str) {
    match error {
        sqlx::Error::Database(error) => judge_refusal(&**error),
        sqlx::Error::Io(_) => (
            Transient,
            "{server} cannot be reached, or broke off: look at the URL, and whether it runs",
        ),
        sqlx::Error::Tls(_) => {
            (Fatal, "no encrypted connection: look at `sslmode` and the certificates")
        }
        sqlx::Error::PoolTimedOut => (
            Transient,
            "the pool had no connection free: the application holds them all. A store made by `PostgresStore::new` has \
             its own",
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

fn judge_refusal(error: &dyn DatabaseError) -> (StoreErrorKind, &'static str) {
    let code = error.code().unwrap_or_default();
    // PgBouncer has one code for everything that it says itself.
    if code == "08P01" {
        return judge_pooler(error.message());
    }
    BY_SQLSTATE
        .iter()
        .find(|(prefix, ..)| code.starts_with(prefix))
        .map_or((Transient, "the server failed"), |&(_, kind, advice)| (kind, advice))
}

/// The first text that the message contains is the one for it; none passes by itself.
const BY_POOLERS_TEXT: &[(&str, &str)] = &[
    (
        "unsupported startup parameter",
        "the pooler refuses a setting that the connection asks for: leave `options` out of the URL and `PGOPTIONS` out of the \
         environment; in a pool of your own, set `extra_float_digits(None)`",
    ),
    ("no such database", "the pooler does not know the database"),
    ("no such user", "the pooler does not know the user"),
    ("does not exist", "the pooler's server does not know the database or the user"),
    ("authentication failed", "the password is wrong, or the pooler's own is"),
    ("permission denied", "the server refuses the pooler's login"),
    ("not permitted to log in", "the server refuses the pooler's login"),
    ("pg_hba.conf", "the server refuses the pooler's login: look at pg_hba.conf"),
];

fn judge_pooler(message: &str) -> (StoreErrorKind, &'static str) {
    BY_POOLERS_TEXT
        .iter()
        .find(|(text, _)| message.contains(text))
        .map_or((Transient, "the pooler has no server for us just now"), |&(_, advice)| {
            (Fatal, advice)
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Write what this expects into the file, and read it.
    #[test]
    fn the_documents_table_is_that_of_the_code() {
        let passes = |kind| if kind == Fatal { "no" } else { "yes" };
        let codes = BY_SQLSTATE.iter().map(|&(code, kind, advice)| {
            let advice = advice.replace("{table}", "the table");
            format!("| `{code}` | {} | {advice} |\n", passes(kind))
        });
        let texts = BY_POOLERS_TEXT
            .iter()
            .map(|(text, advice)| format!("| `08P01` with \"{text}\" | no | {advice} |\n"));
        let expected: String = codes.chain(texts).collect();
        let documented = include_str!("errors.md");
        assert!(documented.contains(&expected), "expected in errors.md:\n{expected}");
    }

    #[test]
    fn more_particular_codes_stand_before_those_that_include_them() {
        for (at, (code, ..)) in BY_SQLSTATE.iter().enumerate() {
            let first = BY_SQLSTATE.iter().position(|(prefix, ..)| code.starts_with(prefix));
            assert_eq!(first, Some(at), "{code} is never reached");
        }
    }

    #[test]
    fn what_a_pooler_says_is_judged_by_its_words() {
        let kind = |message| judge_pooler(message).0;
        assert_eq!(kind("unsupported startup parameter: extra_float_digits"), Fatal);
        assert_eq!(kind("no such database: app"), Fatal);
        assert_eq!(
            kind("server login has been failing, try again later (server_login_retry)"),
            Transient
        );
        assert_eq!(kind("query_wait_timeout"), Transient);
        assert_eq!(kind("SASL authentication failed"), Fatal);
        assert_eq!(kind("database \"nowhere\" does not exist"), Fatal);
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
