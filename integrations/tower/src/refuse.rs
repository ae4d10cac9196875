//! What answers a request that is refused.

use std::future::{Future, Ready, ready};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use tenure_http::Refusal;

/// Answers a request that the inner service does not get to see.
///
/// `A` is the request's body, `E` the error of the service, which stays what it is: a refusal is a response.
///
/// It is only asked for requests that were turned away before anything looked at them. A request that was cut by the
/// end of a term is never given to it, since it may have had its effect already.
pub trait Refuse<A, E> {
    /// The body of the answer.
    type Body;
    /// Gives the answer.
    type Future: Future<Output = Result<Response<Self::Body>, E>>;

    /// Answers `request`, given what there is to say.
    fn refuse(&self, refusal: Refusal, request: Request<A>) -> Self::Future;
}

/// Answers `503 Service Unavailable` in the form that [`tenure_http`] describes: the default.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct Unavailable;

impl Unavailable {
    /// The default answer.
    #[must_use]
    pub fn new() -> Self {
        Self
    }
}

impl<A, E> Refuse<A, E> for Unavailable {
    type Body = Full<Bytes>;
    type Future = Ready<Result<Response<Full<Bytes>>, E>>;

    fn refuse(&self, refusal: Refusal, _request: Request<A>) -> Self::Future {
        ready(Ok(refusal.to_response().map(Full::new)))
    }
}
