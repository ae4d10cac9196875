//! One replica of an HTTP service with routes that only the leader serves.

use std::{convert::Infallible, io, net::SocketAddr, time::Duration};

use axum::{
    Extension, Json, Router,
    body::Body,
    extract::Query,
    routing::{get, post},
};
use bytes::Bytes;
use futures::stream;
use serde::{Deserialize, Serialize};
use tenure::{Leadership, StoreError, Term};
use tenure_config::ElectionConfigError;
use tenure_tower::LeaderOnlyLayer;
use tokio::{net::TcpListener, sync::oneshot, time};

use crate::{
    args::{ArgsError, ReplicaArgs},
    ledger::{Ledger, LedgerArgs, LedgerError},
    signals::StopSignal,
};

/// How long connections may take to finish once the lease is released: their requests are answered by then.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);
const STREAM_INTERVAL: Duration = Duration::from_millis(100);

/// Why a replica could not start, or did not stop cleanly.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReplicaError {
    /// The address is taken, or not one of this machine.
    #[error("could not listen on {address}; choose another address with --listen")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// What the system said.
        source: io::Error,
    },
    /// Signals cannot be handled, or the server failed.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The flags, or the file that they name, give no election.
    #[error(transparent)]
    Args(#[from] ArgsError),
    /// They contradict each other.
    #[error(transparent)]
    Config(#[from] ElectionConfigError),
    /// The database cannot be reached, or refuses the schema.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The ledger cannot be reached.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// Work did not stop, so the lease was left to run out.
    #[error(transparent)]
    Stop(#[from] tenure::StopError),
}

/// What the leader answers: who did the work, and in which term.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Answer {
    /// The candidate that leads.
    pub identity: String,
    /// The term in which the work was done.
    pub fence: i64,
}

impl Answer {
    fn of(term: &Term) -> Self {
        Self { identity: term.identity().to_string(), fence: term.fence().into() }
    }
}

/// Serves [`app`]; if there is a ledger, jobs are written there.
///
/// # Errors
/// As [`serve`].
pub async fn run(args: &ReplicaArgs, ledger: &LedgerArgs) -> Result<(), ReplicaError> {
    let ledger = ledger.open().await?;
    serve(args, |leadership| match ledger {
        Some(ledger) => app(leadership).layer(Extension(ledger)),
        None => app(leadership),
    })
    .await
}

/// Serves until SIGTERM or SIGINT, then hands over: requests in flight are finished, the lease is released, connections
/// are closed. The first line on stdout is `listening on URL as IDENTITY`.
///
/// # Errors
/// [`ReplicaError`] if it cannot start, or if work would not stop.
pub async fn serve(
    args: &ReplicaArgs,
    app: impl FnOnce(&Leadership) -> Router,
) -> Result<(), ReplicaError> {
    let mut stop = StopSignal::listen()?;
    let mut config = args.election.to_config("example", "memory:")?;
    let store = config.store()?;
    tokio::select! {
        created = store.ensure_schema() => created?,
        () = stop.received() => return Ok(()),
    }
    let listener = TcpListener::bind(args.listen)
        .await
        .map_err(|source| ReplicaError::Listen { address: args.listen, source })?;
    let url = format!("http://{}", listener.local_addr()?);
    config.payload = args.payload.clone().or(config.payload).or_else(|| Some(url.clone()));
    let elector = config.elector(store)?;
    let leadership = elector.leadership();

    let candidacy = elector.spawn();
    let (close, closing) = oneshot::channel::<()>();
    let server = axum::serve(listener, app(&leadership)).with_graceful_shutdown(async {
        // An error means that the sender is gone: the same.
        let _ = closing.await;
    });
    let server = tokio::spawn(server.into_future());
    println!("listening on {url} as {}", leadership.identity());

    stop.received().await;
    // The server goes on meanwhile, so that requests in flight are answered and new ones refused.
    candidacy.shutdown().await?;
    drop(close);
    tokio::select! {
        _ = server => {}
        () = time::sleep(CLOSE_TIMEOUT) => {}
    }
    Ok(())
}

/// The service: three routes for the leader only, and what every replica answers.
pub fn app(leadership: &Leadership) -> Router {
    jobs()
        .route_layer(LeaderOnlyLayer::new(leadership.clone()).advertise_leader())
        .route("/", get(async || "POST /jobs is for the leader; GET /leadership says who leads\n"))
        .merge(tenure_axum::routes(leadership.clone()))
}

/// What the leader does.
pub(crate) fn jobs() -> Router {
    Router::new()
        .route("/jobs", post(create_job))
        .route("/slow", get(slow))
        .route("/stream", get(stream))
}

/// A job to do.
#[derive(Deserialize)]
struct NewJob {
    /// How it is called in the ledger.
    id: Option<String>,
}

async fn create_job(
    Extension(term): Extension<Term>,
    ledger: Option<Extension<Ledger>>,
    Query(job): Query<NewJob>,
) -> Result<Json<Answer>, LedgerError> {
    if let Some(Extension(ledger)) = ledger {
        ledger.write(&term, job.id.as_deref()).await?;
    }
    Ok(Json(Answer::of(&term)))
}

/// How long a request is to take.
#[derive(Deserialize)]
struct Takes {
    ms: u64,
}

async fn slow(Extension(term): Extension<Term>, Query(takes): Query<Takes>) -> Json<Answer> {
    time::sleep(Duration::from_millis(takes.ms)).await;
    Json(Answer::of(&term))
}

/// One line of JSON each 100 ms. The request stays in flight until the last one is sent.
async fn stream(Extension(term): Extension<Term>, Query(takes): Query<Takes>) -> Body {
    let lines = takes.ms / STREAM_INTERVAL.as_millis() as u64;
    let ticks = time::interval(STREAM_INTERVAL);
    let lines = stream::unfold((ticks, lines), move |(mut ticks, left)| {
        let line = format!("{}\n", serde_json::json!(Answer::of(&term)));
        async move {
            let left = left.checked_sub(1)?;
            ticks.tick().await;
            Some((Ok::<_, Infallible>(Bytes::from(line)), (ticks, left)))
        }
    });
    Body::from_stream(lines)
}
