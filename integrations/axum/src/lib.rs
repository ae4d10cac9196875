//! Leader election for [axum]: routes for the leader only, and routes that show who leads.
//!
//! [`LeaderOnlyLayer`] makes routes that only the leader serves; [`LeaderTerm`] hands their handlers the term; [`routes`]
//! adds three routes by which people and load balancers see who leads.
//!
//! ```
//! use axum::{Router, routing::post};
//! use tenure::{Elector, MemoryStore};
//! use tenure_axum::{LeaderOnlyLayer, LeaderTerm};
//!
//! async fn run_job(LeaderTerm(term): LeaderTerm) -> String {
//!     format!("done in term {}", term.fence())
//! }
//!
//! let elector = Elector::builder("billing", MemoryStore::new()).build()?;
//! let leadership = elector.leadership();
//! let app: Router = Router::new()
//!     .route("/jobs", post(run_job))
//!     .route_layer(LeaderOnlyLayer::new(leadership.clone()))
//!     .merge(tenure_axum::routes(leadership));
//! # Ok::<(), tenure::ConfigError>(())
//! ```
//!
//! # `route_layer` or `layer`
//! `route_layer` puts the layer around the routes that are there so far; other paths stay `404` on every replica. `layer` puts
//! it around the router, and a standby answers `503` to all paths. Neither touches what is added afterwards, which is where
//! health checks and [`routes`] belong. The page of [`tenure_tower`] has the whole table, the order among other layers, and
//! **what escapes**: tasks that a handler spawns, blocking code and WebSockets go on when the term ends unless they run under
//! [`Term::spawn`](tenure::Term::spawn), a [`Term::guard`](tenure::Term::guard) or
//! [`Term::leader_only`](tenure::Term::leader_only).
//!
//! # Redirects from nested routers
//! `nest` strips its prefix before the request comes to a layer inside. There, redirects need the URI that the client sent:
//!
//! ```
//! use axum::{Router, routing::post};
//! use tenure::{Elector, MemoryStore};
//! use tenure_axum::{LeaderOnlyLayer, original_uri};
//!
//! let elector = Elector::builder("billing", MemoryStore::new()).payload("http://10.0.0.7").build()?;
//! let gate = LeaderOnlyLayer::new(elector.leadership()).redirect_to_leader_at(original_uri);
//! let jobs = Router::new().route("/jobs", post(|| async { "done" })).route_layer(gate);
//! let app: Router = Router::new().nest("/api", jobs);
//! # Ok::<(), tenure::ConfigError>(())
//! ```
//!
//! [axum]: https://docs.rs/axum

mod events;
mod original_uri;
mod routes;
mod term;

pub use tenure_tower::{Drain, FenceHeader, LeaderOnlyLayer, RequireFence, RetryAfter};

pub use self::{
    original_uri::original_uri,
    routes::routes,
    term::{LeaderTerm, LeaderTermRejection},
};
