//! The tower layer at every point where axum takes one, and what each of them does to requests on a standby.

#![allow(clippy::unwrap_used)] // helpers of tests are tests

use std::time::Duration;

use axum::{
    Extension, Router,
    body::Body,
    http::{Request, Response, StatusCode},
    routing::{get, get_service, post},
};
use http_body_util::BodyExt;
use tenure::{Candidacy, Elector, Leadership, MemoryStore, Term};
use tenure_http::REASON;
use tenure_tower::LeaderOnlyLayer;
use tower::{ServiceBuilder, ServiceExt, limit::ConcurrencyLimitLayer};
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
