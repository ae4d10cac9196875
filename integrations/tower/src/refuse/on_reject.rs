//! Answers made by a function of the user's.

use std::{
    any::type_name,
    fmt,
    future::{Ready, ready},
};

use http::{Request, Response, request::Parts};
use tenure_http::Refusal;

use super::Refuse;

/// Answers with what a function makes of the refusal and the request's head. Made by
/// [`LeaderOnlyLayer::on_reject`](crate::LeaderOnlyLayer::on_reject).
#[derive(Clone, Copy)]
pub struct OnReject<F> {
    answer: F,
}

impl<F> OnReject<F> {
    pub(crate) fn new(answer: F) -> Self {
        Self { answer }
    }
}

impl<A, E, F, B> Refuse<A, E> for OnReject<F>
where
    F: Fn(Refusal, &Parts) -> Response<B>,
{
    type Body = B;
    type Future = Ready<Result<Response<B>, E>>;

    fn refuse(&self, refusal: Refusal, request: Request<A>) -> Self::Future {
        let (head, _body) = request.into_parts();
        ready(Ok((self.answer)(refusal, &head)))
    }
}

impl<F> fmt::Debug for OnReject<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("OnReject").field(&format_args!("{}", type_name::<F>())).finish()
    }
}
