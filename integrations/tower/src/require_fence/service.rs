//! The service: where it is decided which requests are compared.

use std::{
    mem,
    task::{Context, Poll},
};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{Either, Full};
use tenure_http::{FenceRefusal, Form, Stamp};
use tower_service::Service;

use super::{KeepFences, RequireFenceFuture, layer::Rules};

/// Calls the inner service for requests of the latest term only. Made by [`RequireFence`](super::RequireFence).
///
/// The inner service is cloned for each stamped request, since it is called only when the fence was compared.
#[derive(Clone, Debug)]
pub struct RequireFenceService<S, K> {
    inner: S,
    rules: Rules,
    keep: K,
}

impl<S, K> RequireFenceService<S, K> {
    pub(super) fn new(inner: S, rules: Rules, keep: K) -> Self {
        Self { inner, rules, keep }
    }

    fn stamp<A>(&self, request: &Request<A>) -> Result<Option<Stamp>, FenceRefusal> {
        match Stamp::read(request.headers()).map_err(FenceRefusal::Malformed)? {
            None if self.rules.allow_unstamped => Ok(None),
            None => Err(FenceRefusal::Unstamped),
            Some(stamp) if self.rules.elections.contains(stamp.election()) => Ok(Some(stamp)),
            Some(stamp) => Err(FenceRefusal::Foreign { stamp }),
        }
    }
}

impl<S, K, A, B> Service<Request<A>> for RequireFenceService<S, K>
where
    S: Service<Request<A>, Response = Response<B>> + Clone,
    K: KeepFences,
{
    type Response = Response<Either<B, Full<Bytes>>>;
    type Error = S::Error;
    type Future = RequireFenceFuture<S, A, K::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<A>) -> Self::Future {
        match self.stamp(&request) {
            Ok(Some(stamp)) => {
                // The one that was polled ready is the one to be called.
                let clone = self.inner.clone();
                let ready = mem::replace(&mut self.inner, clone);
                RequireFenceFuture::comparing(self.keep.raise(&stamp), stamp, ready, request)
            }
            Ok(None) => RequireFenceFuture::calling(self.inner.call(request)),
            Err(refusal) => RequireFenceFuture::refused(&refusal, Form::of(&request)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{
        convert::Infallible,
        future::{Ready, ready},
        sync::{
            Arc,
            atomic::{AtomicU32, Ordering},
        },
    };

    use http::StatusCode;
    use http_body_util::BodyExt;
    use tenure::{ElectionName, Fence};
    use tenure_http::{FENCE, REASON};
    use tower::{Layer, ServiceExt, limit::ConcurrencyLimitLayer, service_fn};

    use super::*;
    use crate::{RequireFence, test_helpers::request};

    fn election(name: &str) -> ElectionName {
        ElectionName::new(name).unwrap()
    }

    fn stamped(name: &str, fence: i64) -> Request<()> {
        let mut request = request();
        let stamp = Stamp::new(election(name), Fence::try_from(fence).unwrap());
        stamp.write(request.headers_mut());
        request
    }

    /// Says under which fence it works.
    async fn work(request: Request<()>) -> Result<Response<Full<Bytes>>, Infallible> {
        let stamp = request.extensions().get::<Stamp>();
        let fence = stamp.map_or("none".into(), |stamp| stamp.fence().to_string());
        Ok(Response::new(Full::from(fence)))
    }

    async fn status<K>(layer: &RequireFence<K>, request: Request<()>) -> StatusCode
    where
        K: KeepFences + Clone,
    {
        let response = layer.layer(service_fn(work)).oneshot(request).await.unwrap();
        assert_eq!(response.status() != 200, response.headers().contains_key(REASON));
        response.status()
    }

    #[tokio::test]
    async fn only_the_latest_term_that_was_seen_is_let_through() {
        let layer = RequireFence::new(election("billing"));
        for (fence, expected) in [(5, 200), (5, 200), (4, 412), (7, 200), (5, 412), (7, 200)] {
            assert_eq!(status(&layer, stamped("billing", fence)).await, expected, "{fence}");
        }
    }

    #[tokio::test]
    async fn the_handler_finds_the_stamp_and_the_late_one_is_told_why() {
        let service = RequireFence::new(election("billing")).layer(service_fn(work));
        let served = service.clone().oneshot(stamped("billing", 7)).await.unwrap();
        assert_eq!(served.into_body().collect().await.unwrap().to_bytes(), "7");
        let refused = service.oneshot(stamped("billing", 5)).await.unwrap();
        assert_eq!(refused.headers()[REASON], "outdated");
        let body = refused.into_body().collect().await.unwrap().to_bytes();
        let body: serde_json::Value = serde_json::from_slice(&body).unwrap();
        assert_eq!((&body["fence"], &body["highest"]), (&5.into(), &7.into()));
    }

    #[tokio::test]
    async fn each_election_has_fences_of_its_own_and_strangers_have_none() {
        let layer = RequireFence::new(election("billing")).or_of(election("mail"));
        assert_eq!(status(&layer, stamped("billing", 7)).await, 200);
        assert_eq!(status(&layer, stamped("mail", 1)).await, 200);
        assert_eq!(status(&layer, stamped("other", 9)).await, 412);
        assert_eq!(status(&layer, stamped("mail", 1)).await, 200);
    }

    #[tokio::test]
    async fn a_request_without_a_stamp_is_refused_unless_that_is_allowed() {
        let layer = RequireFence::new(election("billing"));
        assert_eq!(status(&layer, request()).await, 428);
        let layer = layer.allow_unstamped();
        assert_eq!(status(&layer, request()).await, 200);
        let mut half = request();
        half.headers_mut().insert(FENCE, 7.into());
        assert_eq!(status(&layer, half).await, 400);
    }

    /// Answers the same, whatever it is asked.
    #[derive(Clone)]
    struct Fixed(Result<i64, &'static str>);

    impl KeepFences for Fixed {
        type Error = &'static str;
        type Future = Ready<Result<Fence, &'static str>>;

        fn raise(&self, _: &Stamp) -> Self::Future {
            ready(self.0.map(|fence| Fence::try_from(fence).unwrap()))
        }
    }

    #[tokio::test]
    async fn what_a_keeper_does_not_know_or_forgets_is_refused() {
        let layer = |fixed| RequireFence::new(election("billing")).kept_by(Fixed(fixed));
        assert_eq!(status(&layer(Ok(7)), stamped("billing", 7)).await, 200);
        assert_eq!(status(&layer(Ok(9)), stamped("billing", 7)).await, 412);
        assert_eq!(status(&layer(Ok(1)), stamped("billing", 7)).await, 503);
        assert_eq!(status(&layer(Err("gone")), stamped("billing", 7)).await, 503);
    }

    #[tokio::test]
    async fn the_instance_that_was_polled_ready_is_the_one_called() {
        let calls = Arc::new(AtomicU32::new(0));
        let counted = calls.clone();
        let inner = service_fn(move |request| {
            counted.fetch_add(1, Ordering::Relaxed);
            work(request)
        });
        // Panics if a clone is called that was not polled ready.
        let inner = ConcurrencyLimitLayer::new(1).layer(inner);
        let mut service = RequireFence::new(election("billing")).layer(inner);
        for fence in [1, 2, 1, 3] {
            let ready = ServiceExt::<Request<()>>::ready(&mut service).await.unwrap();
            ready.call(stamped("billing", fence)).await.unwrap();
        }
        assert_eq!(calls.load(Ordering::Relaxed), 3);
    }
}
