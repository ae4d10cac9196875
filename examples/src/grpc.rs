//! A gRPC service that only the leader serves, and a client that finds it. Written without generated code, so that it needs
//! no protobuf compiler; with one, `jobs.proto` would say
//!
//! ```proto
//! package tenure.example;
//! message Job { string name = 1; }
//! message Report { string identity = 1; int64 fence = 2; string text = 3; }
//! service Jobs {
//!   rpc Run(Job) returns (Report);
//!   rpc Watch(Job) returns (stream Report);
//! }
//! ```

use std::{
    convert::Infallible,
    task::{Context, Poll},
    time::Duration,
};

use axum::Router;
use futures::{FutureExt, Stream, future::BoxFuture, stream};
use http::uri::PathAndQuery;
use tenure::{Leadership, Term};
use tenure_axum::{Drain, LeaderOnlyLayer};
use tenure_http::{REASON, Refusal};
use tokio::time;
use tonic::{
    Request, Response, Status, Streaming,
    body::Body,
    client::Grpc,
    server::NamedService,
    service::Routes,
    transport::{Channel, Endpoint},
};
use tonic_prost::ProstCodec;
use tower::{Service, service_fn};

use crate::{
    args::ReplicaArgs,
    replica::{self, ReplicaError},
};

const WATCH_INTERVAL: Duration = Duration::from_millis(100);

/// What is to be done.
#[derive(Clone, PartialEq, prost::Message)]
#[non_exhaustive]
pub struct Job {
    /// Its name.
    #[prost(string, tag = "1")]
    pub name: String,
}

impl Job {
    /// The job of this name.
    #[must_use]
    pub fn named(name: impl Into<String>) -> Self {
        Self { name: name.into() }
    }
}

/// What was done, by whom, and in which term.
#[derive(Clone, PartialEq, prost::Message)]
#[non_exhaustive]
pub struct Report {
    /// The candidate that leads.
    #[prost(string, tag = "1")]
    pub identity: String,
    /// The term in which it was done.
    #[prost(int64, tag = "2")]
    pub fence: i64,
    /// What.
    #[prost(string, tag = "3")]
    pub text: String,
}

impl Report {
    fn of(term: &Term, text: String) -> Self {
        Self { identity: term.identity().to_string(), fence: term.fence().into(), text }
    }
}

/// One replica: [`replica::serve`] with the service of [`app`].
///
/// # Errors
/// [`ReplicaError`] if it cannot start, or if work would not stop.
pub async fn serve(args: &ReplicaArgs) -> Result<(), ReplicaError> {
    replica::serve(args, app).await
}

/// The service for the leader only, and who leads for everybody, on one port.
pub fn app(leadership: &Leadership) -> Router {
    // `Watch` never ends by itself, and a hand-over should not wait for it.
    let gate = LeaderOnlyLayer::new(leadership.clone()).advertise_leader().drain(Drain::Cut);
    Routes::new(Jobs)
        .into_axum_router()
        .route_layer(gate)
        .merge(tenure_axum::routes(leadership.clone()))
}

/// The service: what code generated from `jobs.proto` would look like.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Jobs;

impl NamedService for Jobs {
    const NAME: &'static str = "tenure.example.Jobs";
}

impl Service<http::Request<Body>> for Jobs {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<http::Response<Body>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let answer = async move {
            let mut grpc = tonic::server::Grpc::new(ProstCodec::<Report, Job>::default());
            match request.uri().path() {
                RUN => grpc.unary(service_fn(run), request).await,
                WATCH => grpc.server_streaming(service_fn(watch), request).await,
                path => Status::unimplemented(format!("there is no {path}")).into_http(),
            }
        };
        answer.map(Ok).boxed()
    }
}

const RUN: &str = "/tenure.example.Jobs/Run";
const WATCH: &str = "/tenure.example.Jobs/Watch";

async fn run(request: Request<Job>) -> Result<Response<Report>, Status> {
    let term = term(&request)?;
    let text = format!("{} is done", request.into_inner().name);
    Ok(Response::new(Report::of(&term, text)))
}

/// A report each 100 ms, for ever: it ends with the term.
async fn watch(
    request: Request<Job>,
) -> Result<Response<impl Stream<Item = Result<Report, Status>> + use<>>, Status> {
    let term = term(&request)?;
    let name = request.into_inner().name;
    let reports =
        stream::unfold((time::interval(WATCH_INTERVAL), 1_u64), move |(mut ticks, step)| {
            let report = Report::of(&term, format!("{name}: step {step}"));
            async move {
                ticks.tick().await;
                Some((Ok(report), (ticks, step + 1)))
            }
        });
    Ok(Response::new(reports))
}

/// The layer has put it there.
fn term(request: &Request<Job>) -> Result<Term, Status> {
    let term = request.extensions().get().cloned();
    term.ok_or_else(|| Status::internal("the service is not behind a LeaderOnlyLayer"))
}

/// Why a client has no answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CallError {
    /// The address is no URL.
    #[error("{url:?} is not the URL of a replica, such as http://127.0.0.1:3000")]
    Url {
        /// What was given.
        url: String,
        /// What is wrong with it.
        source: tonic::transport::Error,
    },
    /// All refused, or could not be reached; the call may be repeated.
    #[error("no replica leads at the moment")]
    NobodyLeads,
    /// The term ended while the call was worked on, or something else went wrong.
    #[error("{} ({:?})", .0.message(), .0.code())]
    Failed(Box<Status>),
}

impl From<Status> for CallError {
    fn from(status: Status) -> Self {
        Self::Failed(Box::new(status))
    }
}

/// A client that asks one replica after the other until one does not refuse.
#[derive(Clone, Debug)]
pub struct JobsClient {
    replicas: Vec<Endpoint>,
}

impl JobsClient {
    /// Of the replicas at these URLs; connects when it is asked.
    ///
    /// # Errors
    /// [`CallError::Url`].
    pub fn new(urls: &[String]) -> Result<Self, CallError> {
        let endpoint = |url: &String| {
            let invalid = |source| CallError::Url { url: url.clone(), source };
            Endpoint::from_shared(url.clone()).map_err(invalid)
        };
        Ok(Self { replicas: urls.iter().map(endpoint).collect::<Result<_, _>>()? })
    }

    /// Runs a job once.
    ///
    /// # Errors
    /// [`CallError`]; [`CallError::NobodyLeads`] alone says that it was not run.
    pub async fn run(&self, job: &Job) -> Result<Report, CallError> {
        let path = PathAndQuery::from_static(RUN);
        self.ask(async |grpc| {
            grpc.unary(Request::new(job.clone()), path.clone(), ProstCodec::default()).await
        })
        .await
    }

    /// Watches a job, until the leader's term ends.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn watch(&self, job: &Job) -> Result<Streaming<Report>, CallError> {
        let path = PathAndQuery::from_static(WATCH);
        self.ask(async |grpc| {
            grpc.server_streaming(Request::new(job.clone()), path.clone(), ProstCodec::default())
                .await
        })
        .await
    }

    /// Goes on to the next replica only if nobody has looked at the call.
    async fn ask<T>(
        &self,
        call: impl AsyncFn(&mut Grpc<Channel>) -> Result<Response<T>, Status>,
    ) -> Result<T, CallError> {
        for replica in &self.replicas {
            let Ok(channel) = replica.connect().await else { continue };
            let mut grpc = Grpc::new(channel);
            if grpc.ready().await.is_err() {
                continue;
            }
            match call(&mut grpc).await {
                Ok(response) => return Ok(response.into_inner()),
                Err(status) if is_refused(&status) => {}
                Err(status) => return Err(status.into()),
            }
        }
        Err(CallError::NobodyLeads)
    }
}

/// `UNAVAILABLE` alone does not say whether the call was worked on; the reason does.
fn is_refused(status: &Status) -> bool {
    status.metadata().get(REASON.as_str()).is_some_and(|reason| reason == Refusal::REASON)
}
