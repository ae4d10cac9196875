//! The way to the server: where connections come from, and what every message begins with.

use std::{sync::Arc, time::Duration};

use sqlx::{
    AssertSqlSafe, ConnectOptions, Connection, PgConnection, PgPool, Postgres, Row,
    pool::PoolConnection,
    postgres::{PgConnectOptions, PgRow},
};
use tenure::store::Slot;

use crate::error::is_disconnect;

/// Where connections come from.
#[derive(Clone)]
pub(crate) enum Source {
    /// One for each session, kept between calls.
    Own(Arc<PgConnectOptions>),
    /// One for each call, given back after it.
    Pool(PgPool),
}

impl Source {
    /// What an error calls the server. Of the URL only what is no secret.
    pub(crate) fn server(&self) -> String {
        match self {
            Self::Own(options) => {
                format!("the server at {}:{}", options.get_host(), options.get_port())
            }
            Self::Pool(_) => "the pool's server".to_owned(),
        }
    }
}

/// One session's way to the server.
pub(crate) struct Link {
    source: Source,
    slot: Slot<PgConnection>,
    limits: Limits,
}

impl Link {
    pub(crate) fn new(source: Source, limit: Duration) -> Self {
        Self { source, slot: Slot::new(), limits: Limits::within(limit) }
    }

    /// Has the server give up within this time.
    pub(crate) fn limit(&mut self, limit: Duration) {
        self.limits = Limits::within(limit);
    }

    /// Sends one message and reads the whole reply.
    ///
    /// A connection is only used again after that. Whatever happens before, an error or the drop of this future, closes
    /// it: the reply of this message must never be taken for that of the next one.
    pub(crate) async fn ask(&mut self, statement: &str) -> Result<Vec<PgRow>, sqlx::Error> {
        let message: Arc<str> = format!("{}{statement}", self.limits.preamble()).into();
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

    async fn attempt(&mut self, message: Arc<str>) -> Result<Vec<PgRow>, sqlx::Error> {
        match &self.source {
            Source::Own(options) => {
                let mut connection = self.slot.take_or(options.connect()).await?;
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

/// To the end of the reply, since that is where the server says whether it could commit.
async fn exchange(
    connection: &mut PgConnection,
    message: Arc<str>,
) -> Result<Vec<PgRow>, sqlx::Error> {
    let rows: Vec<PgRow> = sqlx::raw_sql(AssertSqlSafe(message)).fetch_all(connection).await?;
    if let Some(row) = rows.first()
        && !row.try_get::<bool, _>("own_transaction")?
    {
        let open = "the pool gave out a connection with an open transaction";
        return Err(sqlx::Error::Protocol(open.to_owned()));
    }
    Ok(rows)
}

/// How long the server may take: somewhat less than the call, so that its answer still arrives. To have waited for a
/// lock is worth knowing, so that ends earlier still.
#[derive(Clone, Copy, Debug)]
struct Limits {
    statement: Duration,
    lock: Duration,
}

impl Limits {
    fn within(limit: Duration) -> Self {
        Self { statement: limit * 3 / 4, lock: limit / 2 }
    }

    /// Both last as long as the message: it is one transaction, and nothing is left behind for whoever is given the
    /// server's connection next. A role may have another isolation level as its default, under which a renewal would
    /// fail because of a renewal.
    fn preamble(self) -> String {
        // Zero would mean no limit, and PostgreSQL knows none above that of its integer.
        let ms = |limit: Duration| limit.as_millis().clamp(1, 2_147_483_647);
        format!(
            "SET TRANSACTION ISOLATION LEVEL READ COMMITTED; \
             SET LOCAL statement_timeout = {}; SET LOCAL lock_timeout = {}; ",
            ms(self.statement),
            ms(self.lock)
        )
    }
}

/// A pool's connection for the time of a call. Unless it is given back it is closed, also at a drop at any await point:
/// the pool would wait for the rest of the reply before it lent it to anybody else, or opened another one.
struct Borrowed(Option<PoolConnection<Postgres>>);

impl Borrowed {
    fn connection(&mut self) -> &mut PgConnection {
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
        let shortest = Limits::within(Duration::from_nanos(1)).preamble();
        assert!(shortest.contains("statement_timeout = 1; SET LOCAL lock_timeout = 1;"));
        let longest = Limits::within(Duration::from_secs(u64::MAX / 8)).preamble();
        assert!(longest.contains("statement_timeout = 2147483647;"));
    }
}
