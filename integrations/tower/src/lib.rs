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
//! # Where to put it
//! Outside of what limits and compresses, inside of what traces and measures. A limit that stands *inside* gives out
//! its permit when the service is polled ready, before it is known whether the request will be refused; the permit
//! then stays with that copy of the service until it is called again or dropped. Servers that clone the service for
//! each request, such as axum and hyper, drop it at once.
//!
//! # What it can not stop
//! Work that a handler hands to somebody else: `tokio::spawn`, `spawn_blocking`, an upgraded connection. Let the
//! handler take the [`Term`] and use [`Term::spawn`], [`Term::spawn_blocking`] or a [`Term::guard`] there, and give
//! the [fence](Term::fence) to whatever it writes to.
//!
//! [tower]: https://docs.rs/tower

mod body;
mod future;
mod layer;
mod refuse;
mod service;

#[cfg(doc)]
use tenure::Term;
#[cfg(doc)]
use tenure_http::Cut;

pub use tenure_http::Refusal;

pub use self::{
    body::{BoxError, LeaderBody},
    future::LeaderFuture,
    layer::LeaderOnlyLayer,
    refuse::{Refuse, Unavailable},
    service::LeaderOnlyService,
};

#[cfg(test)]
mod test_helpers;
