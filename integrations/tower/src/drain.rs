//! Tests of what a hand-over does to streams.

use std::convert::Infallible;

use bytes::Bytes;
use futures::{FutureExt, stream};
use http::{Request, Response};
use http_body::{Body, Frame};
use http_body_util::{BodyExt, Full, StreamBody};
use tenure::{Leadership, TermEnd, TermEnded};
use tenure_http::{Drain, REASON};
use tower::{ServiceBuilder, ServiceExt};

use crate::{
    BoxError, LeaderBody, LeaderOnlyLayer,
    test_helpers::{Replica, fed, grpc_request, promptly, request},
};

/// The body that answers `request` on a leader that cuts streams.
async fn body_of<B>(leadership: &Leadership, request: Request<()>, body: B) -> LeaderBody<B> {
    let layer = LeaderOnlyLayer::new(leadership.clone()).drain(Drain::Cut);
    let mut body = Some(body);
    let inner = |_: Request<()>| {
        std::future::ready(Ok::<_, Infallible>(Response::new(body.take().expect("called once"))))
    };
    let service = ServiceBuilder::new().layer(layer).service_fn(inner);
    service.oneshot(request).await.unwrap().into_body()
}

fn is_cut(frame: Option<Result<Frame<Bytes>, BoxError>>) -> bool {
    let resigned = |error: BoxError| {
        error.downcast_ref::<TermEnded>().map(TermEnded::reason) == Some(TermEnd::Resigned)
    };
    frame.is_some_and(|frame| frame.is_err_and(resigned))
}

/// Never pends, and never ends.
fn flood() -> impl Body<Data = Bytes, Error = Infallible> + Unpin {
    StreamBody::new(stream::repeat_with(|| Ok(Frame::data(Bytes::from_static(b"more")))))
}

#[tokio::test]
async fn a_hand_over_cuts_streams_at_once_and_wakes_their_readers() {
    let (replica, term) = Replica::leading().await;
    let (feeder, inside) = fed();
    let mut body = Box::pin(body_of(&replica.leadership, request(), inside).await);
    feeder.feed(b"one");
    assert!(body.frame().await.unwrap().is_ok());

    let resigned = replica.leadership.resign();
    assert!(is_cut(promptly(body.frame()).await));
    assert!(feeder.is_dropped(), "the body inside outlives the cut");
    // The body itself is still here, but nothing of it is in flight.
    promptly(resigned).await;
    assert_eq!(term.end(), Some(TermEnd::Resigned));
}

#[tokio::test]
async fn a_stream_that_never_waits_is_cut_as_well() {
    let (replica, _term) = Replica::leading().await;
    let mut body = Box::pin(body_of(&replica.leadership, request(), flood()).await);
    assert!(body.frame().await.unwrap().is_ok());
    let resigned = replica.leadership.resign();
    let cut = async {
        while !is_cut(body.frame().await) {
            tokio::task::yield_now().await
        }
    };
    promptly(cut).await;
    promptly(resigned).await;
}

#[tokio::test]
async fn a_body_of_known_length_is_left_to_finish() {
    let (replica, term) = Replica::leading().await;
    let body = body_of(&replica.leadership, request(), Full::from("all of it")).await;
    let resigned = replica.leadership.resign();
    term.cancelled().await;
    assert_eq!(body.collect().await.unwrap().to_bytes(), "all of it");
    promptly(resigned).await;
}

#[tokio::test]
async fn a_short_answer_that_begins_during_the_hand_over_is_not_truncated() {
    let (replica, term) = Replica::leading().await;
    let frames = ["answer", ", at once"].map(|text| Ok::<_, Infallible>(Frame::data(text.into())));
    let inside = StreamBody::new(stream::iter(frames));
    let body = body_of(&replica.leadership, request(), inside).await;
    let resigned = replica.leadership.resign();
    term.cancelled().await;
    assert_eq!(body.collect().await.unwrap().to_bytes(), "answer, at once");
    promptly(resigned).await;
}

#[tokio::test]
async fn a_stream_that_begins_during_the_hand_over_is_cut_when_it_waits() {
    let (replica, term) = Replica::leading().await;
    let (feeder, inside) = fed();
    feeder.feed(b"one");
    let mut body = Box::pin(body_of(&replica.leadership, request(), inside).await);
    let resigned = replica.leadership.resign();
    term.cancelled().await;
    assert!(body.frame().await.unwrap().is_ok());
    assert!(is_cut(body.frame().now_or_never().expect("it does not wait")));
    promptly(resigned).await;
}

#[tokio::test]
async fn a_stream_of_grpc_ends_with_its_status() {
    let (replica, _term) = Replica::leading().await;
    let (_feeder, inside) = fed();
    let mut body = Box::pin(body_of(&replica.leadership, grpc_request(), inside).await);
    assert!(body.frame().now_or_never().is_none());
    let _resigned = replica.leadership.resign();
    let trailers = promptly(body.frame()).await.unwrap().unwrap().into_trailers().unwrap();
    assert_eq!(trailers["grpc-status"], "14");
    assert_eq!(trailers[REASON], "cut");
    assert!(body.is_end_stream());
    assert!(body.frame().await.is_none());
}
