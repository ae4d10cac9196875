//! Which failures pass by themselves, and what to do about those that don't.

use std::{fs, io, path::Path};

use tenure::store::{StoreError, StoreErrorKind};

use crate::{link::Source, setup::File, table::Table};

/// What SQLite, or the driver, said: the source of every [`StoreError`] that one of them caused.
///
/// What its [codes](Self::code) count as; those marked with a star were each produced for real in the tests of this crate:
///
/// | code | passes by itself | what it means |
/// |---|---|---|
/// | 1 ERROR* | no | the table is missing, is another one, or the statement is refused; for a renewal a missing table is proof that the term is over |
/// | 3 PERM | no | the file may not be used |
/// | 4 ABORT, 9 INTERRUPT, 17 SCHEMA | yes | the statement was broken off |
/// | 5 BUSY*, 6 LOCKED | yes | a transaction of another connection was writing, or holding a term, for longer than the call could wait |
/// | 517 BUSY_SNAPSHOT* | yes | in a transaction of yours: it reads from what is not the newest any more; repeat it |
/// | 7 NOMEM | yes | no memory was left |
/// | 8 READONLY* | no | the file, its directory or the connection is read-only |
/// | 10 IOERR* | yes | the system refused to read or write |
/// | 11 CORRUPT* | no | the file is damaged |
/// | 13 FULL* | no | the disk is full |
/// | 14 CANTOPEN* | no | the directory or the file is missing, is something else, or may not be opened; for a renewal a file that is gone is proof that the term is over |
/// | 15 PROTOCOL | yes | the file's locks were held for too long |
/// | 22 NOLFS, 23 AUTH, 24 FORMAT | no | as they say |
/// | 26 NOTADB* | no | the file is not a SQLite database, or is encrypted |
/// | any other | no | a mistake of tenure's |
///
/// Without a code: a pool that has no connection free*, or whose connection has a transaction left open*, passes; a pool that is
/// closed* and a record that tenure did not write* do not.
///
/// ```
/// use std::error::Error;
/// use tenure::StoreError;
/// use tenure_sqlite::SqliteError;
///
/// const SQLITE_FULL: i32 = 13;
///
/// fn is_disk_full(error: &StoreError) -> bool {
///     let cause = error.source().and_then(|source| source.downcast_ref::<SqliteError>());
///     cause.and_then(SqliteError::code) == Some(SQLITE_FULL)
/// }
/// # assert!(!is_disk_full(&StoreError::transient("of another kind")));
/// ```
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct SqliteError(#[from] sqlx::Error);

impl SqliteError {
    /// The [extended result code], if it was SQLite that refused. Its lowest byte is the primary one.
    ///
    /// [extended result code]: https://www.sqlite.org/rescode.html
    #[must_use]
    pub fn code(&self) -> Option<i32> {
        code(&self.0)
    }

    /// The driver's error.
    #[must_use]
    pub fn driver(&self) -> &sqlx::Error {
        &self.0
    }
}

use StoreErrorKind::{Fatal, Transient};

const ERROR: i32 = 1;
const BUSY: i32 = 5;
const LOCKED: i32 = 6;
const CANTOPEN: i32 = 14;
const BUSY_SNAPSHOT: i32 = 517;

/// By extended result code, where that says more than the primary one.
const BY_EXTENDED_CODE: &[(i32, StoreErrorKind, &str)] = &[(
    BUSY_SNAPSHOT,
    Transient,
    "somebody has written to {file} since this transaction first read from it: roll back, and repeat it",
)];

/// By primary result code. Those that are missing here mean an error in tenure, or memory that is damaged.
#[rustfmt::skip]
const BY_CODE: &[(i32, StoreErrorKind, &str)] = &[
    (3,      Fatal,     "{file} may not be used by this process: look at its permissions"),
    (4,      Transient, "SQLite broke off"),
    (BUSY,   Transient, "a transaction of another connection was writing to {file}, or holding a term, all the time that the call could wait"),
    (LOCKED, Transient, "a transaction of another connection was writing to {file}, or holding a term, all the time that the call could wait"),
    (7,      Transient, "SQLite had no memory left"),
    (8,      Fatal,     "{file} is read-only for this process: it must be allowed to write to the file and to its directory"),
    (9,      Transient, "SQLite was interrupted"),
    (10,     Transient, "{file} could not be read or written: look at the disk if this lasts"),
    (11,     Fatal,     "{file} is damaged: restore it from a backup"),
    (13,     Fatal,     "the disk that holds {file} is full"),
    (15,     Transient, "another connection held the file's locks; if this lasts, {file} does not lie on a local file system"),
    (17,     Transient, "the schema was changed at that moment"),
    (22,     Fatal,     "the file system does not support files as large as {file}"),
    (23,     Fatal,     "SQLite was forbidden to do this"),
    (24,     Fatal,     "{file} has a format that this SQLite does not know"),
    (26,     Fatal,     "{file} is not a SQLite database, or is encrypted: name another file"),
];

/// Makes a [`StoreError`] of what the driver reported while `attempt` ("renew the lease of ..") was under way.
pub(crate) fn store_error(
    attempt: &str,
    table: &Table,
    source: &Source,
    error: sqlx::Error,
) -> StoreError {
    let (kind, advice) = judge(&error, source);
    let file = match source {
        Source::File(file) => file.path.display().to_string(),
        Source::Pool(_) => "the pool's database".to_owned(),
    };
    let table = format!("the table {:?}", table.name());
    let advice = advice.replace("{file}", &file).replace("{table}", &table);
    let code = code(&error).map_or(String::new(), |code| format!(" (SQLite's code {code})"));
    StoreError::new(kind, format!("could not {attempt}{code}: {advice}"))
        .with_source(SqliteError(error))
}

/// Whether another connection was in the way, which passes.
pub(crate) fn is_busy(error: &sqlx::Error) -> bool {
    matches!(primary_code(error), Some(BUSY | LOCKED))
}

/// Whether somebody left a transaction open on the connection.
pub(crate) fn is_open_transaction(error: &sqlx::Error) -> bool {
    says(error, "within a transaction")
}

/// Whether the table is not there.
pub(crate) fn is_missing_table(error: &sqlx::Error) -> bool {
    says(error, "no such table")
}

/// Whether the record is gone for certain: with its table, or with the whole file.
pub(crate) fn is_gone(error: &sqlx::Error, source: &Source) -> bool {
    let is_file_gone = |file: &File| matches!(file.path.try_exists(), Ok(false));
    match source {
        Source::File(file) if primary_code(error) == Some(CANTOPEN) => is_file_gone(file),
        _ => is_missing_table(error),
    }
}

fn judge(error: &sqlx::Error, source: &Source) -> (StoreErrorKind, String) {
    let (kind, advice) = match error {
        sqlx::Error::Database(_) if is_missing_table(error) => {
            (Fatal, "{table} is missing: call `ensure_schema()`, or run what `schema_sql()` gives")
        }
        sqlx::Error::Database(_) if is_open_transaction(error) => (
            Transient,
            "the pool gave out a connection with an open transaction, which was rolled back",
        ),
        sqlx::Error::Database(_) => match (primary_code(error), source) {
            (Some(CANTOPEN), Source::File(file)) => return (Fatal, why_not_open(file)),
            (Some(CANTOPEN), Source::Pool(_)) => (Fatal, "{file} cannot be opened"),
            (Some(ERROR), _) if says(error, "no such column") => (
                Fatal,
                "{table} lacks a column: it is not the table that `schema_sql()` describes; choose another one by \
                 `with_table()`",
            ),
            (primary, _) => by_code(BY_EXTENDED_CODE, code(error))
                .or_else(|| by_code(BY_CODE, primary))
                .unwrap_or((Fatal, "SQLite refuses the statement")),
        },
        sqlx::Error::PoolTimedOut => (
            Transient,
            "the pool had no connection free: the application holds them all. A store made by `SqliteStore::new` has its \
             own",
        ),
        sqlx::Error::PoolClosed => (Fatal, "the pool was closed"),
        sqlx::Error::ColumnNotFound(_)
        | sqlx::Error::ColumnDecode { .. }
        | sqlx::Error::Decode(_) => (
            Fatal,
            "{table} holds what tenure did not write; choose another table by `with_table()`",
        ),
        _ => (Transient, "the thread on which SQLite works failed"),
    };
    (kind, advice.to_owned())
}

fn by_code(
    table: &[(i32, StoreErrorKind, &'static str)],
    code: Option<i32>,
) -> Option<(StoreErrorKind, &'static str)> {
    let found = table.iter().find(|(known, ..)| Some(*known) == code);
    found.map(|&(_, kind, advice)| (kind, advice))
}

/// SQLite says no more than that it could not.
fn why_not_open(file: &File) -> String {
    let directory = file.directory();
    let found = |path: &Path| match fs::metadata(path) {
        Ok(metadata) => Ok(Some(metadata)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    };
    match (found(directory), found(&file.path)) {
        (Ok(None), _) => format!("the directory {} does not exist: create it", directory.display()),
        (_, Ok(Some(metadata))) if metadata.is_dir() => {
            "{file} is a directory: name a file in it".to_owned()
        }
        (_, Ok(None)) => format!(
            "there is no {{file}}: call `ensure_schema()`, which creates it unless the URL says `mode=rw`. This process \
             must be allowed to create files in {}",
            directory.display()
        ),
        (_, Ok(Some(_))) => "{file} may not be opened by this process: it must be allowed to write to the file and to \
                             its directory"
            .to_owned(),
        (_, Err(error)) => format!("{{file}} cannot be reached: {error}"),
    }
}

fn says(error: &sqlx::Error, words: &str) -> bool {
    primary_code(error) == Some(ERROR)
        && error.as_database_error().is_some_and(|error| error.message().contains(words))
}

fn code(error: &sqlx::Error) -> Option<i32> {
    error.as_database_error()?.code()?.parse().ok()
}

fn primary_code(error: &sqlx::Error) -> Option<i32> {
    code(error).map(|code| code & 0xff)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_passes_is_told_from_what_someone_must_mend() {
        let file = Source::File(File::from_url("/leases.db").unwrap().into());
        let judged = [
            (sqlx::Error::WorkerCrashed, Transient),
            (sqlx::Error::PoolTimedOut, Transient),
            (sqlx::Error::PoolClosed, Fatal),
            (sqlx::Error::ColumnNotFound("fence".into()), Fatal),
            (sqlx::Error::Decode("no".into()), Fatal),
        ];
        for (error, expected) in judged {
            assert_eq!(judge(&error, &file).0, expected, "{error}");
        }
    }

    #[test]
    fn every_code_is_listed_once() {
        assert!(BY_CODE.is_sorted_by(|(one, ..), (next, ..)| one < next));
    }
}
