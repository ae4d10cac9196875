//! The way to the database: where connections come from, and what becomes of them.

use std::{fs, path::Path, sync::Arc, time::Duration};

use sqlx::{
    ConnectOptions, Connection, SqliteConnection, SqlitePool,
    sqlite::{SqliteConnectOptions, SqliteRow},
};
use tenure::store::Slot;

use crate::{error::is_open_transaction, setup::File, table::Statement};

/// Where connections come from.
#[derive(Clone)]
pub(crate) enum Source {
    /// One for each session, kept between calls.
    File(Arc<File>),
    /// One for each call, given back after it.
    Pool(SqlitePool),
}

/// One session's way to the database.
pub(crate) struct Link {
    source: Source,
    slot: Slot<Opened>,
    /// How long SQLite waits for other writers.
    patience: Duration,
    create: bool,
}

/// A connection, and the file that it was opened on: the path may lead to another one in the meantime.
struct Opened {
    connection: SqliteConnection,
    file: Option<FileId>,
}

impl Link {
    /// To a database that is there already.
    pub(crate) fn new(source: Source, limit: Duration) -> Self {
        Self { source, slot: Slot::new(), patience: patience(limit), create: false }
    }

    /// To a database that is created, if the URL permits it.
    pub(crate) fn creating(source: Source, limit: Duration) -> Self {
        let create = matches!(&source, Source::File(file) if file.create);
        Self { create, ..Self::new(source, limit) }
    }

    /// Has SQLite give up within this time. A connection of the application's pool keeps its own settings.
    pub(crate) fn limit(&mut self, limit: Duration) {
        self.patience = patience(limit);
    }

    /// Executes one statement and reads all of its rows.
    ///
    /// An own connection is used again only after that. The thread on which SQLite works finishes a statement that was
    /// abandoned, whenever it gets the lock, so a dropped call leaves that connection to it.
    pub(crate) async fn ask(
        &mut self,
        statement: Statement<'_>,
    ) -> Result<Vec<SqliteRow>, sqlx::Error> {
        match &self.source {
            Source::Pool(pool) => in_transaction(&mut *pool.acquire().await?, statement).await,
            Source::File(file) => {
                let found = FileId::of(&file.path);
                // What is written to a file that was replaced or deleted, nobody else would ever see.
                self.slot.retain(|opened| opened.file == found);
                let open = open(file, self.create, self.patience, found);
                let mut opened = self.slot.take_or(open).await?;
                let rows = statement.fetch_all(&mut opened.connection).await?;
                opened.keep();
                Ok(rows)
            }
        }
    }

    /// Waits until the connection is closed, and its thread with it.
    pub(crate) async fn close(mut self) {
        if let Some(opened) = self.slot.take() {
            // It is gone either way.
            let _ = opened.connection.close().await;
        }
    }
}

/// In a transaction of its own, which can't be begun on a connection on which somebody left one open: what is written in
/// that one may never be committed, and nobody else would see it. Dropped, it is rolled back.
async fn in_transaction(
    connection: &mut SqliteConnection,
    statement: Statement<'_>,
) -> Result<Vec<SqliteRow>, sqlx::Error> {
    let error = match connection.begin().await {
        Ok(mut transaction) => {
            let rows = statement.fetch_all(&mut *transaction).await?;
            transaction.commit().await?;
            return Ok(rows);
        }
        Err(error) => error,
    };
    if is_open_transaction(&error) {
        // Whoever began it has given the connection back, and can't commit it any more.
        sqlx::raw_sql("ROLLBACK").execute(connection).await?;
    }
    Err(error)
}

async fn open(
    file: &File,
    create: bool,
    patience: Duration,
    found: Option<FileId>,
) -> Result<Opened, sqlx::Error> {
    // As every statement commits by itself, and records must outlive the machine's power, SQLite's default of
    // `synchronous = FULL` stays.
    let options = SqliteConnectOptions::new()
        .filename(&file.path)
        .create_if_missing(create)
        .busy_timeout(patience)
        // At debug level each statement would be in the log. tenure has its own events.
        .disable_statement_logging();
    let connection = options.connect().await?;
    // A file that was only created by opening it is seen as another one at the next call, once.
    Ok(Opened { connection, file: found })
}

/// Somewhat less than the call may take, so that its caller learns what it waited for.
fn patience(limit: Duration) -> Duration {
    limit * 3 / 4
}

/// Which file a path leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FileId {
    #[cfg(unix)]
    device: u64,
    #[cfg(unix)]
    inode: u64,
}

impl FileId {
    #[cfg(unix)]
    fn of(path: &Path) -> Option<Self> {
        use std::os::unix::fs::MetadataExt;

        let metadata = fs::metadata(path).ok()?;
        Some(Self { device: metadata.dev(), inode: metadata.ino() })
    }

    /// A file that is open can not be replaced here.
    #[cfg(not(unix))]
    fn of(path: &Path) -> Option<Self> {
        fs::metadata(path).ok().map(|_| Self {})
    }
}
