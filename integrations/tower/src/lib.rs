//! Leader-only services for [tower]: requests reach the inner service only while this replica leads.
//!
//! Put a [`LeaderOnlyLayer`] around any HTTP service, and
//!
//! - **not leading**: the request is answered with `503`, a `retry-after` and a body that names the election
//!   ([`Refusal`]). The inner service never sees it.
//! - **leading**: the inner service is called, with the [`Term`] in the request's extensions. The request is *in
//!   flight* until its response's body is finished, fails or is dropped: a hand-over waits for it, up to the elector's
//!   `drain_timeout`.
//! - **the term ends meanwhile**: what works on the request is dropped and never polled again. If no head was sent
//!   yet, the answer is a `503` that says so ([`Cut`]: the outcome is unknown). If it was, the body fails, so that no
//!   client takes a truncated body for a whole one.
//!
//! # Example
//! An axum route that only the leader serves. `route_layer` leaves paths that do not exist a `404` on every replica;
//! routes that all replicas serve are added after it.
//!
//! ```
//! use axum::{Extension, Router, routing::{get, post}};
//! use tenure::{Elector, MemoryStore, Term};
//! use tenure_tower::LeaderOnlyLayer;
//!
//! async fn run_job(Extension(term): Extension<Term>) -> String {
//!     format!("done in term {}", term.fence())
//! }
//!
//! let elector = Elector::builder("billing", MemoryStore::new()).build()?;
//! let app: Router = Router::new()
//!     .route("/jobs", post(run_job))
//!     .route_layer(LeaderOnlyLayer::new(elector.leadership()))
//!     .route("/", get(|| async { "served by every replica" }));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! gRPC is answered in its own form: requests with `content-type: application/grpc…` are refused with the status
//! `UNAVAILABLE`, and streams are cut with trailers that say the same. Put the layer around a whole tonic server
//! (`Server::builder().layer(..)`) or around one of its services. gRPC-Web is refused in the same way; its streams are broken
//! off when they are cut, since their trailers are part of the body.
//!
//! # What else it can answer
//! | | |
//! |---|---|
//! | [`advertise_leader`](LeaderOnlyLayer::advertise_leader) | tells in the refusal who leads |
//! | [`retry_after`](LeaderOnlyLayer::retry_after) | another time to come back than the end of the lease |
//! | [`redirect_to_leader`](LeaderOnlyLayer::redirect_to_leader) | `307` to the leader's own URL |
//! | [`on_reject`](LeaderOnlyLayer::on_reject) | a function of yours answers |
//! | [`otherwise`](LeaderOnlyLayer::otherwise) | a service of yours answers, for example by forwarding to the leader |
//!
//! # `route_layer` or `layer`
//! Of axum's two ways, `route_layer` puts the layer around the routes that a router has so far, and `layer` around
//! everything that it does, also around its `404` and `405`:
//!
//! | on a replica that does not lead | a route | a path that does not exist | a method that the route lacks |
//! |---|---|---|---|
//! | `Router::route_layer` | `503` | `404` | `503` |
//! | `Router::layer` | `503` | `503` | `503` |
//! | `MethodRouter::route_layer` | `503` | `404` | `405` |
//!
//! Prefer `route_layer`: that a path does not exist is as true on a standby. It panics on a router without routes. Both leave
//! alone what is added afterwards, so add health checks, metrics and the routes of `tenure-axum` after it: on a standby they
//! matter most.
//!
//! # Order of layers
//! From the outside: what traces and measures; then this layer; then what limits, compresses, and handles errors. Tracing
//! then also sees what was refused, and a compressed body that is cut is not closed cleanly by its encoder.
//!
//! A limit that stands *inside* gives out its permit when the service is polled ready, before it is known whether the
//! request will be refused; the permit then stays with that copy of the service until it is called again or dropped. Servers
//! that clone the service for each request, such as axum and hyper, drop it at once; behind a `Buffer`, put limits outside.
//! A time limit may stand on either side. Of two of these layers, one inside the other, the request needs both elections, and
//! the inner one's term is the one in the extensions.
//!
//! Around an HTTP *client* it works the same: only the leader sends.
//!
//! # What escapes it
//! What is polled by this layer stops with the term: handlers, and the bodies that they answer with. What a handler hands to
//! somebody else goes on: a task, blocking code, a WebSocket (whose handler has answered with `101` long ago). Each has a
//! way to stay under the term, which the handler finds in the request's extensions:
//!
//! | what | instead | and then |
//! |---|---|---|
//! | `tokio::spawn(work)` | [`term.spawn(work)`](Term::spawn) | it is dropped when the term is cancelled; a hand-over does not wait for it |
//! | a task that a hand-over should let finish | `tokio::spawn(`[`term.until_ended(work)`](Term::until_ended)`)` | it is dropped when the term has ended |
//! | `spawn_blocking(code)`, a thread | [`term.spawn_blocking(code)`](Term::spawn_blocking), or a [`term.guard()`](Term::guard) that the thread holds | nothing can stop it: it has to ask; meanwhile this replica neither leads anew nor gives its lease back |
//! | an upgraded connection | [`term.leader_only(session)`](Term::leader_only), and a close frame where [`term.cancelled()`](Term::cancelled) says so | `tenure-axum` shows how |
//! | a request to another service | a client with [`FenceHeader`], and [`RequireFence`] on the other side | what arrives too late is refused |
//!
//! What was written to a database is protected by the [fence](Term::fence) alone.
//!
//! # Hand-overs
//! When the term is cancelled (resigning, shutting down), requests in flight are left to finish for as long as the elector's
//! `drain_timeout`, and new ones are refused; over HTTP/1 with `connection: close`, so that the next request of that client
//! may reach another replica. Then the lease is given back. Streams that never end by themselves would make every hand-over
//! last that long: [`Drain::Cut`] ends them at once.
//!
//! # Fences between services
//! [`FenceHeader`] stamps a leader's requests to another service, which refuses those of a term that is over:
//!
//! ```
//! use axum::{Extension, Router, body::Body, routing::post};
//! use http::Request;
//! use tenure::{ElectionName, Term};
//! use tenure_tower::{FenceHeader, RequireFence};
//! use tower::{Service, ServiceBuilder, ServiceExt};
//!
//! // The leader's side: the request says under which term it is made.
//! async fn add_entry<C>(client: C, term: &Term) -> Result<C::Response, C::Error>
//! where
//!     C: Service<Request<Body>>,
//! {
//!     let client = ServiceBuilder::new().layer(FenceHeader::of(term)).service(client);
//!     client.oneshot(Request::post("http://ledger/entries").body("42 EUR".into()).expect("valid")).await
//! }
//!
//! // The ledger's side: an entry of a leader that was frozen, and has been succeeded, is refused.
//! let app: Router = Router::new()
//!     .route("/entries", post(|| async { "added" }))
//!     .route_layer(RequireFence::new(ElectionName::new("billing")?));
//!
//! # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
//! # use tenure::{Elector, MemoryStore};
//! let elector = Elector::builder("billing", MemoryStore::new()).build()?;
//! let leadership = elector.leadership();
//! let candidacy = elector.spawn();
//! let before = leadership.leading().await?;
//! assert_eq!(add_entry(app.clone(), &before).await?.status(), 200);
//! # leadership.set_eligible(false);
//! # before.ended().await;
//! # leadership.set_eligible(true);
//!
//! // Later, after somebody else has led:
//! let after = leadership.leading().await?;
//! assert_eq!(add_entry(app.clone(), &after).await?.status(), 200);
//! assert_eq!(add_entry(app, &before).await?.status(), 412);
//! # candidacy.shutdown().await?;
//! # Ok::<_, Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<_, Box<dyn std::error::Error>>(())
//! ```
//!
//! [tower]: https://docs.rs/tower

mod body;
#[cfg(test)]
mod drain;
mod fence_header;
mod future;
mod layer;
mod refuse;
mod require_fence;
mod service;

#[cfg(doc)]
use tenure::Term;
#[cfg(doc)]
use tenure_http::Cut;
pub use tenure_http::{Drain, Refusal, RetryAfter};

pub use self::{
    body::{BoxError, LeaderBody},
    fence_header::{FenceHeader, FenceHeaderService},
    future::LeaderFuture,
    layer::LeaderOnlyLayer,
    refuse::{OnReject, Otherwise, RedirectToLeader, Refuse, Unavailable},
    require_fence::{
        HighestSeen, KeepFences, RequireFence, RequireFenceFuture, RequireFenceService,
    },
    service::LeaderOnlyService,
};

#[cfg(test)]
mod test_helpers;

/// So that its example is compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
