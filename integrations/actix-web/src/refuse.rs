//! What answers a request that is refused.

use std::{
    future::{Ready, ready},
    sync::Arc,
};

use actix_web::{
    FromRequest, Handler, HttpMessage, HttpRequest, HttpResponse, Responder,
    dev::{ServiceRequest, ServiceResponse},
};
use futures::future::{Either, LocalBoxFuture};
use tenure::Leadership;
use tenure_http::Refusal;

use crate::convert;

/// What a gate does with requests that nothing has looked at.
#[derive(Clone)]
pub(crate) enum Refuse {
    Unavailable,
    Redirect,
    Answer(Arc<Answer>),
    Otherwise(Arc<Otherwise>),
}

pub(crate) type Answer = dyn Fn(Refusal, &HttpRequest) -> HttpResponse + Send + Sync;

pub(crate) type Otherwise =
    dyn Fn(ServiceRequest) -> LocalBoxFuture<'static, ServiceResponse> + Send + Sync;

/// Only another handler takes its time.
pub(crate) type Refused = Either<Ready<ServiceResponse>, LocalBoxFuture<'static, ServiceResponse>>;

impl Refuse {
    /// To a handler, which answers as it would as that of a route.
    pub(crate) fn hand_to<F, Args>(handler: F) -> Self
    where
        F: Handler<Args, Output: Responder> + Send + Sync,
        Args: FromRequest + 'static,
    {
        Self::Otherwise(Arc::new(move |request| {
            let handler = handler.clone();
            Box::pin(async move {
                let (request, mut payload) = request.into_parts();
                let response = match Args::from_request(&request, &mut payload).await {
                    Ok(args) => handler.call(args).await.respond_to(&request).map_into_boxed_body(),
                    Err(error) => HttpResponse::from_error(error),
                };
                ServiceResponse::new(request, response)
            })
        }))
    }

    pub(crate) fn refuse(
        &self,
        refusal: Refusal,
        leadership: &Leadership,
        request: ServiceRequest,
    ) -> Refused {
        let answer = match self {
            Self::Otherwise(hand) => {
                request.extensions_mut().insert(refusal);
                return Either::Right(hand(request));
            }
            Self::Answer(answer) => answer(refusal, request.request()),
            Self::Redirect => redirect(leadership, request.request())
                .unwrap_or_else(|| unavailable(&refusal, request.request())),
            Self::Unavailable => unavailable(&refusal, request.request()),
        };
        Either::Left(ready(request.into_response(answer)))
    }
}

fn unavailable(refusal: &Refusal, request: &HttpRequest) -> HttpResponse {
    convert::response(refusal.to_response_in(convert::form(request)))
}

fn redirect(leadership: &Leadership, request: &HttpRequest) -> Option<HttpResponse> {
    let redirect = convert::redirect(&leadership.status(), request)?;
    redirect.to_response_in(convert::form(request)).map(convert::response)
}
