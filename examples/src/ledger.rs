//! A record in PostgreSQL for each job, which only the leader can write: the transaction that writes it holds the term.
//!
//! So a job that was answered with 200 is in the database, and no job of a leader is written once another one has taken
//! over, however late the first one is.

use std::time::Duration;

use axum::response::{IntoResponse, Response};
use clap::Args;
use http::StatusCode;
use tenure::{Term, store::HoldError};
use tenure_postgres::{
    PostgresStore,
    sqlx::{
        self, Connection, PgConnection, PgPool,
        postgres::{PgConnectOptions, PgPoolOptions},
        query, raw_sql,
    },
};

/// How long a job waits for a connection before it is refused.
const CONNECTION_LIMIT: Duration = Duration::from_secs(1);
/// Fewer than a small pooler has, so that the election's own calls always find one.
const CONNECTIONS: u32 = 2;

/// `number` is drawn while the term is held, so numbers rise with the fences.
///
/// The lock is for replicas that start at the same time: `IF NOT EXISTS` alone lets one of them fail.
const CREATE: &str = "
    SELECT pg_advisory_xact_lock(hashtext('jobs'));
    CREATE TABLE IF NOT EXISTS jobs (
        number   bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        id       text NOT NULL UNIQUE,
        fence    bigint NOT NULL,
        identity text NOT NULL
    )";

/// The server does not wait for a replica that hangs in the middle: from the first statement on, even before the hold, which
/// would see to that as well.
const BEGIN: &str = "BEGIN; SET LOCAL idle_in_transaction_session_timeout = '2s'";

/// Where jobs are written.
#[derive(Args, Clone, Debug)]
#[non_exhaustive]
pub struct LedgerArgs {
    /// Writes a record for each job to the table `jobs` of this database, `postgres://…`, which must be the one that keeps the
    /// lease; `POST /jobs?id=ID` then names the job, and is answered when the record is committed.
    #[arg(long = "ledger", value_name = "URL")]
    pub url: Option<String>,
}

/// The table, and how to reach it.
#[derive(Clone, Debug)]
pub struct Ledger {
    pool: PgPool,
    store: PostgresStore,
}

/// Why there is no record, or may be none.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LedgerError {
    /// The URL is none of PostgreSQL's.
    #[error("the ledger cannot be reached at this URL (--ledger)")]
    Url(#[source] sqlx::Error),
    /// The table is not there, and cannot be created.
    #[error("the ledger's table cannot be created")]
    Create(#[source] sqlx::Error),
    /// Nobody said which job it is.
    #[error("which job is it? POST /jobs?id=ID")]
    NoId,
    /// There is a record of that name.
    #[error("there is a job of this name")]
    Exists,
    /// The term could not be held, so nothing was written.
    #[error("nothing was written: the term could not be held")]
    NotHeld(#[from] HoldError),
    /// Something failed before the commit, so nothing was written.
    #[error("nothing was written")]
    NotWritten(#[source] sqlx::Error),
    /// The commit was sent, and its outcome was not heard of.
    #[error("it is unknown whether the job was written")]
    Unknown(#[source] sqlx::Error),
}

impl LedgerArgs {
    /// The ledger that is asked for, if one is.
    ///
    /// # Errors
    /// [`LedgerError`] if it cannot be reached.
    pub async fn open(&self) -> Result<Option<Ledger>, LedgerError> {
        match &self.url {
            Some(url) => Ledger::open(url).await.map(Some),
            None => Ok(None),
        }
    }
}

impl Ledger {
    async fn open(url: &str) -> Result<Self, LedgerError> {
        let options: PgConnectOptions = url.parse().map_err(LedgerError::Url)?;
        // A pooler knows neither this setting nor the statements that are prepared on one of its connections.
        let options = options.extra_float_digits(None).statement_cache_capacity(0);
        // Not from the pool, whose patience is that of a job.
        create(&options).await.map_err(LedgerError::Create)?;
        let pool = PgPoolOptions::new()
            .max_connections(CONNECTIONS)
            .acquire_timeout(CONNECTION_LIMIT)
            .connect_lazy_with(options);
        Ok(Self { store: PostgresStore::from_pool(pool.clone()), pool })
    }

    /// Writes a record of the job `id`, under the fence of this term.
    ///
    /// # Errors
    /// [`LedgerError`]: after `Unknown` there may be a record, after all others there is none.
    ///
    /// # Cancel safety
    /// Dropped, it has written the record or not.
    pub async fn write(&self, term: &Term, id: Option<&str>) -> Result<(), LedgerError> {
        let id = id.ok_or(LedgerError::NoId)?;
        let mut transaction = self.pool.begin_with(BEGIN).await.map_err(LedgerError::NotWritten)?;
        // From here to the end of the transaction nobody takes over.
        self.store.hold_term(&mut transaction, term).await?;
        query("INSERT INTO jobs (id, fence, identity) VALUES ($1, $2, $3)")
            .persistent(false)
            .bind(id)
            .bind(i64::from(term.fence()))
            .bind(term.identity().as_str())
            .execute(&mut *transaction)
            .await
            .map_err(LedgerError::from_insert)?;
        transaction.commit().await.map_err(LedgerError::Unknown)
    }
}

async fn create(options: &PgConnectOptions) -> Result<(), sqlx::Error> {
    let mut connection = PgConnection::connect_with(options).await?;
    raw_sql(CREATE).execute(&mut connection).await?;
    connection.close().await
}

impl LedgerError {
    fn from_insert(error: sqlx::Error) -> Self {
        match error.as_database_error() {
            Some(database) if database.is_unique_violation() => Self::Exists,
            _ => Self::NotWritten(error),
        }
    }

    /// What a client is answered. After 500 the job may be there; after the others it is not.
    #[must_use]
    pub fn status(&self) -> StatusCode {
        match self {
            Self::NoId => StatusCode::BAD_REQUEST,
            Self::Exists
            | Self::NotHeld(
                HoldError::Ended(_) | HoldError::NotCurrent { .. } | HoldError::NotInTransaction,
            ) => StatusCode::CONFLICT,
            Self::NotHeld(_) | Self::NotWritten(_) => StatusCode::SERVICE_UNAVAILABLE,
            Self::Url(_) | Self::Create(_) | Self::Unknown(_) => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }
}

impl IntoResponse for LedgerError {
    fn into_response(self) -> Response {
        (self.status(), self.to_string()).into_response()
    }
}

impl actix_web::ResponseError for LedgerError {
    fn status_code(&self) -> actix_web::http::StatusCode {
        // The same number of another version of the same crate.
        actix_web::http::StatusCode::from_u16(self.status().as_u16())
            .unwrap_or(actix_web::http::StatusCode::INTERNAL_SERVER_ERROR)
    }
}
