//! The response's future: compares the fence, and then works on the request.

use std::{
    fmt,
    future::Future,
    pin::Pin,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{Either, Full};
use pin_project_lite::pin_project;
use tenure::Fence;
use tenure_http::{FenceRefusal, Form, Stamp};
use tower_service::Service;

use crate::BoxError;

pin_project! {
    /// The future of a [`RequireFenceService`](super::RequireFenceService): `S` is the inner service, `A` the request's body,
    /// and `C` finds out which fences were seen.
    #[must_use = "futures do nothing unless they are polled"]
    pub struct RequireFenceFuture<S, A, C>
    where
        S: Service<Request<A>>,
    {
        #[pin]
        state: State<S, A, C>,
    }
}

pin_project! {
    #[project = StateProj]
    enum State<S, A, C>
    where
        S: Service<Request<A>>,
    {
        Comparing {
            #[pin]
            highest: C,
            // Until it is known whether the request is let through.
            waiting: Option<(S, Request<A>, Stamp)>,
        },
        Calling {
            #[pin]
            answer: S::Future,
        },
        Refused {
            response: Option<Response<Bytes>>,
        },
    }
}

impl<S, A, C> RequireFenceFuture<S, A, C>
where
    S: Service<Request<A>>,
{
    pub(super) fn comparing(highest: C, stamp: Stamp, service: S, request: Request<A>) -> Self {
        let waiting = Some((service, request, stamp));
        Self { state: State::Comparing { highest, waiting } }
    }

    pub(super) fn calling(answer: S::Future) -> Self {
        Self { state: State::Calling { answer } }
    }

    pub(super) fn refused(refusal: &FenceRefusal, form: Form) -> Self {
        Self { state: State::Refused { response: Some(refusal.to_response_in(form)) } }
    }
}

impl<S, A, C, B, E> Future for RequireFenceFuture<S, A, C>
where
    S: Service<Request<A>, Response = Response<B>>,
    C: Future<Output = Result<Fence, E>>,
    E: Into<BoxError>,
{
    type Output = Result<Response<Either<B, Full<Bytes>>>, S::Error>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut state = self.project().state;
        loop {
            let next = match state.as_mut().project() {
                StateProj::Comparing { highest, waiting } => {
                    let highest = ready!(highest.poll(cx));
                    let (mut service, mut request, stamp) = waiting.take().expect("taken once");
                    match judge(highest, stamp.clone()) {
                        Ok(()) => {
                            request.extensions_mut().insert(stamp);
                            State::Calling { answer: service.call(request) }
                        }
                        Err(refusal) => {
                            let response = refusal.to_response_in(Form::of(&request));
                            State::Refused { response: Some(response) }
                        }
                    }
                }
                StateProj::Calling { answer } => {
                    return answer.poll(cx).map_ok(|response| response.map(Either::Left));
                }
                StateProj::Refused { response } => {
                    let response = response.take().expect("polled after it had given its response");
                    return Poll::Ready(Ok(response.map(|body| Either::Right(Full::new(body)))));
                }
            };
            state.set(next);
        }
    }
}

/// A keeper that answers less than what it was given has lost it: that is as good as no answer.
fn judge<E: Into<BoxError>>(highest: Result<Fence, E>, stamp: Stamp) -> Result<(), FenceRefusal> {
    match highest {
        Ok(highest) if highest == stamp.fence() => Ok(()),
        Ok(highest) if highest > stamp.fence() => Err(FenceRefusal::Outdated { stamp, highest }),
        Ok(highest) => {
            tracing::error!(%highest, fence = %stamp.fence(), "a fence was not kept");
            Err(FenceRefusal::Unknown { stamp })
        }
        Err(error) => {
            let error: BoxError = error.into();
            tracing::warn!(
                error,
                election = stamp.election().as_str(),
                "fences seen cannot be told"
            );
            Err(FenceRefusal::Unknown { stamp })
        }
    }
}

impl<S, A, C> fmt::Debug for RequireFenceFuture<S, A, C>
where
    S: Service<Request<A>>,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = match self.state {
            State::Comparing { .. } => "Comparing",
            State::Calling { .. } => "Calling",
            State::Refused { .. } => "Refused",
        };
        f.debug_tuple("RequireFenceFuture").field(&format_args!("{state}")).finish()
    }
}
