//! The service: where it is decided whether a request is refused.

use std::task::{Context, Poll};

use http::{Request, Response};
use tenure::Leadership;
use tenure_http::Form;
use tower_service::Service;

use crate::{LeaderBody, LeaderFuture, Refuse, Unavailable, layer::Options};

/// Calls the inner service while this replica leads, and refuses otherwise. Made by
/// [`LeaderOnlyLayer`](crate::LeaderOnlyLayer).
///
/// Errors of the inner service pass through unchanged; neither a refusal nor the end of a term is one.
#[derive(Clone, Debug)]
pub struct LeaderOnlyService<S, R = Unavailable> {
    inner: S,
    leadership: Leadership,
    options: Options,
    refuse: R,
}

impl<S, R> LeaderOnlyService<S, R> {
    pub(crate) fn new(inner: S, leadership: Leadership, options: Options, refuse: R) -> Self {
        Self { inner, leadership, options, refuse }
    }

    /// The service inside.
    #[must_use]
    pub fn get_ref(&self) -> &S {
        &self.inner
    }

    /// The service inside.
    #[must_use]
    pub fn get_mut(&mut self) -> &mut S {
        &mut self.inner
    }

    /// The service inside, without what was around it.
    #[must_use]
    pub fn into_inner(self) -> S {
        self.inner
    }
}

impl<S, R, A, B> Service<Request<A>> for LeaderOnlyService<S, R>
where
    S: Service<Request<A>, Response = Response<B>>,
    R: Refuse<A, S::Error>,
{
    type Response = Response<LeaderBody<B, R::Body>>;
    type Error = S::Error;
    type Future = LeaderFuture<S::Future, R::Future>;

    /// Ready when the inner service is. Whether this replica leads is asked in `call`: an answer given here might be
    /// minutes old by then, and `Pending` would queue what is to be refused.
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, mut request: Request<A>) -> Self::Future {
        // Guarded until this returns: the inner service may work in `call` already, before its future is polled.
        let Some((in_flight, _guard)) = self.leadership.admit() else {
            let refusal = self.options.refusals.refusal(&self.leadership);
            return LeaderFuture::refused(self.refuse.refuse(refusal, request));
        };
        let form = Form::of(&request);
        if self.options.extension {
            request.extensions_mut().insert(in_flight.term().clone());
        }
        LeaderFuture::leading(self.inner.call(request), in_flight, form, self.options.drain)
    }
}

#[cfg(test)]
mod tests {
    use std::{
        convert::Infallible,
        future::{Ready, pending, ready},
        time::Duration,
    };

    use bytes::Bytes;
    use http::{StatusCode, header::RETRY_AFTER};
    use http_body_util::{BodyExt, Empty, Full};
    use tenure::{Elector, MemoryStore, Term};
    use tenure_http::{REASON, RetryAfter};
    use tower::{ServiceBuilder, ServiceExt, service_fn};
    use tower_layer::Layer;

    use super::*;
    use crate::{
        LeaderOnlyLayer,
        test_helpers::{Replica, Standby, request},
    };

    async fn says(text: &'static str) -> Result<Response<Full<Bytes>>, Infallible> {
        Ok(Response::new(Full::from(text)))
    }

    async fn never(_: Request<()>) -> Result<Response<Full<Bytes>>, Infallible> {
        panic!("a standby called the inner service")
    }

    #[tokio::test]
    async fn a_standby_refuses_and_never_calls_the_inner_service() {
        let elector = Replica::elector();
        let service = LeaderOnlyLayer::new(elector.leadership());
        let service = ServiceBuilder::new().layer(service).service_fn(never);

        let (head, body) = service.oneshot(request()).await.unwrap().into_parts();
        assert_eq!(head.status, StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(head.headers[REASON], "refused");
        assert_eq!(head.headers[RETRY_AFTER], "1");
        let body = body.collect().await.unwrap().to_bytes();
        let body: serde_json::Value = serde_json::from_slice(&body).unwrap();
        assert_eq!(body["election"], "billing");
        assert!(body.get("leader").is_none());
    }

    #[tokio::test]
    async fn what_has_ended_is_refused_even_if_the_elector_is_gone() {
        let (replica, _) = Replica::leading().await;
        let layer = LeaderOnlyLayer::new(replica.leadership.clone());
        replica.end_the_term().await;

        let service = ServiceBuilder::new().layer(layer).service_fn(never);
        let response = service.oneshot(request()).await.unwrap();
        assert_eq!(response.headers()[REASON], "refused");
    }

    #[tokio::test]
    async fn who_leads_is_told_only_if_asked_for() {
        let standby = Standby::of_a_leader_at("http://10.0.0.7:8080").await;
        let layer = LeaderOnlyLayer::new(standby.leadership.clone()).advertise_leader();
        let service = ServiceBuilder::new().layer(layer).service_fn(never);
        let body = service.oneshot(request()).await.unwrap().into_body();
        let body = body.collect().await.unwrap().to_bytes();
        let body: serde_json::Value = serde_json::from_slice(&body).unwrap();
        assert_eq!(body["leader"]["identity"], standby.term_of_leader.identity().as_str());
        assert_eq!(body["leader"]["payload"], "http://10.0.0.7:8080");
    }

    #[tokio::test]
    async fn a_standby_asks_clients_to_come_back_when_the_lease_will_have_run_out() {
        const LEASE: Duration = Duration::from_secs(3_000);
        let store = MemoryStore::new();
        let contender = || Elector::builder("billing", store.clone()).lease_duration(LEASE);
        let leader = contender().build().unwrap().spawn();
        leader.leadership().leading().await.unwrap();
        let standby = contender().build().unwrap().spawn();
        let mut watch = standby.leadership().watch();
        watch.wait_for(|status| status.leader().is_some()).await.unwrap();

        let layer = LeaderOnlyLayer::new(standby.leadership());
        let service = ServiceBuilder::new().layer(layer).service_fn(never);
        let refused = service.oneshot(request()).await.unwrap();
        let after: u64 = refused.headers()[RETRY_AFTER].to_str().unwrap().parse().unwrap();
        // Less what this test has taken by now.
        assert!((1_000..=3_000).contains(&after), "{after} s of a lease of {LEASE:?}");

        let fixed = RetryAfter::Fixed(Duration::from_millis(1_500));
        let layer = LeaderOnlyLayer::new(standby.leadership()).retry_after(fixed);
        let service = ServiceBuilder::new().layer(layer).service_fn(never);
        let refused = service.oneshot(request()).await.unwrap();
        assert_eq!(refused.headers()[RETRY_AFTER], "2");
    }

    #[tokio::test]
    async fn the_handler_finds_its_term_in_the_extensions() {
        let (replica, term) = Replica::leading().await;
        let layer = LeaderOnlyLayer::new(replica.leadership.clone());
        let inner = |request: Request<()>| {
            assert_eq!(request.extensions().get(), Some(&term));
            says("led")
        };
        let service = ServiceBuilder::new().layer(layer).service_fn(inner);

        let response = service.oneshot(request()).await.unwrap();
        assert_eq!(response.status(), StatusCode::OK);
        assert_eq!(response.into_body().collect().await.unwrap().to_bytes(), "led");
    }

    #[tokio::test]
    async fn without_extension_the_request_arrives_as_it_was() {
        let (replica, _term) = Replica::leading().await;
        let layer = LeaderOnlyLayer::new(replica.leadership.clone()).without_extension();
        let inner = |request: Request<()>| {
            assert!(request.extensions().get::<Term>().is_none());
            says("led")
        };
        let service = ServiceBuilder::new().layer(layer).service_fn(inner);

        assert_eq!(service.oneshot(request()).await.unwrap().status(), StatusCode::OK);
    }

    #[tokio::test]
    async fn errors_of_the_inner_service_stay_what_they_are() {
        let (replica, _term) = Replica::leading().await;
        let layer = LeaderOnlyLayer::new(replica.leadership.clone());
        let inner = |_| ready(Err::<Response<Full<Bytes>>, _>("out of paper"));
        let service = ServiceBuilder::new().layer(layer).service_fn(inner);

        let error: &'static str = service.oneshot(request()).await.unwrap_err();
        assert_eq!(error, "out of paper");
    }

    /// Works only if the very instance is called that was polled ready, as tower asks for.
    #[derive(Debug, Default)]
    struct Reserved {
        ready: bool,
    }

    impl Clone for Reserved {
        fn clone(&self) -> Self {
            Self::default()
        }
    }

    impl Service<Request<()>> for Reserved {
        type Response = Response<Empty<Bytes>>;
        type Error = Infallible;
        type Future = Ready<Result<Self::Response, Infallible>>;

        fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
            self.ready = true;
            Poll::Ready(Ok(()))
        }

        fn call(&mut self, _: Request<()>) -> Self::Future {
            assert!(std::mem::take(&mut self.ready), "called without having been polled ready");
            ready(Ok(Response::default()))
        }
    }

    #[tokio::test]
    async fn the_instance_that_was_polled_ready_is_the_one_called() {
        let (replica, _term) = Replica::leading().await;
        let layer = LeaderOnlyLayer::new(replica.leadership.clone());
        let mut service = layer.layer(Reserved::default());
        for _ in 0..3 {
            let response = service.ready().await.unwrap().call(request()).await.unwrap();
            assert_eq!(response.status(), StatusCode::OK);
        }
    }

    #[tokio::test]
    async fn a_limit_around_it_is_free_again_after_a_refusal_and_after_a_cut() {
        let (replica, term) = Replica::leading().await;
        let layer = LeaderOnlyLayer::new(replica.leadership.clone());
        let inner =
            service_fn(|_: Request<()>| pending::<Result<Response<Full<Bytes>>, Infallible>>());
        let mut service = ServiceBuilder::new().concurrency_limit(1).layer(layer).service(inner);

        let working = service.ready().await.unwrap().call(request());
        replica.end_the_term().await;
        let cut = working.await.unwrap();
        assert_eq!(cut.headers()[REASON], "cut");
        let body: serde_json::Value =
            serde_json::from_slice(&cut.into_body().collect().await.unwrap().to_bytes()).unwrap();
        assert_eq!(body["fence"], u64::from(term.fence()));

        for _ in 0..3 {
            let refused = service.ready().await.unwrap().call(request()).await.unwrap();
            assert_eq!(refused.headers()[REASON], "refused");
        }
    }
}
