//! The response's body: passes on what is inside until it is finished or the term has ended.

use std::{
    error::Error,
    fmt,
    pin::Pin,
    task::{Context, Poll, ready},
};

use actix_web::body::{BodySize, BoxBody, MessageBody};
use bytes::Bytes;
use pin_project_lite::pin_project;
use tenure::{EndWake, InFlight};
use tenure_http::{Drain, Patience};

pin_project! {
    /// The body of a [`LeaderOnlyService`](crate::LeaderOnlyService)'s response: `B` is the inner service's.
    ///
    /// It keeps its request in flight until it is finished, fails or is dropped. When the term ends before that (with
    /// [`Drain::Cut`], already when it is cancelled), it drops `B` and fails with [`TermEnded`](tenure::TermEnded), so
    /// that the server breaks the response off and no client takes it for a whole one. (Only HTTP/1.0, where the end of
    /// the connection is the end of the body, has no way to tell.) A body that nobody reads does no harm: it is inert
    /// once the term has ended.
    pub struct LeaderBody<B> {
        #[pin]
        state: State<B>,
    }
}

pin_project! {
    #[project = StateProj]
    enum State<B> {
        Leading {
            #[pin]
            body: B,
            #[pin]
            wake: EndWake,
            patience: Patience,
            // How much is to come of a body of known length.
            left: Option<u64>,
            in_flight: InFlight,
        },
        Refused {
            #[pin]
            body: BoxBody,
        },
        Done,
    }
}

impl<B: MessageBody> LeaderBody<B> {
    pub(crate) fn leading(body: B, in_flight: InFlight, drain: Drain) -> Self {
        let (wake, patience, left) =
            (EndWake::default(), Patience::new(drain), length(body.size()));
        Self { state: State::Leading { body, wake, patience, left, in_flight } }
    }
}

impl<B> LeaderBody<B> {
    pub(crate) fn refused(body: BoxBody) -> Self {
        Self { state: State::Refused { body } }
    }
}

impl<B: MessageBody> MessageBody for LeaderBody<B> {
    type Error = Box<dyn Error>;

    fn size(&self) -> BodySize {
        match &self.state {
            State::Leading { body, .. } => body.size(),
            State::Refused { body } => body.size(),
            State::Done => BodySize::Sized(0),
        }
    }

    fn poll_next(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Bytes, Box<dyn Error>>>> {
        let mut state = self.project().state;
        let next = match state.as_mut().project() {
            // There is nothing left to cut off, whatever has become of the term.
            StateProj::Leading { left: Some(0), .. } => None,
            StateProj::Leading { mut body, wake, patience, left, in_flight } => {
                let term = in_flight.term();
                patience.begin(term, || *left);
                let polled = patience.poll_with(term, cx, |cx| {
                    in_flight.poll_with(wake, cx, |cx| body.as_mut().poll_next(cx))
                });
                match ready!(polled) {
                    Ok(Some(Ok(bytes))) => {
                        *left = left.map(|left| left.saturating_sub(bytes.len() as u64));
                        // After the last bytes of a body of known length the request is done, and not when somebody gets
                        // round to asking for more or dropping the body.
                        if *left != Some(0) {
                            return Poll::Ready(Some(Ok(bytes)));
                        }
                        Some(Ok(bytes))
                    }
                    Ok(Some(Err(error))) => Some(Err(error.into())),
                    Ok(None) => None,
                    Err(ended) => Some(Err(ended.into())),
                }
            }
            StateProj::Refused { body } => return body.poll_next(cx),
            StateProj::Done => return Poll::Ready(None),
        };
        // Finished, failed or cut: the body inside goes, and the request is out of flight.
        state.set(State::Done);
        Poll::Ready(next)
    }
}

/// How many bytes a body has in all, if that is known.
fn length(size: BodySize) -> Option<u64> {
    match size {
        BodySize::None => Some(0),
        BodySize::Sized(length) => Some(length),
        BodySize::Stream => None,
    }
}

impl<B> fmt::Debug for LeaderBody<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = match self.state {
            State::Leading { .. } => "Leading",
            State::Refused { .. } => "Refused",
            State::Done => "Done",
        };
        f.debug_tuple("LeaderBody").field(&format_args!("{state}")).finish()
    }
}
