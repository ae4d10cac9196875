//! What the layer allocates. A binary of its own, since the counting allocator replaces that of the whole program.

#![allow(clippy::unwrap_used)] // helpers of tests are tests

use std::{
    convert::Infallible,
    future::Future,
    pin::pin,
    task::{Context, Poll, Waker},
};

use allocation_counter::measure;
use bytes::Bytes;
use http::{Request, Response};
use http_body::Body;
use http_body_util::Full;
use tenure::{Candidacy, Elector, MemoryStore, Term};
use tenure_tower::LeaderOnlyLayer;
use tower::service_fn;
use tower_layer::Layer;
use tower_service::Service;

fn lead() -> (Candidacy, Term) {
    let candidacy = Elector::builder("billing", MemoryStore::new()).build().unwrap().spawn();
    let term = futures::executor::block_on(candidacy.leadership().leading()).unwrap();
    (candidacy, term)
}

/// As servers make them: something is in the extensions already.
fn request() -> Request<()> {
    let mut request = Request::new(());
    request.extensions_mut().insert("peer address");
    request
}

/// Allocations of one request whose handler is pending `pauses` times, from the call to the end of the body.
fn allocations(layer: &LeaderOnlyLayer, pauses: u32) -> u64 {
    let inner = move |_: Request<()>| {
        let mut left = pauses;
        std::future::poll_fn(move |cx| {
            if left == 0 {
                return Poll::Ready(Ok::<_, Infallible>(Response::new(Full::from("done"))));
            }
            left -= 1;
            cx.waker().wake_by_ref();
            Poll::Pending
        })
    };
    let mut service = layer.layer(service_fn(inner));
    let request = request();
    let mut cx = Context::from_waker(Waker::noop());
    let counted = measure(|| {
        let mut answer = pin!(service.call(request));
        let response = loop {
            if let Poll::Ready(response) = answer.as_mut().poll(&mut cx) {
                break response.unwrap();
            }
        };
        assert_eq!(response.status(), 200);
        let mut body = pin!(response.into_body());
        while let Poll::Ready(Some(frame)) = body.as_mut().poll_frame(&mut cx) {
            let data: Bytes = frame.unwrap().into_data().unwrap();
            assert_eq!(data, "done");
        }
        assert!(body.is_end_stream());
    });
    counted.count_total
}

#[test]
fn leading_allocates_nothing_besides_the_extension() {
    let (candidacy, term) = lead();
    let layer = LeaderOnlyLayer::new(candidacy.leadership());
    let mut by_hand = request();
    let insert = measure(|| {
        by_hand.extensions_mut().insert(term);
    });
    assert!(insert.count_total > 0, "the allocator is not counting");
    assert_eq!(allocations(&layer, 0), insert.count_total);
    assert_eq!(allocations(&layer, 3), insert.count_total);
}

#[test]
fn without_the_extension_leading_allocates_nothing() {
    let (candidacy, _term) = lead();
    let layer = LeaderOnlyLayer::new(candidacy.leadership()).without_extension();
    assert_eq!(allocations(&layer, 0), 0);
    assert_eq!(allocations(&layer, 3), 0);
}
