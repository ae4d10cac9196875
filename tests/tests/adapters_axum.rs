//! The tower layer at every point where axum takes one, and what each of them does to requests on a standby.

#![allow(clippy::unwrap_used)] // helpers of tests are tests

use std::{convert::Infallible, time::Duration};

use axum::{
    Extension, Router,
    body::Body,
    http::{Request, Response, StatusCode, header::LOCATION},
    routing::{get, get_service, post},
};
use http_body_util::BodyExt;
use tenure::{Candidacy, Elector, Leadership, MemoryStore, Term};
use tenure_axum::original_uri;
use tenure_http::REASON;
use tenure_tower::LeaderOnlyLayer;
use tower::{ServiceBuilder, ServiceExt, limit::ConcurrencyLimitLayer, service_fn};
use tower_http::timeout::TimeoutLayer;

async fn fence(Extension(term): Extension<Term>) -> String {
    term.fence().to_string()
}

async fn call(app: Router, method: &str, path: &str) -> Response<Body> {
    let request = Request::builder().method(method).uri(path).body(Body::empty()).unwrap();
    app.oneshot(request).await.unwrap()
}

async fn leading() -> (Candidacy, Term) {
    let candidacy = Elector::builder("axum", MemoryStore::new()).build().unwrap().spawn();
    let term = candidacy.leadership().leading().await.unwrap();
    (candidacy, term)
}

/// What `GET /job` answers on a leader, and on a standby, and whether a path that does not exist is a 404 there.
async fn check(app: impl Fn(Leadership) -> Router, unmatched_on_standby: StatusCode) {
    let elector = Elector::builder("axum", MemoryStore::new()).build().unwrap();
    let standby = app(elector.leadership());
    let refused = call(standby.clone(), "GET", "/job").await;
    assert_eq!(refused.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(refused.headers()[REASON], "refused");
    assert_eq!(call(standby, "GET", "/no-such-path").await.status(), unmatched_on_standby);

    let (candidacy, term) = leading().await;
    let leader = app(candidacy.leadership());
    let served = call(leader.clone(), "GET", "/job").await;
    assert_eq!(served.status(), StatusCode::OK);
    let body = served.into_body().collect().await.unwrap().to_bytes();
    assert_eq!(body, term.fence().to_string());
    assert_eq!(call(leader, "GET", "/no-such-path").await.status(), StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn around_routes_unmatched_paths_stay_404() {
    let app = |leadership| {
        Router::new().route("/job", get(fence)).route_layer(LeaderOnlyLayer::new(leadership))
    };
    check(app, StatusCode::NOT_FOUND).await;
}

#[tokio::test]
async fn around_a_router_everything_is_refused() {
    let app = |leadership| {
        Router::new().route("/job", get(fence)).layer(LeaderOnlyLayer::new(leadership))
    };
    check(app, StatusCode::SERVICE_UNAVAILABLE).await;
}

#[tokio::test]
async fn around_a_method_router() {
    let app = |leadership| {
        Router::new().route("/job", get(fence).layer(LeaderOnlyLayer::new(leadership)))
    };
    check(app, StatusCode::NOT_FOUND).await;
}

#[tokio::test]
async fn around_the_routes_of_a_method_router_other_methods_stay_405() {
    let app = |leadership| {
        Router::new().route("/job", get(fence).route_layer(LeaderOnlyLayer::new(leadership)))
    };
    check(app, StatusCode::NOT_FOUND).await;
    let elector = Elector::builder("axum", MemoryStore::new()).build().unwrap();
    let refused = call(app(elector.leadership()), "POST", "/job").await;
    assert_eq!(refused.status(), StatusCode::METHOD_NOT_ALLOWED);
}

#[tokio::test]
async fn around_what_is_nested_and_merged() {
    let app = |leadership: Leadership| {
        let gate = LeaderOnlyLayer::new(leadership);
        let nested = Router::new().route("/", get(fence)).layer(gate.clone());
        let merged = Router::new().route("/other", post(fence)).route_layer(gate);
        Router::new().nest("/job", nested).merge(merged)
    };
    check(app, StatusCode::NOT_FOUND).await;
}

#[tokio::test]
async fn around_a_service_of_its_own() {
    let app = |leadership| {
        let service =
            ServiceBuilder::new().layer(LeaderOnlyLayer::new(leadership)).service(get(fence));
        Router::new().route("/job", get_service(service))
    };
    check(app, StatusCode::NOT_FOUND).await;
}

#[tokio::test]
async fn between_limits_of_other_crates() {
    let app = |leadership| {
        let layers = ServiceBuilder::new()
            // Makes an empty body of the type that it finds inside.
            .layer(TimeoutLayer::with_status_code(
                StatusCode::REQUEST_TIMEOUT,
                Duration::from_secs(30),
            ))
            .layer(LeaderOnlyLayer::new(leadership))
            .layer(ConcurrencyLimitLayer::new(1));
        Router::new().route("/job", get(fence)).route_layer(layers)
    };
    check(app, StatusCode::NOT_FOUND).await;
}

#[tokio::test]
async fn routes_added_afterwards_are_served_by_every_replica() {
    let elector = Elector::builder("axum", MemoryStore::new()).build().unwrap();
    let app = Router::new()
        .route("/job", get(fence))
        .route_layer(LeaderOnlyLayer::new(elector.leadership()))
        .route("/", get(|| async { "open" }))
        .merge(tenure_axum::routes(elector.leadership()));
    assert_eq!(call(app.clone(), "GET", "/").await.status(), StatusCode::OK);
    assert_eq!(call(app.clone(), "GET", "/leadership").await.status(), StatusCode::OK);
    let leader = call(app, "GET", "/leader").await;
    assert_eq!(leader.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(leader.headers()[REASON], "refused");
}

/// The table in the documentation of the layer.
#[tokio::test]
async fn what_a_standby_answers_depends_on_where_the_layer_is() {
    let gate = LeaderOnlyLayer::new(
        Elector::builder("axum", MemoryStore::new()).build().unwrap().leadership(),
    );
    let routed = || Router::new().route("/job", get(fence));
    for (app, [route, path, method]) in [
        (routed().route_layer(gate.clone()), [503, 404, 503]),
        (routed().layer(gate.clone()), [503, 503, 503]),
        (Router::new().route("/job", get(fence).route_layer(gate)), [503, 404, 405]),
    ] {
        assert_eq!(call(app.clone(), "GET", "/job").await.status(), route);
        assert_eq!(call(app.clone(), "GET", "/no-such-path").await.status(), path);
        assert_eq!(call(app, "POST", "/job").await.status(), method);
    }
}

/// `nest` strips its prefix before a layer inside sees the request.
#[tokio::test]
async fn redirects_from_nested_routers_keep_the_prefix() {
    let store = MemoryStore::new();
    let contender = |payload: &str| {
        Elector::builder("axum", store.clone()).payload(payload).build().unwrap().spawn()
    };
    let leader = contender("http://10.0.0.7");
    leader.leadership().leading().await.unwrap();
    let standby = contender("http://10.0.0.8");
    let mut watch = standby.leadership().watch();
    watch.wait_for(|status| status.leader().is_some()).await.unwrap();

    let gate = LeaderOnlyLayer::new(standby.leadership()).redirect_to_leader_at(original_uri);
    let inner = Router::new().route("/job", post(|| async {})).route_layer(gate);
    let app = Router::new().nest("/a", Router::new().nest("/b", inner));
    let led = call(app, "POST", "/a/b/job?x=1").await;
    assert_eq!(led.status(), StatusCode::TEMPORARY_REDIRECT);
    assert_eq!(led.headers()[LOCATION], "http://10.0.0.7/a/b/job?x=1");
}

#[tokio::test]
async fn every_way_to_answer_fits_where_axum_takes_a_layer() {
    async fn forwarded(request: Request<Body>) -> Result<Response<Body>, Infallible> {
        Ok(Response::new(request.into_body()))
    }

    let leadership = Elector::builder("axum", MemoryStore::new()).build().unwrap().leadership();
    let gate = LeaderOnlyLayer::new(leadership);
    let rejecting = gate.clone().on_reject(|refusal, asked| {
        Response::new(Body::from(format!("{} of {}", asked.uri.path(), refusal.election())))
    });
    let app = Router::new()
        .route("/forwarded", post(fence))
        .route_layer(gate.clone().otherwise(service_fn(forwarded)))
        .route("/rejected", post(fence).layer(rejecting.clone()))
        .merge(Router::new().route("/merged", post(fence)).layer(rejecting))
        .nest("/led", Router::new().route("/", post(fence)).layer(gate.redirect_to_leader()));
    for (path, status, says) in [
        ("/forwarded", StatusCode::OK, "what was sent"),
        ("/rejected", StatusCode::OK, "/rejected of axum"),
        ("/merged", StatusCode::OK, "/merged of axum"),
        // Nobody is known to lead.
        ("/led", StatusCode::SERVICE_UNAVAILABLE, "this replica does not lead"),
    ] {
        let request = Request::post(path).body(Body::from("what was sent")).unwrap();
        let answer = app.clone().oneshot(request).await.unwrap();
        assert_eq!(answer.status(), status, "{path}");
        let text = answer.into_body().collect().await.unwrap().to_bytes();
        assert!(std::str::from_utf8(&text).unwrap().contains(says), "{path}: {text:?}");
    }
}
