//! The three routes.

use axum::{
    Router,
    body::Body,
    extract::State,
    http::header::CONTENT_TYPE,
    response::{IntoResponse, Response},
    routing::get,
};
use tenure::Leadership;
use tenure_http::{RefusalSettings, status_json, term_json};

use crate::events::events;

/// Routes that show what this replica knows about its election, whether it leads or not:
///
/// | route | answer |
/// |---|---|
/// | `GET /leadership` | `200`, what this replica knows, as JSON |
/// | `GET /leader` | `200` while this replica leads and is ready, otherwise `503`: what a load balancer asks |
/// | `GET /leadership/events` | server-sent events: first `status` with the same JSON, then `started`, `ended` and `new_leader`, beginning with what holds already |
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
    json(status_json(&leadership.status()))
}

/// A refusal that leaves the connection open, since who asks here asks again.
async fn leader(State(leadership): State<Leadership>) -> Response {
    match leadership.term() {
        Some(term) => json(term_json(&term)),
        None => RefusalSettings::new().refusal(&leadership).to_response().map(Body::from),
    }
}

fn json(text: String) -> Response {
    ([(CONTENT_TYPE, "application/json")], text).into_response()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use axum::{
        body::BodyDataStream,
        http::{Request, StatusCode},
    };
    use futures::StreamExt;
    use serde_json::{Value, json};
    use tenure::{Elector, MemoryStore};
    use tenure_http::REASON;
    use tower::ServiceExt;

    use super::*;

    fn elector(store: &MemoryStore, payload: &[u8]) -> Elector {
        let builder = Elector::builder("billing", store.clone()).payload(payload);
        builder.lease_duration(Duration::from_secs(3)).build().unwrap()
    }

    async fn get(leadership: &Leadership, path: &str) -> Response {
        let request = Request::builder().uri(path).body(Body::empty()).unwrap();
        routes(leadership.clone()).oneshot(request).await.unwrap()
    }

    async fn json(response: Response) -> Value {
        let body = axum::body::to_bytes(response.into_body(), usize::MAX).await.unwrap();
        serde_json::from_slice(&body).unwrap()
    }

    #[tokio::test]
    async fn a_replica_that_knows_nothing_says_so() {
        let elector = elector(&MemoryStore::new(), b"");
        let leadership = elector.leadership();
        let response = get(&leadership, "/leadership").await;
        assert_eq!(response.status(), StatusCode::OK);
        assert_eq!(
            json(response).await,
            json!({
                "election": "billing",
                "identity": leadership.identity().as_str(),
                "phase": "following",
                "is_leader": false,
                "fence": null,
                "remaining_ms": null,
                "leader": null,
                "observed_age_ms": null,
                "last_error": null,
            })
        );
    }

    #[tokio::test]
    async fn a_leader_and_its_standby_name_the_same_leader() {
        let store = MemoryStore::new();
        let leader = elector(&store, b"http://10.0.0.7").spawn();
        let term = leader.leadership().leading().await.unwrap();
        let standby = elector(&store, b"").spawn();
        let mut watch = standby.leadership().watch();
        watch.wait_for(|status| status.leader().is_some()).await.unwrap();

        let fence = u64::from(term.fence());
        let known = json!({
            "identity": term.identity().as_str(), "fence": fence, "payload": "http://10.0.0.7",
        });
        let of_leader = json(get(&leader.leadership(), "/leadership").await).await;
        assert_eq!(of_leader["is_leader"], true);
        assert_eq!(of_leader["phase"], "leading");
        assert_eq!(of_leader["fence"], fence);
        assert!(of_leader["remaining_ms"].as_u64().unwrap() <= 3_000);
        let of_standby = json(get(&standby.leadership(), "/leadership").await).await;
        assert_eq!(of_standby["is_leader"], false);
        assert_eq!(of_standby["leader"], known);
    }

    #[tokio::test]
    async fn a_payload_that_is_no_text_is_null() {
        let leader = elector(&MemoryStore::new(), &[0xff]).spawn();
        let leadership = leader.leadership();
        let mut watch = leadership.watch();
        watch.wait_for(|status| status.leader().is_some()).await.unwrap();
        let report = json(get(&leadership, "/leadership").await).await;
        assert_eq!(report["leader"]["payload"], Value::Null);
    }

    #[tokio::test]
    async fn a_load_balancer_finds_the_leader_by_its_status() {
        let leader = elector(&MemoryStore::new(), b"").spawn();
        let leadership = leader.leadership();
        let term = leadership.leading().await.unwrap();
        let response = get(&leadership, "/leader").await;
        assert_eq!(response.status(), StatusCode::OK);
        assert_eq!(json(response).await["fence"], u64::from(term.fence()));

        leader.shutdown().await.unwrap();
        let response = get(&leadership, "/leader").await;
        assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(response.headers()[REASON], "refused");
        assert_eq!(json(response).await["election"], "billing");
    }

    /// The next event of a stream, which comes in a frame of its own; `None` at its end.
    async fn next(stream: &mut BodyDataStream) -> Option<(String, Value)> {
        let frame = stream.next().await?.unwrap();
        let text = std::str::from_utf8(&frame).unwrap();
        let field = |name| text.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        Some((field("event: ").to_owned(), serde_json::from_str(field("data: ")).unwrap()))
    }

    #[tokio::test]
    async fn events_tell_the_story_of_a_term_and_end_with_the_elector() {
        let elector = elector(&MemoryStore::new(), b"here");
        let leadership = elector.leadership();
        let response = get(&leadership, "/leadership/events").await;
        assert_eq!(response.headers()[CONTENT_TYPE], "text/event-stream");
        let mut events = response.into_body().into_data_stream();

        let (name, status) = next(&mut events).await.unwrap();
        assert_eq!((name.as_str(), &status["is_leader"]), ("status", &json!(false)));

        let candidacy = elector.spawn();
        let (name, started) = next(&mut events).await.unwrap();
        let term = leadership.term().unwrap();
        let term = json!({
            "election": "billing",
            "identity": term.identity().as_str(),
            "fence": u64::from(term.fence()),
        });
        assert_eq!((name.as_str(), &started), ("started", &term));
        let (name, leader) = next(&mut events).await.unwrap();
        assert_eq!((name.as_str(), &leader["payload"]), ("new_leader", &json!("here")));

        candidacy.shutdown().await.unwrap();
        let (name, mut ended) = next(&mut events).await.unwrap();
        assert_eq!((name.as_str(), &ended["reason"]), ("ended", &json!("shutdown")));
        ended.as_object_mut().unwrap().remove("reason");
        assert_eq!(ended, term);
        assert_eq!(next(&mut events).await, None);
    }
}
