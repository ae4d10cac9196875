//! The three routes.

use axum::{
    Json, Router,
    body::Body,
    extract::State,
    response::{IntoResponse, Response},
    routing::get,
};
use tenure::Leadership;
use tenure_http::Refusal;

use crate::{
    events::events,
    view::{Leads, Report},
};

/// Routes that show what this replica knows about its election, whether it leads or not:
///
/// | route | answer |
/// |---|---|
/// | `GET /leadership` | `200`, what this replica knows, as JSON |
/// | `GET /leader` | `200` while this replica leads and is ready, otherwise `503`: what a load balancer asks |
/// | `GET /leadership/events` | server-sent events: first the same JSON as `status`, then `started`, `ended` and `new_leader` as they happen |
///
/// They show the leader's payload, the identity of this replica (which contains its host name), and the text of the
/// last error; keep them off the public internet. Add them after a
/// [`LeaderOnlyLayer`](crate::LeaderOnlyLayer), or the standbys would refuse to say that they are standbys.
///
/// The stream of events ends when the elector has stopped. A server that waits for open connections before it exits
/// must therefore shut its elector down first, or at the same time.
///
/// ```
/// use axum::Router;
/// use tenure::{Elector, MemoryStore};
///
/// let elector = Elector::builder("billing", MemoryStore::new()).build()?;
/// let app: Router = Router::new().nest("/internal", tenure_axum::routes(elector.leadership()));
/// # Ok::<(), tenure::ConfigError>(())
/// ```
pub fn routes<S>(leadership: Leadership) -> Router<S>
where
    S: Clone + Send + Sync + 'static,
{
    Router::new()
        .route("/leadership", get(report))
        .route("/leadership/events", get(events))
        .route("/leader", get(leader))
        .with_state(leadership)
}

async fn report(State(leadership): State<Leadership>) -> Response {
    Json(Report::from(&leadership.status())).into_response()
}

async fn leader(State(leadership): State<Leadership>) -> Response {
    match leadership.term() {
        Some(term) => Json(Leads::from(&term)).into_response(),
        None => {
            let refusal = Refusal::new(leadership.election().clone(), None);
            refusal.to_response().map(Body::from)
        }
    }
}
