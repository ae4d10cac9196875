//! One replica of an actix-web service, with an actor that exists only on the leader.

use std::{
    net::{SocketAddr, TcpListener},
    time::Duration,
};

use actix::{Actor, Context, Handler, Message, ResponseFuture};
use actix_web::{
    App, Error, HttpServer,
    error::{ErrorGatewayTimeout, ErrorServiceUnavailable},
    web::{self, Data, Json, Query, ServiceConfig},
};
use serde::{Deserialize, Serialize};
use tenure::{Leadership, Term};
use tenure_actix::{LeaderAddr, LeaderSendError, LeaderSupervisor};
use tenure_actix_web::LeaderOnly;
use tokio::time::sleep;

use crate::{
    args::ReplicaArgs,
    ledger::{Ledger, LedgerArgs, LedgerError},
    replica::ReplicaError,
    signals::StopSignal,
};

/// How long connections may take to finish once the lease is released, in seconds: their requests are answered by then.
const CLOSE_TIMEOUT: u64 = 2;
const WORKERS: usize = 2;

/// Numbers the jobs of one term. There is never more than one of it among all replicas, so it needs no lock; and a new
/// term begins with a new one, so nothing of an older term is left in it.
#[derive(Debug)]
pub struct Scheduler {
    term: Term,
    jobs: u64,
    /// Where they are written, if anywhere.
    ledger: Option<Ledger>,
}

/// A job that is done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Job {
    /// The candidate that leads.
    pub identity: String,
    /// The term in which the job was done.
    pub fence: u64,
    /// The how many-th job of that term it was.
    pub number: u64,
}

/// A job to do.
#[derive(Clone, Debug, Default, Deserialize, Message)]
#[rtype(result = "Result<Job, LedgerError>")]
#[non_exhaustive]
pub struct Schedule {
    /// How long it takes, in milliseconds.
    #[serde(default)]
    pub ms: u64,
    /// How it is called in the ledger.
    pub id: Option<String>,
}

impl Actor for Scheduler {
    type Context = Context<Self>;
}

impl Handler<Schedule> for Scheduler {
    type Result = ResponseFuture<Result<Job, LedgerError>>;

    fn handle(&mut self, job: Schedule, _: &mut Context<Self>) -> Self::Result {
        self.jobs += 1;
        let done = Job {
            identity: self.term.identity().to_string(),
            fence: self.term.fence().into(),
            number: self.jobs,
        };
        let (term, ledger) = (self.term.clone(), self.ledger.clone());
        Box::pin(async move {
            sleep(Duration::from_millis(job.ms)).await;
            if let Some(ledger) = ledger {
                ledger.write(&term, job.id.as_deref()).await?;
            }
            Ok(done)
        })
    }
}

/// Serves until SIGTERM or SIGINT, then hands over: requests in flight are finished, the actor stops, the lease is released,
/// connections are closed. The first line on stdout is `listening on URL as IDENTITY`. Needs an actix system. If there is a
/// ledger, jobs are written there.
///
/// # Errors
/// [`ReplicaError`] if it cannot start, or if work would not stop.
pub async fn run(args: &ReplicaArgs, ledger: &LedgerArgs) -> Result<(), ReplicaError> {
    let mut stop = StopSignal::listen()?;
    let ledger = ledger.open().await?;
    let mut config = args.election.to_config("example", "memory:")?;
    let store = config.store()?;
    tokio::select! {
        created = store.ensure_schema() => created?,
        () = stop.received() => return Ok(()),
    }
    let listener = listen(args.listen)?;
    let url = format!("http://{}", listener.local_addr()?);
    config.payload = args.payload.clone().or(config.payload).or_else(|| Some(url.clone()));
    let elector = config.elector(store)?;
    let leadership = elector.leadership();
    // The actor lives on this thread; the election on one of its own; requests come from the server's workers.
    let scheduler = LeaderSupervisor::new(leadership.clone()).start(move |term| Scheduler {
        term,
        jobs: 0,
        ledger: ledger.clone(),
    });

    let candidacy = elector.spawn();
    let served = (leadership.clone(), scheduler);
    let server = HttpServer::new(move || {
        let (leadership, scheduler) = &served;
        App::new().configure(routes(leadership, scheduler))
    })
    .workers(WORKERS)
    .shutdown_timeout(CLOSE_TIMEOUT)
    .disable_signals()
    .listen(listener)?
    .run();
    let handle = server.handle();
    let server = actix::spawn(server);
    println!("listening on {url} as {}", leadership.identity());

    stop.received().await;
    // The server goes on meanwhile, so that requests in flight are answered and new ones refused.
    candidacy.shutdown().await?;
    handle.stop(true).await;
    // It has stopped; that its task was joined is no news.
    let _ = server.await;
    Ok(())
}

fn listen(address: SocketAddr) -> Result<TcpListener, ReplicaError> {
    TcpListener::bind(address).map_err(|source| ReplicaError::Listen { address, source })
}

/// The service: one resource for the leader only, and what every replica answers.
pub fn routes(
    leadership: &Leadership,
    scheduler: &LeaderAddr<Scheduler>,
) -> impl FnOnce(&mut ServiceConfig) + use<> {
    let (leadership, scheduler) = (leadership.clone(), scheduler.clone());
    move |config| {
        config
            .app_data(Data::new(scheduler))
            .service(
                web::resource("/jobs")
                    .wrap(LeaderOnly::new(leadership.clone()).advertise_leader())
                    .route(web::post().to(create_job)),
            )
            .route(
                "/",
                web::get()
                    .to(async || "POST /jobs is for the leader; GET /leadership says who leads\n"),
            )
            .configure(tenure_actix_web::routes(leadership));
    }
}

async fn create_job(
    scheduler: Data<LeaderAddr<Scheduler>>,
    job: Query<Schedule>,
) -> Result<Json<Job>, Error> {
    Ok(Json(scheduler.send(job.into_inner()).await.map_err(answer)??))
}

/// Why there is no job: whoever asked should know whether it may have been done.
fn answer(error: LeaderSendError) -> Error {
    if error.outcome_is_unknown() {
        ErrorGatewayTimeout(error)
    } else {
        ErrorServiceUnavailable(error)
    }
}
