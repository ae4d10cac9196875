//! What a gate costs in axum and in actix-web: a trivial route, asked in process, with it and without, and a refusal.

use std::process::ExitCode;

use actix_web::{
    App,
    body::to_bytes,
    dev::{HttpServiceFactory, Service as _},
    test::{TestRequest, init_service},
    web,
};
use axum::{Router, body::Body, routing::get};
use futures::{FutureExt, executor::block_on};
use http::Request;
use http_body_util::BodyExt;
use tenure::{Elector, MemoryStore};
use tenure_actix_web::LeaderOnly;
use tenure_axum::LeaderOnlyLayer;
use tenure_benches::{Failure, Ratios};
use tower_service::Service as _;

/// How many times as long a request may take with the gate as without.
const LEADING: f64 = 2.0;
/// How many times as long a refusal may take as an answer without the gate.
const REFUSED: f64 = 3.0;

const GATED: [&str; 3] = ["leading", "leading, without extension", "refused"];

fn main() -> Result<ExitCode, Failure> {
    let elector = Elector::builder("bench", MemoryStore::new()).build()?;
    let standby = Elector::builder("bench", MemoryStore::new()).build()?.leadership();
    let leader = elector.leadership();
    let candidacy = elector.spawn();
    block_on(leader.leading())?;

    let mut ratios = Ratios::default();
    let route = || Router::new().route("/job", get(async || "done"));
    let gate = LeaderOnlyLayer::new(leader.clone());
    let gates = [gate.clone(), gate.without_extension(), LeaderOnlyLayer::new(standby.clone())];
    let bare = asking_axum(route());
    let gated = gates.map(|gate| asking_axum(route().route_layer(gate)));
    compare(&mut ratios, "axum", bare, gated);

    let route = || web::resource("/job").route(web::get().to(async || "done"));
    let gate = LeaderOnly::new(leader);
    let gates = [gate.clone(), gate.without_extension(), LeaderOnly::new(standby)];
    let bare = asking_actix_web(route());
    let gated = gates.map(|gate| asking_actix_web(route().wrap(gate)));
    compare(&mut ratios, "actix-web", bare, gated);

    block_on(candidacy.shutdown())?;
    Ok(ratios.verdict())
}

/// Each of `gated`, of which the last refuses, with `bare`. Each gives the status that it is answered with.
fn compare(
    ratios: &mut Ratios,
    framework: &str,
    mut bare: impl FnMut() -> u16,
    gated: [impl FnMut() -> u16; 3],
) {
    println!("{framework}");
    for (what, mut gated) in GATED.into_iter().zip(gated) {
        let (status, limit) = if what == "refused" { (503, REFUSED) } else { (200, LEADING) };
        assert_eq!((gated(), bare()), (status, 200), "{framework}: {what}");
        ratios.compare((what, gated), limit, ("the route without it", &mut bare));
    }
}

/// Sends one request, and reads the whole answer.
fn asking_axum(mut app: Router) -> impl FnMut() -> u16 {
    move || {
        let asked = app.call(Request::get("/job").body(Body::empty()).expect("valid"));
        let answer = asked.now_or_never().expect("it answers at once").expect("it never fails");
        let status = answer.status();
        let body = answer.into_body().collect().now_or_never();
        assert!(body.is_some_and(|body| body.is_ok()));
        status.into()
    }
}

/// The same in the other framework.
fn asking_actix_web(service: impl HttpServiceFactory + 'static) -> impl FnMut() -> u16 {
    let app = block_on(init_service(App::new().service(service)));
    move || {
        let asked = app.call(TestRequest::get().uri("/job").to_request());
        let answer = asked.now_or_never().expect("it answers at once").expect("it never fails");
        let status = answer.status();
        let body = to_bytes(answer.into_body()).now_or_never();
        assert!(body.is_some_and(|body| body.is_ok()));
        status.into()
    }
}
