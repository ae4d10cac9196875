//! The response's body: passes on frames until it is finished or the term has ended.

use std::{
    error::Error,
    fmt,
    pin::Pin,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use http_body_util::Full;
use pin_project_lite::pin_project;
use tenure::{EndWake, InFlight, Term, TermEnded};
use tenure_http::{Cut, Drain, Form, Patience};

/// What a [`LeaderBody`] fails with: the error of the body inside, or [`TermEnded`](tenure::TermEnded).
pub type BoxError = Box<dyn Error + Send + Sync>;

pin_project! {
    /// The body of a [`LeaderOnlyService`](crate::LeaderOnlyService)'s response: `B` is the inner service's, `O` that of
    /// what refuses.
    ///
    /// It keeps its request in flight until it is finished, fails or is dropped. When the term ends before that (with
    /// [`Drain::Cut`], already when it is cancelled), it drops `B` and fails with [`TermEnded`](tenure::TermEnded), so
    /// that servers break the response off (HTTP/1 without the last chunk, HTTP/2 with a reset) and no client takes it for
    /// a whole one. (Only HTTP/1.0, where the end of the connection is the end of the body, has no way to tell.) For gRPC it
    /// ends with trailers that say `UNAVAILABLE`. A body that nobody reads does no harm: it is inert once the term has
    /// ended.
    pub struct LeaderBody<B, O = Full<Bytes>> {
        #[pin]
        state: State<B, O>,
    }
}

pin_project! {
    #[project = StateProj]
    enum State<B, O> {
        Leading {
            #[pin]
            body: B,
            #[pin]
            wake: EndWake,
            patience: Patience,
            form: Form,
            in_flight: InFlight,
        },
        Refused {
            #[pin]
            body: O,
        },
        Cut {
            body: Full<Bytes>,
        },
        // What `Default` makes: belongs to no request.
        Plain {
            #[pin]
            body: B,
        },
        Done,
    }
}

impl<B, O> LeaderBody<B, O> {
    pub(crate) fn leading(body: B, in_flight: InFlight, form: Form, drain: Drain) -> Self {
        let (wake, patience) = (EndWake::default(), Patience::new(drain));
        Self { state: State::Leading { body, wake, patience, form, in_flight } }
    }

    pub(crate) fn refused(body: O) -> Self {
        Self { state: State::Refused { body } }
    }

    pub(crate) fn cut(body: Full<Bytes>) -> Self {
        Self { state: State::Cut { body } }
    }
}

impl<B, O> Body for LeaderBody<B, O>
where
    B: Body<Data = Bytes>,
    B::Error: Into<BoxError>,
    O: Body<Data = Bytes>,
    O::Error: Into<BoxError>,
{
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let mut state = self.project().state;
        let frame = match state.as_mut().project() {
            // There is nothing left to cut off, whatever has become of the term.
            StateProj::Leading { body, .. } if body.is_end_stream() => None,
            StateProj::Leading { mut body, wake, patience, form, in_flight } => {
                let term = in_flight.term();
                patience.begin(term, || body.size_hint().exact());
                let polled = patience.poll_with(term, cx, |cx| {
                    in_flight.poll_with(wake, cx, |cx| body.as_mut().poll_frame(cx))
                });
                match ready!(polled) {
                    // Most bodies know that this frame was their last: the request is done now, and not when
                    // somebody gets round to asking for another frame or dropping the body.
                    Ok(Some(Ok(frame))) if !body.is_end_stream() => {
                        return Poll::Ready(Some(Ok(frame)));
                    }
                    Ok(frame) => frame.map(|frame| frame.map_err(Into::into)),
                    Err(ended) => Some(cut(term, ended, *form)),
                }
            }
            StateProj::Refused { body } => return poll_other(body, cx),
            StateProj::Plain { body } => return poll_other(body, cx),
            StateProj::Cut { body } => return poll_other(Pin::new(body), cx),
            StateProj::Done => return Poll::Ready(None),
        };
        // Finished, failed or cut: the body inside goes, and the request is out of flight.
        state.set(State::Done);
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        match &self.state {
            State::Leading { body, .. } | State::Plain { body } => body.is_end_stream(),
            State::Refused { body } => body.is_end_stream(),
            State::Cut { body } => body.is_end_stream(),
            State::Done => true,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.state {
            State::Leading { body, .. } | State::Plain { body } => body.size_hint(),
            State::Refused { body } => body.size_hint(),
            State::Cut { body } => body.size_hint(),
            State::Done => SizeHint::with_exact(0),
        }
    }
}

/// The last frame of a body that was cut.
fn cut(term: &Term, ended: TermEnded, form: Form) -> Result<Frame<Bytes>, BoxError> {
    let cut = Cut::new(term.election().clone(), term.fence());
    cut.to_trailers(form).map(Frame::trailers).ok_or_else(|| ended.into())
}

fn poll_other<B>(
    body: Pin<&mut B>,
    cx: &mut Context<'_>,
) -> Poll<Option<Result<Frame<Bytes>, BoxError>>>
where
    B: Body<Data = Bytes>,
    B::Error: Into<BoxError>,
{
    body.poll_frame(cx).map(|frame| frame.map(|frame| frame.map_err(Into::into)))
}

/// For layers outside that make an empty body of their own, such as time limits.
impl<B: Default, O> Default for LeaderBody<B, O> {
    fn default() -> Self {
        Self { state: State::Plain { body: B::default() } }
    }
}

impl<B, O> fmt::Debug for LeaderBody<B, O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = match self.state {
            State::Leading { .. } => "Leading",
            State::Refused { .. } => "Refused",
            State::Cut { .. } => "Cut",
            State::Plain { .. } => "Plain",
            State::Done => "Done",
        };
        f.debug_tuple("LeaderBody").field(&format_args!("{state}")).finish()
    }
}

#[cfg(test)]
mod tests {
    use std::{convert::Infallible, future::ready as ready_with, time::Duration};

    use futures::FutureExt;
    use http::{Request, Response};
    use http_body_util::{BodyExt, Empty};
    use tenure::{Leadership, TermEnd, TermEnded};
    use tower::{ServiceBuilder, ServiceExt};

    use super::*;
    use crate::{
        LeaderOnlyLayer,
        test_helpers::{Fed, Replica, fed, promptly, request},
    };

    /// The body of a response of the leader's.
    async fn body_of<B>(leadership: &Leadership, body: B) -> Pin<Box<LeaderBody<B>>> {
        let mut body = Some(body);
        let inner = |_: Request<()>| {
            ready_with(Ok::<_, Infallible>(Response::new(body.take().expect("called once"))))
        };
        let layer = LeaderOnlyLayer::new(leadership.clone());
        let service = ServiceBuilder::new().layer(layer).service_fn(inner);
        Box::pin(service.oneshot(request()).await.unwrap().into_body())
    }

    fn is_term_ended(frame: Option<Result<Frame<Bytes>, BoxError>>) -> bool {
        frame.is_some_and(|frame| frame.is_err_and(|error| error.is::<TermEnded>()))
    }

    #[tokio::test]
    async fn length_and_end_of_the_body_inside_are_passed_on() {
        let (replica, _term) = Replica::leading().await;
        let body = body_of(&replica.leadership, Full::from("12345")).await;
        assert_eq!(body.size_hint().exact(), Some(5));
        assert!(!body.is_end_stream());
        assert_eq!(body.collect().await.unwrap().to_bytes(), "12345");

        let body = body_of(&replica.leadership, Empty::<Bytes>::new()).await;
        assert!(body.is_end_stream());
    }

    #[tokio::test]
    async fn at_the_end_of_the_term_a_body_fails_and_drops_what_is_inside() {
        let (replica, _term) = Replica::leading().await;
        let (feeder, inside) = fed();
        let mut body = body_of(&replica.leadership, inside).await;
        feeder.feed(b"one");
        assert_eq!(body.frame().await.unwrap().unwrap().into_data().unwrap(), "one");

        feeder.feed(b"two");
        replica.end_the_term().await;
        assert!(is_term_ended(body.frame().await), "the second frame came after the end");
        assert!(feeder.is_dropped(), "the body inside outlives its term");
        assert!(body.frame().await.is_none());
    }

    #[tokio::test]
    async fn a_body_that_waits_is_woken_by_the_end_of_the_term() {
        let (replica, _term) = Replica::leading().await;
        let (_feeder, inside) = fed();
        let mut body = body_of(&replica.leadership, inside).await;
        let (frame, ()) = tokio::join!(body.frame(), replica.end_the_term());
        assert!(is_term_ended(frame));
    }

    #[tokio::test]
    async fn a_body_that_was_finished_in_time_is_not_cut_afterwards() {
        let (replica, _term) = Replica::leading().await;
        let mut whole = body_of(&replica.leadership, Full::from("all of it")).await;
        let empty = body_of(&replica.leadership, Empty::<Bytes>::new()).await;
        assert!(whole.frame().await.unwrap().is_ok());
        replica.end_the_term().await;
        assert!(whole.frame().await.is_none());
        assert!(empty.collect().await.unwrap().to_bytes().is_empty());
    }

    #[tokio::test]
    async fn a_hand_over_waits_until_the_body_is_finished() {
        let (replica, term) = Replica::leading().await;
        let (feeder, inside) = fed();
        let mut body = body_of(&replica.leadership, inside).await;
        let resigned = replica.leadership.resign();
        term.cancelled().await;

        for _ in 0..10 {
            tokio::time::sleep(Duration::from_millis(10)).await;
            feeder.feed(b"admitted before");
            assert!(body.frame().await.unwrap().is_ok(), "cut although the hand-over waits for it");
        }
        assert_eq!(term.end(), None);
        drop(feeder);
        assert!(body.frame().await.is_none());
        // The body itself is still here; it is finished, and that is what counts.
        promptly(resigned).await;
        assert_eq!(term.ended().await, TermEnd::Resigned);
    }

    #[tokio::test]
    async fn a_body_that_is_dropped_is_out_of_flight() {
        let (replica, term) = Replica::leading().await;
        let (_feeder, inside) = fed();
        let body = body_of(&replica.leadership, inside).await;
        let resigned = replica.leadership.resign();
        term.cancelled().await;
        assert_eq!(term.end(), None);
        drop(body);
        promptly(resigned).await;
        assert_eq!(term.ended().await, TermEnd::Resigned);
    }

    #[tokio::test]
    async fn a_body_whose_last_frame_was_taken_is_out_of_flight() {
        let (replica, term) = Replica::leading().await;
        let mut body = body_of(&replica.leadership, Full::from("all of it")).await;
        assert!(body.frame().await.unwrap().is_ok());
        // Nobody has asked for another frame, nor dropped it.
        promptly(replica.leadership.resign()).await;
        assert_eq!(term.ended().await, TermEnd::Resigned);
        drop(body);
    }

    #[tokio::test]
    async fn a_body_that_nobody_reads_does_not_keep_the_replica_from_leading_again() {
        let (replica, term) = Replica::leading_with(Duration::from_millis(50)).await;
        let (feeder, inside) = fed();
        let mut body = body_of(&replica.leadership, inside).await;
        feeder.feed(b"unread");
        // Waits for the end as well, and is then left alone.
        assert!(body.frame().now_or_never().is_some());
        assert!(body.frame().now_or_never().is_none());

        replica.leadership.resign().await;
        let next = replica.leadership.leading().await.unwrap();
        assert!(next.fence() > term.fence());
        assert!(is_term_ended(body.frame().await));
    }

    #[test]
    fn layers_outside_may_make_an_empty_one() {
        let body = LeaderBody::<Full<Bytes>>::default();
        assert!(body.is_end_stream());
        assert!(body.collect().now_or_never().unwrap().unwrap().to_bytes().is_empty());
    }

    #[test]
    fn futures_and_bodies_can_be_sent_to_other_threads() {
        fn sendable<T: Send + 'static>() {}
        sendable::<LeaderBody<Fed>>();
        sendable::<crate::LeaderFuture<std::future::Ready<()>, std::future::Ready<()>>>();
    }
}
