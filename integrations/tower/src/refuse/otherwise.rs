//! Another service for requests that are refused.

use http::{Request, Response};
use tenure_http::Refusal;
use tower::util::Oneshot;
use tower_service::Service;

use super::Refuse;

/// Hands refused requests to another service. Made by
/// [`LeaderOnlyLayer::otherwise`](crate::LeaderOnlyLayer::otherwise).
#[derive(Clone, Debug)]
pub struct Otherwise<S> {
    service: S,
}

impl<S> Otherwise<S> {
    pub(crate) fn new(service: S) -> Self {
        Self { service }
    }
}

impl<A, E, S, B> Refuse<A, E> for Otherwise<S>
where
    S: Service<Request<A>, Response = Response<B>, Error = E> + Clone,
{
    type Body = B;
    type Future = Oneshot<S, Request<A>>;

    /// By a clone that is polled ready first: whether this service is ready was nobody's business before.
    fn refuse(&self, refusal: Refusal, mut request: Request<A>) -> Self::Future {
        request.extensions_mut().insert(refusal);
        Oneshot::new(self.service.clone(), request)
    }
}
