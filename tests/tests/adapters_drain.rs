//! A hand-over with many requests in flight, over real connections.

#![allow(clippy::unwrap_used)] // helpers of tests are tests

mod adapters_support;

use std::{convert::Infallible, sync::Arc};

use adapters_support::{Counter, Leader, http1, promptly, serve, text, until};
use axum::{Router, body::Body, extract::Path, http::Request, routing::get};
use bytes::Bytes;
use futures::{StreamExt, future::join_all, stream};
use http::{Response, StatusCode, header::CONNECTION};
use http_body_util::Empty;
use hyper::{body::Incoming, client::conn::http1::SendRequest};
use tenure::{Elector, TermEnd};
use tenure_axum::{Drain, LeaderOnlyLayer};
use tenure_http::REASON;
use tokio::sync::Semaphore;

const PLAIN: u64 = 60;
const STREAMS: u64 = 40;

/// A service whose handlers and streams wait for a permit each.
#[derive(Clone)]
struct Gate {
    gate: Arc<Semaphore>,
    waiting: Counter,
}

impl Gate {
    fn closed() -> Self {
        Self { gate: Arc::new(Semaphore::new(0)), waiting: Counter::default() }
    }

    async fn pass(&self) {
        let _waiting = self.waiting.enter();
        self.gate.acquire().await.unwrap().forget();
    }

    fn routes(&self) -> Router {
        let (plain, streaming) = (self.clone(), self.clone());
        let plain = move |Path(number): Path<u64>| async move {
            plain.pass().await;
            format!("answer {number}")
        };
        let streaming = move |Path(number): Path<u64>| async move {
            let begin = stream::iter([format!("begin {number}, ")]);
            let end = stream::once(async move {
                streaming.pass().await;
                format!("end {number}")
            });
            Body::from_stream(begin.chain(end).map(Ok::<_, Infallible>))
        };
        Router::new().route("/plain/{number}", get(plain)).route("/stream/{number}", get(streaming))
    }
}

async fn ask(client: &mut SendRequest<Empty<Bytes>>, path: String) -> Response<Incoming> {
    let request = Request::get(path).header("host", "replica").body(Empty::new()).unwrap();
    client.send_request(request).await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hand_over_finishes_a_hundred_requests_refuses_new_ones_at_once_and_only_then_releases() {
    let leader = Leader::patient().await;
    let successor = Elector::builder("adapters", leader.store.clone()).build().unwrap().spawn();
    let service = Gate::closed();
    let app = service.routes().route_layer(LeaderOnlyLayer::new(leader.leadership.clone()));
    let address = serve(app).await;

    let plain = (0..PLAIN).map(async |number| {
        let answered = ask(&mut http1(address).await, format!("/plain/{number}")).await;
        assert_eq!(answered.status(), StatusCode::OK);
        assert_eq!(text(answered.into_body()).await, format!("answer {number}"));
    });
    let streams = (0..STREAMS).map(async |number| {
        let answered = ask(&mut http1(address).await, format!("/stream/{number}")).await;
        assert_eq!(answered.status(), StatusCode::OK);
        assert_eq!(text(answered.into_body()).await, format!("begin {number}, end {number}"));
    });

    let hand_over = async {
        // One connection was there before, as a client keeps it.
        let mut kept = http1(address).await;
        until(|| service.waiting.value() == PLAIN + STREAMS).await;
        let resigned = leader.leadership.resign();
        leader.term.cancelled().await;

        for client in [&mut kept, &mut http1(address).await] {
            let refused = promptly(ask(client, "/plain/100".into())).await;
            assert_eq!(refused.status(), StatusCode::SERVICE_UNAVAILABLE);
            assert_eq!(refused.headers()[REASON], "refused");
            assert_eq!(refused.headers()[CONNECTION], "close");
            assert!(text(refused.into_body()).await.contains("adapters"));
            // The server has closed it.
            until(|| client.is_closed()).await;
        }

        // All but one are let through: the lease stays where it is.
        service.gate.add_permits((PLAIN + STREAMS - 1) as usize);
        until(|| service.waiting.value() == 1).await;
        assert_eq!(leader.term.end(), None, "the hand-over did not wait for the last one");
        assert!(!successor.leadership().is_leader());
        service.gate.add_permits(1);
        promptly(resigned).await;
        assert_eq!(leader.term.end(), Some(TermEnd::Resigned));
        assert_eq!(service.waiting.value(), 0, "the lease was released over work in flight");
        let next = promptly(successor.leadership().leading()).await.unwrap();
        assert!(next.fence() > leader.term.fence());
    };
    tokio::join!(join_all(plain), join_all(streams), hand_over);
    successor.shutdown().await.unwrap();
}

#[tokio::test]
async fn where_streams_are_cut_the_others_are_still_finished() {
    let leader = Leader::patient().await;
    let service = Gate::closed();
    let layer = LeaderOnlyLayer::new(leader.leadership.clone()).drain(Drain::Cut);
    let address = serve(service.routes().route_layer(layer)).await;

    let mut client = http1(address).await;
    let plain = ask(&mut client, "/plain/1".into());
    let stream = async {
        let answered = ask(&mut http1(address).await, "/stream/2".into()).await;
        http_body_util::BodyExt::collect(answered.into_body()).await
    };
    let hand_over = async {
        until(|| service.waiting.value() == 2).await;
        let resigned = leader.leadership.resign();
        // The stream waits for ever, and is gone.
        until(|| service.waiting.value() == 1).await;
        assert_eq!(leader.term.end(), None, "the hand-over did not wait for the handler");
        service.gate.add_permits(1);
        promptly(resigned).await;
    };
    let (plain, stream, ()) = tokio::join!(plain, stream, hand_over);
    assert_eq!(text(plain.into_body()).await, "answer 1");
    assert!(stream.is_err(), "a truncated body ended as if it were whole");
}
