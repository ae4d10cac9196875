//! The way to the server: where connections come from, and what every message begins and ends with.

use std::{sync::Arc, time::Duration};

use sqlx::{
    AssertSqlSafe, ConnectOptions, Connection, MySql, MySqlConnection, MySqlPool,
    mysql::{MySqlConnectOptions, MySqlRow},
    pool::PoolConnection,
};
use tenure::store::Slot;

use crate::error::is_disconnect;

/// The servers know no limit above a year.
const MOST: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// Where connections come from.
#[derive(Clone)]
pub(crate) enum Source {
    /// One for each session, kept between calls.
    Own(Arc<MySqlConnectOptions>),
    /// One for each call, given back after it.
    Pool(MySqlPool),
}

impl Source {
    /// What an error calls the server. Of the URL only what is no secret.
    pub(crate) fn server(&self) -> String {
        match self {
            Self::Own(options) => match options.get_socket() {
                Some(socket) => format!("the server at {}", socket.display()),
                None => format!("the server at {}:{}", options.get_host(), options.get_port()),
            },
            Self::Pool(_) => "the pool's server".to_owned(),
        }
    }
}

/// Statements that are sent together.
pub(crate) struct Message {
    transaction: Transaction,
    statements: Vec<String>,
}

enum Transaction {
    Reading,
    Writing,
    /// It would end a transaction.
    None,
}

impl Message {
    pub(crate) fn look(statement: String) -> Self {
        Self { transaction: Transaction::Reading, statements: vec![statement] }
    }

    pub(crate) fn write(statements: impl IntoIterator<Item = String>) -> Self {
        Self { transaction: Transaction::Writing, statements: statements.into_iter().collect() }
    }

    pub(crate) fn define(statement: String) -> Self {
        Self { transaction: Transaction::None, statements: vec![statement] }
    }

    /// The isolation level is that of the one transaction that follows. To set it fails inside of another transaction, so
    /// that a connection on which a pool's user left one open is noticed: what is written there may never be committed.
    fn text(&self, limits: Limits) -> String {
        let (begin, end) = match self.transaction {
            Transaction::Reading => ("START TRANSACTION READ ONLY; ", COMMIT),
            Transaction::Writing => ("START TRANSACTION READ WRITE; ", COMMIT),
            Transaction::None => return self.statements.join("; "),
        };
        let prefix = limits.of_a_statement();
        let mut text = format!("SET TRANSACTION ISOLATION LEVEL READ COMMITTED; {begin}");
        for statement in &self.statements {
            text.extend([&prefix, statement, "; "]);
        }
        text + end
    }
}

/// Whatever `completion_type` says.
const COMMIT: &str = "COMMIT AND NO CHAIN NO RELEASE";

/// One session's way to the server.
pub(crate) struct Link {
    source: Source,
    slot: Slot<MySqlConnection>,
    limits: Limits,
}

impl Link {
    pub(crate) fn new(source: Source, limits: Limits) -> Self {
        Self { source, slot: Slot::new(), limits }
    }

    /// Has the server give up within this time.
    pub(crate) fn limit(&mut self, limit: Duration) {
        self.limits.call = limit;
        // A connection that is there was told another one.
        self.slot = Slot::new();
    }

    /// Sends one message and reads the whole reply.
    ///
    /// A connection is only used again after that. Whatever happens before, an error or the drop of this future, closes
    /// it: the reply of this message must never be taken for that of the next one, and an error leaves its transaction
    /// open.
    pub(crate) async fn ask(&mut self, message: &Message) -> Result<Vec<MySqlRow>, sqlx::Error> {
        let message: Arc<str> = message.text(self.limits).into();
        let was_idle = matches!(self.source, Source::Pool(_)) || !self.slot.is_empty();
        match self.attempt(message.clone()).await {
            Err(error) if was_idle && is_disconnect(&error) => self.attempt(message).await,
            outcome => outcome,
        }
    }

    pub(crate) fn source(&self) -> &Source {
        &self.source
    }

    /// Says good-bye, where there is somebody to say it to.
    pub(crate) async fn close(mut self) {
        if let Some(connection) = self.slot.take() {
            // It is gone either way.
            let _ = connection.close().await;
        }
    }

    async fn attempt(&mut self, message: Arc<str>) -> Result<Vec<MySqlRow>, sqlx::Error> {
        match &self.source {
            Source::Own(options) => {
                let mut connection = self.slot.take_or(connect(options, self.limits)).await?;
                let rows = exchange(&mut connection, message).await?;
                connection.keep();
                Ok(rows)
            }
            Source::Pool(pool) => {
                let mut borrowed = Borrowed(Some(pool.acquire().await?));
                let rows = exchange(borrowed.connection(), message).await?;
                borrowed.give_back();
                Ok(rows)
            }
        }
    }
}

async fn connect(
    options: &MySqlConnectOptions,
    limits: Limits,
) -> Result<MySqlConnection, sqlx::Error> {
    let mut connection = options.connect().await?;
    exchange(&mut connection, limits.of_a_session().into()).await?;
    Ok(connection)
}

/// To the end of the reply, since that is where the server says whether it could commit.
pub(crate) async fn exchange(
    connection: &mut MySqlConnection,
    message: Arc<str>,
) -> Result<Vec<MySqlRow>, sqlx::Error> {
    sqlx::raw_sql(AssertSqlSafe(message)).fetch_all(connection).await
}

/// How long the server may take. At most two statements of a message ever wait, and both together somewhat less than the
/// call may take, so that the answer still arrives.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    call: Duration,
    /// Whether MariaDB is to be asked for more than MySQL would understand.
    shortcuts: bool,
}

impl Limits {
    pub(crate) fn within(call: Duration) -> Self {
        Self { call, shortcuts: true }
    }

    /// Asks every server for what MySQL understands.
    pub(crate) fn portable(self) -> Self {
        Self { shortcuts: false, ..self }
    }

    fn wait(self) -> Duration {
        // Zero would mean no limit.
        (self.call.min(MOST) * 3 / 8).max(Duration::from_millis(1))
    }

    /// For a connection of one's own: nothing else runs on it. Locks on rows and on tables are waited for in whole
    /// seconds.
    fn of_a_session(self) -> String {
        let seconds = self.wait().as_secs().max(1);
        format!("SET SESSION innodb_lock_wait_timeout = {seconds}, lock_wait_timeout = {seconds}")
    }

    /// MariaDB limits a single statement, whatever it waits for; to MySQL this is a comment. It leaves nothing behind, so
    /// it is also right on a connection of a pool.
    fn of_a_statement(self) -> String {
        if !self.shortcuts {
            return String::new();
        }
        let seconds = self.wait().as_secs_f64();
        format!("/*M!100600 SET STATEMENT max_statement_time = {seconds:.3} FOR */ ")
    }
}

/// A pool's connection for the time of a call. Unless it is given back it is closed, also at a drop at any await point:
/// the pool would wait for the rest of the reply before it lent it to anybody else, or opened another one.
struct Borrowed(Option<PoolConnection<MySql>>);

impl Borrowed {
    fn connection(&mut self) -> &mut MySqlConnection {
        self.0.as_mut().expect("it is there until it is given back")
    }

    fn give_back(mut self) {
        self.0 = None;
    }
}

impl Drop for Borrowed {
    fn drop(&mut self) {
        self.0.take().map(PoolConnection::detach);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_limit_becomes_none() {
        let shortest = Limits::within(Duration::from_nanos(1));
        assert!(shortest.of_a_statement().contains("max_statement_time = 0.001 FOR"));
        assert!(shortest.of_a_session().contains("innodb_lock_wait_timeout = 1,"));
        let longest = Limits::within(Duration::from_secs(u64::MAX / 8));
        assert!(longest.of_a_statement().contains("max_statement_time = 11826000.000 FOR"));
    }

    #[test]
    fn what_mysql_would_not_understand_is_a_comment_to_it() {
        let limits = Limits::within(Duration::from_secs(3));
        let statement = limits.of_a_statement();
        assert!(statement.starts_with("/*M!") && statement.ends_with("*/ "), "{statement}");
        assert_eq!(limits.portable().of_a_statement(), "");
    }
}
