//! The tower layer behind HTTP/2, and right under hyper without a framework.

#![allow(clippy::unwrap_used)] // helpers of tests are tests

mod adapters_support;

use std::{convert::Infallible, net::SocketAddr};

use adapters_support::{Leader, http1, http2, listen, serve, standby, text};
use axum::{Extension, Router, body::Body, routing::get};
use bytes::Bytes;
use futures::{StreamExt, stream};
use http::{
    Request, Response, StatusCode,
    header::{CONNECTION, LOCATION},
};
use http_body_util::{BodyExt, Empty, Full};
use hyper::{
    body::Incoming,
    server::conn::{http1 as server1, http2 as server2},
};
use hyper_util::{
    rt::{TokioExecutor, TokioIo},
    service::TowerToHyperService,
};
use tenure::{Elector, Leadership, MemoryStore, Term};
use tenure_http::REASON;
use tenure_tower::LeaderOnlyLayer;
use tower::ServiceBuilder;

fn to(address: SocketAddr, path: &str) -> Request<Empty<Bytes>> {
    Request::get(format!("http://{address}{path}")).body(Empty::new()).unwrap()
}

fn app(leadership: &Leadership) -> Router {
    let endless = || async {
        let lines = stream::iter(["one\n"]).chain(stream::pending());
        Body::from_stream(lines.map(Ok::<_, Infallible>))
    };
    Router::new()
        .route(
            "/fence",
            get(|Extension(term): Extension<Term>| async move { term.fence().to_string() }),
        )
        .route("/endless", get(endless))
        .route_layer(LeaderOnlyLayer::new(leadership.clone()))
}

#[tokio::test]
async fn a_refusal_leaves_the_connection_to_other_requests() {
    let address = serve(app(&standby())).await;
    let mut client = http2(address).await;
    for _ in 0..2 {
        let refused = client.send_request(to(address, "/fence")).await.unwrap();
        assert_eq!(refused.status(), StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(refused.headers()[REASON], "refused");
        assert!(!refused.headers().contains_key(CONNECTION));
    }
}

#[tokio::test]
async fn a_body_that_was_cut_is_reset_and_the_connection_lives_on() {
    let mut leader = Leader::patient().await;
    let address = serve(app(&leader.leadership)).await;
    let mut client = http2(address).await;
    let fence = client.send_request(to(address, "/fence")).await.unwrap();
    assert_eq!(text(fence.into_body()).await, leader.term.fence().to_string());

    let mut body = client.send_request(to(address, "/endless")).await.unwrap().into_body();
    assert_eq!(body.frame().await.unwrap().unwrap().into_data().unwrap(), "one\n");
    leader.end_the_term().await;
    let cut = body.frame().await.expect("the body ended as if it were whole");
    assert!(cut.is_err(), "{cut:?}");
    let refused = client.send_request(to(address, "/fence")).await.unwrap();
    assert_eq!(refused.headers()[REASON], "refused");
}

#[tokio::test]
async fn right_under_hyper_it_serves_both_versions() {
    let leader = Leader::patient().await;
    for (leadership, status) in [(standby(), 503), (leader.leadership.clone(), 200)] {
        let service = ServiceBuilder::new().layer(LeaderOnlyLayer::new(leadership)).service_fn(
            async |_: Request<Incoming>| {
                Ok::<_, Infallible>(Response::new(Full::<Bytes>::from("led")))
            },
        );
        let service = TowerToHyperService::new(service);
        let (listener, address) = listen().await;
        tokio::spawn(async move {
            let first = TokioIo::new(listener.accept().await.unwrap().0);
            tokio::spawn(server1::Builder::new().serve_connection(first, service.clone()));
            let second = TokioIo::new(listener.accept().await.unwrap().0);
            let http2 = server2::Builder::new(TokioExecutor::new());
            let _ = http2.serve_connection(second, service).await;
        });
        let over_1 = http1(address).await.send_request(to(address, "/")).await.unwrap();
        assert_eq!(over_1.status(), status);
        let over_2 = http2(address).await.send_request(to(address, "/")).await.unwrap();
        assert_eq!(over_2.status(), status);
    }
}

/// HTTP/2 names the host in the URI, and not in a header.
#[tokio::test]
async fn redirects_lead_to_the_leader_but_never_back_to_the_same_address() {
    let store = MemoryStore::new();
    let contender = |payload: &str| {
        Elector::builder("adapters", store.clone()).payload(payload).build().unwrap().spawn()
    };
    let leader = contender("http://leader.example:8080/app");
    leader.leadership().leading().await.unwrap();
    let standby = contender("");
    let mut watch = standby.leadership().watch();
    watch.wait_for(|status| status.leader().is_some()).await.unwrap();

    let gate = LeaderOnlyLayer::new(standby.leadership()).redirect_to_leader();
    let address = serve(Router::new().route("/jobs", get(|| async {})).route_layer(gate)).await;
    let mut client = http2(address).await;
    let led = client.send_request(to(address, "/jobs?kind=daily")).await.unwrap();
    assert_eq!(led.status(), StatusCode::TEMPORARY_REDIRECT);
    assert_eq!(led.headers()[LOCATION], "http://leader.example:8080/app/jobs?kind=daily");

    // As if all published the address of the balancer in front of them.
    leader.leadership().set_payload(format!("http://{address}")).unwrap();
    let published = format!("http://{address}");
    watch
        .wait_for(|status| status.leader_payload().and_then(|it| it.as_str()) == Some(&published))
        .await
        .unwrap();
    let refused = client.send_request(to(address, "/jobs")).await.unwrap();
    assert_eq!(refused.status(), StatusCode::SERVICE_UNAVAILABLE);
    leader.shutdown().await.unwrap();
    standby.shutdown().await.unwrap();
}
