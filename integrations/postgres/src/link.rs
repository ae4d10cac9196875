//! The way to the server: where connections come from, and what every message begins with.

use std::{sync::Arc, time::Duration};

use sqlx::{
    AssertSqlSafe, ConnectOptions, Connection, PgConnection, PgPool, Postgres, Row,
    pool::PoolConnection,
    postgres::{PgConnectOptions, PgRow},
};
use tenure::{
    Clock, Instant,
    store::{Slot, within},
};

use crate::{error::is_disconnect, jitter::shortened};

/// Where connections come from.
#[derive(Clone)]
pub(crate) enum Source {
    /// One for each session, kept between calls for as long as that.
    Own(Arc<PgConnectOptions>, Duration),
    /// One for each call, given back after it.
    Pool(PgPool),
}

impl Source {
    /// What an error calls the server. Of the URL only what is no secret.
    pub(crate) fn server(&self) -> String {
        match self {
            Self::Own(options, _) => server(options),
            Self::Pool(_) => "the pool's server".to_owned(),
        }
    }
}

/// What an error calls the server that these options lead to.
pub(crate) fn server(options: &PgConnectOptions) -> String {
    format!("the server at {}:{}", options.get_host(), options.get_port())
}

/// One session's way to the server.
pub(crate) struct Link {
    source: Source,
    slot: Slot<OwnConnection>,
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
        if let Some(own) = self.slot.take() {
            // It is gone either way.
            let _ = own.connection.close().await;
        }
    }

    async fn attempt(&mut self, message: Arc<str>) -> Result<Vec<PgRow>, sqlx::Error> {
        match &self.source {
            Source::Own(options, max_age) => {
                let kept = self.slot.take();
                let fresh = OwnConnection::young(kept, options, *max_age, self.limits.replacement);
                let mut own = self.slot.take_or(fresh).await?;
                let rows = exchange(&mut own.connection, message).await?;
                own.keep();
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

/// After a new connection could not be made in place of an old one, at most. Not at every call: it takes its time.
const BEFORE_NEXT_REPLACEMENT: Duration = Duration::from_secs(60);

/// A session's own connection.
struct OwnConnection {
    connection: PgConnection,
    old_at: Instant,
}

impl OwnConnection {
    /// The one that was kept, unless it is too old: servers are to be able to drain, and what a connection has piled up
    /// on the server is to go. The old one is only given up for a new one that is there within `patience`, since the server
    /// may have none left, or not be reached any more in the way in which it was.
    async fn young(
        kept: Option<Self>,
        options: &PgConnectOptions,
        max_age: Duration,
        patience: Duration,
    ) -> Result<Self, sqlx::Error> {
        let now = Clock::system().now();
        let mut old = match kept {
            None => return Self::fresh(options, max_age).await,
            Some(young) if now < young.old_at => return Ok(young),
            Some(old) => old,
        };
        if let Some(Ok(fresh)) = within(patience, Self::fresh(options, max_age)).await {
            let _ = old.connection.close().await;
            return Ok(fresh);
        }
        old.old_at = now + shortened(max_age.min(BEFORE_NEXT_REPLACEMENT));
        Ok(old)
    }

    async fn fresh(options: &PgConnectOptions, max_age: Duration) -> Result<Self, sqlx::Error> {
        let connection = options.connect().await?;
        Ok(Self { connection, old_at: Clock::system().now() + shortened(max_age) })
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

/// How long the server may take: somewhat less than the call, so that its answer still arrives, also if a connection was to
/// be replaced before. To have waited for a lock is worth knowing, so that ends earlier still.
#[derive(Clone, Copy, Debug)]
struct Limits {
    replacement: Duration,
    statement: Duration,
    lock: Duration,
}

impl Limits {
    fn within(limit: Duration) -> Self {
        Self { replacement: limit / 8, statement: limit * 3 / 4, lock: limit / 2 }
    }

    /// Those of the server last as long as the message: it is one transaction, and nothing is left behind for whoever is given the
    /// server's connection next. A stricter limit of the user's own, in the URL or of the role, is left as it is; the
    /// query that sets the others gives no row. A role may have another isolation level as its default, under which a
    /// renewal would fail because of a renewal.
    fn preamble(self) -> String {
        let limit = |name: &str, limit: Duration| {
            let ms = limit_ms(limit).to_string();
            let is_within = is_within(name, &ms);
            format!(
                "CASE WHEN {is_within} THEN false ELSE set_config({name}, '{ms}', true) IS NULL END"
            )
        };
        format!(
            "SET TRANSACTION ISOLATION LEVEL READ COMMITTED; SELECT WHERE {} OR {}; ",
            limit("'statement_timeout'", self.statement),
            limit("'lock_timeout'", self.lock),
        )
    }
}

/// As a setting of PostgreSQL's, for which zero would mean no limit, and which knows none above that of its integer.
pub(crate) fn limit_ms(limit: Duration) -> u32 {
    u32::try_from(limit.as_millis().clamp(1, 2_147_483_647)).expect("it was just made to fit")
}

/// SQL that tells whether a time limit is set and not above `ms`.
pub(crate) fn is_within(name: &str, ms: &str) -> String {
    let unit = "interval '1 millisecond'";
    format!("current_setting({name})::interval BETWEEN {unit} AND {ms} * {unit}")
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
        assert!(shortest.contains("('statement_timeout', '1', true)"));
        let longest = Limits::within(Duration::from_secs(u64::MAX / 8)).preamble();
        assert!(longest.contains("('statement_timeout', '2147483647', true)"));
    }
}
