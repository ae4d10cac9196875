//! Leader election for [actix-web]: services for the leader only, and routes that show who leads.
//!
//! [`LeaderOnly`] makes services that only the leader serves; [`LeaderTerm`] hands their handlers the term; [`routes`]
//! adds three routes by which people and load balancers see who leads. For actors there is `tenure-actix`.
//!
//! ```
//! use actix_web::{App, web};
//! use tenure::{Elector, MemoryStore};
//! use tenure_actix_web::{LeaderOnly, LeaderTerm};
//!
//! async fn run_job(LeaderTerm(term): LeaderTerm) -> String {
//!     format!("done in term {}", term.fence())
//! }
//!
//! let elector = Elector::builder("billing", MemoryStore::new()).build()?;
//! let leadership = elector.leadership();
//! // Within `HttpServer::new`:
//! let app = App::new()
//!     .service(
//!         web::resource("/jobs")
//!             .wrap(LeaderOnly::new(leadership.clone()))
//!             .route(web::post().to(run_job)),
//!     )
//!     .configure(tenure_actix_web::routes(leadership));
//! # Ok::<(), tenure::ConfigError>(())
//! ```
//!
//! What happens to a request is what `tenure-tower` does, with the same answers:
//!
//! - **not leading**: it is answered with `503`, a `retry-after` and a body that names the election ([`Refusal`]). No
//!   service inside sees it. Over HTTP/1 the connection is closed, so that the client's next request may reach another
//!   replica.
//! - **leading**: the service inside is called, with the [`Term`] in the request's extensions. The request is *in
//!   flight* until its response's body is finished, fails or is dropped: a hand-over waits for it, up to the elector's
//!   `drain_timeout`. (What streams never end: [`Drain::Cut`].)
//! - **the term ends meanwhile**: what works on the request is dropped and never polled again. If no head was sent
//!   yet, the answer is a `503` that says so ([`Cut`]: the outcome is unknown). If it was, the body fails, so that no
//!   client takes a truncated body for a whole one.
//!
//! A cut reaches middlewares that stand outside as an `Err`, and becomes that `503` where actix-web turns errors into
//! responses: a request that a handler has in hand is not there to make a response with. Middlewares that add headers should
//! do so to errors as well.
//!
//! actix-web's bodies have no trailers. So gRPC is refused in its own form, but a response that was begun can only be broken
//! off.
//!
//! # What else it can answer
//! | | |
//! |---|---|
//! | [`advertise_leader`](LeaderOnly::advertise_leader) | tells in the refusal who leads |
//! | [`retry_after`](LeaderOnly::retry_after) | another time to come back than the end of the lease |
//! | [`redirect_to_leader`](LeaderOnly::redirect_to_leader) | `307` to the leader's own URL |
//! | [`on_reject`](LeaderOnly::on_reject) | a function of yours answers |
//! | [`otherwise`](LeaderOnly::otherwise) | a handler of yours answers, for example by forwarding to the leader |
//!
//! # Where to put it
//! | on a replica that does not lead | its paths | a path that does not exist | a method that the path lacks |
//! |---|---|---|---|
//! | `Resource::wrap` | `503` | `404` | `503` |
//! | `Scope::wrap` | `503` | `503` within the scope | `503` |
//! | `App::wrap` | `503` | `503` | `503` |
//!
//! Prefer resources and scopes, and leave health checks, metrics and [`routes`] outside: on a standby they matter most. The
//! middleware that is wrapped last is the outermost. From the outside: what traces and measures; then this one; then what
//! limits and compresses, so that a compressed body that is cut is not closed cleanly by its encoder.
//!
//! # What escapes it
//! What is polled by this middleware stops with the term: handlers, and the bodies that they answer with. What a handler
//! hands to somebody else goes on: `actix_web::rt::spawn`, `web::block`, a WebSocket (whose handler has answered long ago).
//! Let the handler take the [`LeaderTerm`], and use [`Term::spawn`], [`Term::spawn_blocking`], [`Term::leader_only`] or a
//! [`Term::guard`] there; give the [fence](Term::fence) to whatever is written to.
//!
//! [actix-web]: https://docs.rs/actix-web

mod body;
mod convert;
mod future;
mod middleware;
mod refuse;
mod routes;
mod term;

#[cfg(doc)]
use tenure::Term;
#[cfg(doc)]
use tenure_http::Cut;
pub use tenure_http::{Drain, Refusal, RetryAfter};

pub use self::{
    body::LeaderBody,
    future::LeaderFuture,
    middleware::{LeaderOnly, LeaderOnlyService},
    routes::routes,
    term::{LeaderTerm, LeaderTermRejection},
};

/// So that its example is compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
