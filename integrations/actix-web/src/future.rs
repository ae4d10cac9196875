//! The response's future: works on the request until there is a head or the term has ended.

use std::{
    fmt,
    future::Future,
    pin::Pin,
    task::{Context, Poll, ready},
};

use actix_web::{Error, body::MessageBody, dev::ServiceResponse, error::InternalError};
use pin_project_lite::pin_project;
use tenure::{EndWake, InFlight, Term, TermEnded};
use tenure_http::{Cut, Drain, Form};

use crate::{LeaderBody, convert, refuse::Refused};

pin_project! {
    /// The future of a [`LeaderOnlyService`](crate::LeaderOnlyService): `F` is the inner service's.
    ///
    /// When the term ends first, `F` is dropped in the same poll and the answer is a [`Cut`]. Dropping this future
    /// drops what it works on and takes the request out of flight.
    #[must_use = "futures do nothing unless they are polled"]
    pub struct LeaderFuture<F> {
        #[pin]
        state: State<F>,
    }
}

pin_project! {
    #[project = StateProj]
    enum State<F> {
        Leading {
            #[pin]
            work: F,
            #[pin]
            wake: EndWake,
            // Moves into the response's body when there is one.
            in_flight: Option<InFlight>,
            // How to answer, and how to drain.
            form: Form,
            drain: Drain,
        },
        Refused {
            #[pin]
            answer: Refused,
        },
        Done,
    }
}

impl<F> LeaderFuture<F> {
    pub(crate) fn leading(work: F, in_flight: InFlight, form: Form, drain: Drain) -> Self {
        let (wake, in_flight) = (EndWake::default(), Some(in_flight));
        Self { state: State::Leading { work, wake, in_flight, form, drain } }
    }

    pub(crate) fn refused(answer: Refused) -> Self {
        Self { state: State::Refused { answer } }
    }
}

impl<F, B> Future for LeaderFuture<F>
where
    F: Future<Output = Result<ServiceResponse<B>, Error>>,
    B: MessageBody,
{
    type Output = Result<ServiceResponse<LeaderBody<B>>, Error>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut state = self.project().state;
        let output = match state.as_mut().project() {
            StateProj::Leading { work, wake, in_flight, form, drain } => {
                let admitted = in_flight.as_ref().expect("taken only when this future is done");
                match ready!(admitted.poll_with(wake, cx, |cx| work.poll(cx))) {
                    Ok(Ok(response)) => {
                        let admitted = in_flight.take().expect("just seen");
                        let drain = *drain;
                        Ok(response.map_body(|_, body| LeaderBody::leading(body, admitted, drain)))
                    }
                    Ok(Err(error)) => Err(error),
                    Err(ended) => Err(cut(admitted.term(), ended, *form)),
                }
            }
            StateProj::Refused { answer } => {
                Ok(ready!(answer.poll(cx)).map_body(|_, body| LeaderBody::refused(body)))
            }
            StateProj::Done => panic!("polled after it had given its response"),
        };
        // What worked on the request goes now, not whenever the caller drops this future, and only after it what counts the
        // request.
        state.set(State::Done);
        Poll::Ready(output)
    }
}

/// No head was sent, so there is a place to say that the outcome is unknown. It has to be an error: a response would need
/// the request, which the handler had taken.
fn cut(term: &Term, ended: TermEnded, form: Form) -> Error {
    let cut = Cut::new(term.election().clone(), term.fence());
    InternalError::from_response(ended, convert::response(cut.to_response_in(form))).into()
}

impl<F> fmt::Debug for LeaderFuture<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = match self.state {
            State::Leading { .. } => "Leading",
            State::Refused { .. } => "Refused",
            State::Done => "Done",
        };
        f.debug_tuple("LeaderFuture").field(&format_args!("{state}")).finish()
    }
}
