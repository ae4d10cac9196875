//! Two services: leaders that write, and a ledger that refuses the late request of one that was frozen meanwhile.

#![allow(clippy::unwrap_used)] // helpers of tests are tests

mod adapters_support;

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex},
};

use adapters_support::{Leader, promptly, serve, text};
use axum::{
    Extension, Router,
    body::Body,
    http::{Request, StatusCode},
    routing::post,
};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::TokioExecutor,
};
use tenure::ElectionName;
use tenure_axum::{FenceHeader, LeaderOnlyLayer, LeaderTerm, RequireFence};
use tenure_http::{REASON, Stamp};
use tokio::sync::Notify;
use tower::{Layer, Service, ServiceExt};

/// Keeps entries in the order in which they came, with the fences under which they were made.
#[derive(Clone, Default)]
struct Ledger(Arc<Mutex<Vec<(i64, String)>>>);

impl Ledger {
    fn service(&self) -> Router {
        let ledger = self.clone();
        let add = move |Extension(stamp): Extension<Stamp>, entry: String| async move {
            ledger.0.lock().unwrap().push((stamp.fence().into(), entry));
        };
        let election = ElectionName::new("adapters").unwrap();
        Router::new().route("/entries", post(add)).route_layer(RequireFence::new(election))
    }

    fn entries(&self) -> Vec<(i64, String)> {
        self.0.lock().unwrap().clone()
    }
}

type Http = Client<HttpConnector, Body>;

/// Sends an entry in the name of whatever term is in the request's extensions.
async fn add(client: Http, request: Request<Body>) -> (StatusCode, String) {
    let mut client = FenceHeader::new().layer(client);
    let response = client.ready().await.unwrap().call(request).await.unwrap();
    let reason = response.headers().get(REASON);
    let reason = reason.map(|reason| reason.to_str().unwrap().to_owned()).unwrap_or_default();
    (response.status(), reason)
}

/// `POST /work` adds an entry to the ledger. `POST /frozen` has a request in hand, and sends it when it is thawed: what
/// happens to a leader whose machine stands still just before the request leaves.
fn worker(leader: &Leader, ledger: SocketAddr, thaw: Arc<Notify>) -> Router {
    let client: Http = Client::builder(TokioExecutor::new()).build_http();
    let entry = move |term: tenure::Term, text: &'static str| {
        let request = Request::post(format!("http://{ledger}/entries")).extension(term);
        request.body(Body::from(text)).unwrap()
    };
    let (work, frozen) = (client.clone(), client);
    let work = move |LeaderTerm(term): LeaderTerm| async move {
        add(work, entry(term, "in time")).await.0
    };
    let frozen = move |LeaderTerm(term): LeaderTerm| async move {
        let request = entry(term, "too late");
        // Not under the term, so that nothing stops it, as nothing stops what the network has already.
        let sent = tokio::spawn(async move {
            thaw.notified().await;
            add(frozen, request).await
        });
        let (status, reason) = sent.await.unwrap();
        format!("{status} {reason}")
    };
    Router::new()
        .route("/work", post(work))
        .route_layer(LeaderOnlyLayer::new(leader.leadership.clone()))
        // Its handler has to live on after the term, to tell us how it went.
        .merge(Router::new().route("/frozen", post(frozen)))
}

fn ask(path: &str) -> Request<Body> {
    Request::post(path).body(Body::empty()).unwrap()
}

#[tokio::test]
async fn a_frozen_leaders_late_request_is_refused_by_the_service_it_was_meant_for() {
    let ledger = Ledger::default();
    let address = serve(ledger.service()).await;
    let leader = Leader::patient().await;
    let thaw = Arc::new(Notify::new());
    let app = worker(&leader, address, thaw.clone());

    // The answer is dropped at once: it is in flight for as long as somebody has it.
    assert_eq!(app.clone().oneshot(ask("/work")).await.unwrap().status(), StatusCode::OK);

    let mut in_hand = ask("/frozen");
    in_hand.extensions_mut().insert(leader.term.clone());
    let late = tokio::spawn(app.clone().oneshot(in_hand));

    // Meanwhile somebody else leads, and writes.
    promptly(leader.leadership.resign()).await;
    let next = promptly(leader.leadership.leading()).await.unwrap();
    assert_eq!(app.oneshot(ask("/work")).await.unwrap().status(), StatusCode::OK);

    thaw.notify_one();
    let late = text(late.await.unwrap().unwrap().into_body()).await;
    assert_eq!(late, "412 Precondition Failed outdated");
    let fences = [&leader.term, &next].map(|term| (term.fence().into(), "in time".to_owned()));
    assert_eq!(ledger.entries(), fences);
}

#[tokio::test]
async fn what_does_not_say_who_sent_it_is_refused() {
    let ledger = Ledger::default();
    let address = serve(ledger.service()).await;
    let client: Http = Client::builder(TokioExecutor::new()).build_http();
    let unstamped = Request::post(format!("http://{address}/entries")).body(Body::from("whose?"));
    let refused = add(client, unstamped.unwrap()).await;
    assert_eq!(refused, (StatusCode::PRECONDITION_REQUIRED, "unstamped".into()));
    assert_eq!(ledger.entries(), []);
}
