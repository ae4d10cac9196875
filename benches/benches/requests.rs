//! What the tower layer adds to a request, and what it costs to refuse one.

use std::{
    convert::Infallible,
    future::{Ready, ready},
    process::ExitCode,
    task::{Context, Poll},
};

use bytes::Bytes;
use futures::{FutureExt, executor::block_on};
use http::{Request, Response, StatusCode, header};
use http_body_util::{BodyExt, Full};
use tenure::{Clock, Elector, MemoryStore};
use tenure_benches::Ratios;
use tenure_tower::LeaderOnlyLayer;
use tower_layer::Layer;
use tower_service::Service;

type Body = Full<Bytes>;

/// Answers at once.
#[derive(Clone)]
struct Handler;

impl Service<Request<Body>> for Handler {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Ready<Result<Response<Body>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Request<Body>) -> Self::Future {
        ready(Ok(Response::new(Body::default())))
    }
}

/// A request whose extensions are there already, as hyper and axum make them.
fn request() -> Request<Body> {
    let mut request = Request::new(Body::default());
    request.extensions_mut().insert(1_u8);
    request
}

/// A service that is always ready, and never pends.
fn call<S>(service: &mut S) -> S::Response
where
    S: Service<Request<Body>>,
{
    match service.call(request()).now_or_never() {
        Some(Ok(response)) => response,
        _ => panic!("it answers at once"),
    }
}

fn main() -> ExitCode {
    let elector = Elector::builder("bench", MemoryStore::new()).build().expect("valid settings");
    let standby = Elector::builder("bench", MemoryStore::new()).build().expect("valid settings");
    let leadership = elector.leadership();
    let candidacy = elector.spawn();
    let term = block_on(leadership.leading()).expect("it leads");
    let clock = Clock::system();

    let mut leading = LeaderOnlyLayer::new(leadership.clone()).layer(Handler);
    let mut plain = LeaderOnlyLayer::new(leadership).without_extension().layer(Handler);
    let mut refusing = LeaderOnlyLayer::new(standby.leadership()).layer(Handler);

    let mut ratios = Ratios::default();
    // What no layer that compares the clock with a deadline before the call and at the poll, and that hands on its term,
    // could do without.
    let mut extensions = http::Extensions::new();
    let mut least = || {
        (clock.now(), clock.now(), extensions.insert(term.clone()).is_some(), extensions.clear())
    };
    let against = "two clock reads and an insert";
    let mut add = |what, service: &mut dyn FnMut()| {
        let mut bare = Handler;
        ratios.compare_added((what, service), || drop(call(&mut bare)), 3.0, (against, &mut least));
    };
    add("leading", &mut || drop(call(&mut leading)));
    add("leading, without extension", &mut || drop(call(&mut plain)));
    // The body is polled under the term as well, which compares the clock once more.
    let read = |response: Response<_>| BodyExt::collect(response.into_body()).now_or_never();
    let mut bare = Handler;
    ratios.compare_added(
        ("leading, and the body read", || read(call(&mut leading)).is_some()),
        || BodyExt::collect(call(&mut bare).into_body()).now_or_never().is_some(),
        3.0,
        (against, &mut least),
    );
    let by_hand = || {
        drop(request());
        Response::builder()
            .status(StatusCode::SERVICE_UNAVAILABLE)
            .header(header::RETRY_AFTER, "1")
            .header(header::CONTENT_TYPE, "application/problem+json")
            .header("x-by-hand", "refused")
            .body(Body::from(format!(
                "{{\"title\":\"Not the leader\",\"status\":503,\"detail\":\"{}\",\"election\":\"bench\"}}",
                "this replica does not lead; ask another one"
            )))
    };
    ratios.compare(("refused", || call(&mut refusing)), 2.0, ("the same built by hand", by_hand));

    drop(standby);
    block_on(candidacy.shutdown()).expect("it stops");
    ratios.verdict()
}
