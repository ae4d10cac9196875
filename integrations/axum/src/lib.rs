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
//! # WebSockets
//! A handler that upgrades its connection has answered, with `101`, before the conversation begins: its request is out of
//! flight, no hand-over waits for the session, and the layer stops nothing of it. The session looks after its term itself:
//!
//! ```
//! use axum::{
//!     extract::ws::{CloseFrame, Message, WebSocket, WebSocketUpgrade, close_code},
//!     response::Response,
//! };
//! use tenure::Term;
//! use tenure_axum::LeaderTerm;
//!
//! async fn connect(LeaderTerm(term): LeaderTerm, upgrade: WebSocketUpgrade) -> Response {
//!     upgrade.on_upgrade(move |socket| session(socket, term))
//! }
//!
//! async fn session(mut socket: WebSocket, term: Term) {
//!     if term.leader_only(converse(&mut socket, &term)).await.is_err() {
//!         let code = close_code::RESTART; // 1012: connect again
//!         let frame = CloseFrame { code, reason: "this replica does not lead any more".into() };
//!         let _ = socket.send(Message::Close(Some(frame))).await;
//!     }
//! }
//!
//! async fn converse(socket: &mut WebSocket, term: &Term) {
//!     while let Some(Ok(message)) = socket.recv().await {
//!         let heard = format!("{message:?} in term {}", term.fence());
//!         if socket.send(heard.into()).await.is_err() {
//!             return;
//!         }
//!     }
//! }
//! # drop(axum::routing::any::<_, _, ()>(connect));
//! ```
//!
//! | of a session | stays under the term by | when the term is cancelled |
//! |---|---|---|
//! | the conversation | [`Term::leader_only`](tenure::Term::leader_only) | it is dropped, whatever it waits for; the socket is left for a close frame |
//! | what a hand-over should wait for | [`Term::until_ended`](tenure::Term::until_ended), begun before | it goes on, up to the `drain_timeout` |
//! | a task | [`Term::spawn`](tenure::Term::spawn) | it is dropped |
//! | blocking code | [`Term::spawn_blocking`](tenure::Term::spawn_blocking), or a [`Term::guard`](tenure::Term::guard) | it has to ask; meanwhile this replica neither leads anew nor gives its lease back |
//! | what it writes elsewhere | the [fence](tenure::Term::fence), sent along | what comes too late is refused there |
//!
//! A server that shuts down gracefully does not wait for upgraded connections. The example `websocket` of the repository
//! (`examples/src/websocket.rs`) is a whole replica that does, and that gives up on clients that do not hear its goodbye.
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

/// So that its example is compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
