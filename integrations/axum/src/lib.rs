//! Leader election for [axum]: routes that show who leads.
//!
//! [`routes`] adds three of them. Routes that only the leader serves are made with [`LeaderOnlyLayer`], from
//! `tenure-tower`; their handlers take the term with `Extension<Term>`.
//!
//! ```
//! use axum::{Extension, Router, routing::post};
//! use tenure::{Elector, MemoryStore, Term};
//! use tenure_axum::LeaderOnlyLayer;
//!
//! async fn run_job(Extension(term): Extension<Term>) -> String {
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
//! [axum]: https://docs.rs/axum

mod events;
mod routes;
mod view;

pub use tenure_tower::LeaderOnlyLayer;

pub use self::routes::routes;
