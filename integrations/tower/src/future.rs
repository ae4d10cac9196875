//! The response's future: works on the request until there is a head or the term has ended.

use std::{
    fmt,
    future::Future,
    pin::Pin,
    task::{Context, Poll, ready},
};

use http::Response;
use http_body_util::Full;
use pin_project_lite::pin_project;
use tenure::{EndWake, InFlight, Term};
use tenure_http::{Cut, Drain, Form};

use crate::LeaderBody;

pin_project! {
    /// The future of a [`LeaderOnlyService`](crate::LeaderOnlyService): `F` is the inner service's, `G` that of what
    /// refuses.
    ///
    /// When the term ends first, `F` is dropped in the same poll and the answer is a [`Cut`]. Dropping this future
    /// drops what it works on and takes the request out of flight.
    #[must_use = "futures do nothing unless they are polled"]
    pub struct LeaderFuture<F, G> {
        #[pin]
        state: State<F, G>,
    }
}

pin_project! {
    #[project = StateProj]
    enum State<F, G> {
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
            answer: G,
        },
        Done,
    }
}

impl<F, G> LeaderFuture<F, G> {
    pub(crate) fn leading(work: F, in_flight: InFlight, form: Form, drain: Drain) -> Self {
        let (wake, in_flight) = (EndWake::default(), Some(in_flight));
        Self { state: State::Leading { work, wake, in_flight, form, drain } }
    }

    pub(crate) fn refused(answer: G) -> Self {
        Self { state: State::Refused { answer } }
    }
}

impl<F, G, B, O, E> Future for LeaderFuture<F, G>
where
    F: Future<Output = Result<Response<B>, E>>,
    G: Future<Output = Result<Response<O>, E>>,
{
    type Output = Result<Response<LeaderBody<B, O>>, E>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut state = self.project().state;
        let output = match state.as_mut().project() {
            StateProj::Leading { work, wake, in_flight, form, drain } => {
                let admitted = in_flight.as_ref().expect("taken only when this future is done");
                let polled = ready!(admitted.poll_with(wake, cx, |cx| work.poll(cx)));
                match polled {
                    Ok(Ok(response)) => {
                        let admitted = in_flight.take().expect("just seen");
                        Ok(response.map(|body| LeaderBody::leading(body, admitted, *form, *drain)))
                    }
                    Ok(Err(error)) => Err(error),
                    Err(_ended) => Ok(cut(admitted.term(), *form)),
                }
            }
            StateProj::Refused { answer } => {
                ready!(answer.poll(cx)).map(|response| response.map(LeaderBody::refused))
            }
            StateProj::Done => panic!("polled after it had given its response"),
        };
        // What worked on the request goes now, not whenever the caller drops this future, and only after it what counts the
        // request.
        state.set(State::Done);
        Poll::Ready(output)
    }
}

/// No head was sent, so there is a place to say that the outcome is unknown.
fn cut<B, O>(term: &Term, form: Form) -> Response<LeaderBody<B, O>> {
    Cut::new(term.election().clone(), term.fence())
        .to_response_in(form)
        .map(|body| LeaderBody::cut(Full::new(body)))
}

impl<F, G> fmt::Debug for LeaderFuture<F, G> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = match self.state {
            State::Leading { .. } => "Leading",
            State::Refused { .. } => "Refused",
            State::Done => "Done",
        };
        f.debug_tuple("LeaderFuture").field(&format_args!("{state}")).finish()
    }
}

#[cfg(test)]
mod tests {
    use std::{convert::Infallible, future::pending, pin::pin, task::Waker, time::Duration};

    use bytes::Bytes;
    use http::{Request, StatusCode, header::RETRY_AFTER};
    use http_body_util::Full;
    use tenure_http::REASON;
    use tokio::sync::oneshot::{self, error::TryRecvError};
    use tower::{Service, ServiceBuilder, ServiceExt, service_fn};

    use super::*;
    use crate::{
        LeaderOnlyLayer,
        test_helpers::{Replica, request},
    };

    #[tokio::test]
    async fn at_the_end_of_the_term_the_handler_is_dropped_and_the_outcome_is_unknown() {
        let (replica, _term) = Replica::leading().await;
        let layer = LeaderOnlyLayer::new(replica.leadership.clone());
        let (held, mut dropped) = oneshot::channel::<()>();
        let mut held = Some(held);
        let inner = service_fn(move |_: Request<()>| {
            let held = held.take().expect("called once");
            async move {
                pending::<()>().await;
                drop(held);
                Ok::<_, Infallible>(Response::new(Full::<Bytes>::default()))
            }
        });
        let mut service = ServiceBuilder::new().layer(layer).service(inner);
        let mut answer = pin!(service.call(request()));
        let mut cx = Context::from_waker(Waker::noop());
        assert!(answer.as_mut().poll(&mut cx).is_pending());
        assert_eq!(dropped.try_recv(), Err(TryRecvError::Empty));

        replica.end_the_term().await;
        // The handler's future is still in our hands; it must be gone after this poll, not only when we let go of it.
        let Poll::Ready(Ok(response)) = answer.as_mut().poll(&mut cx) else {
            panic!("still waiting for a handler whose term is over");
        };
        assert_eq!(dropped.try_recv(), Err(TryRecvError::Closed));
        assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(response.headers()[REASON], "cut");
        assert!(!response.headers().contains_key(RETRY_AFTER));
    }

    #[tokio::test]
    async fn a_waiting_request_is_woken_by_the_end_of_the_term() {
        let (replica, _term) = Replica::leading().await;
        let layer = LeaderOnlyLayer::new(replica.leadership.clone());
        let inner =
            service_fn(|_: Request<()>| pending::<Result<Response<Full<Bytes>>, Infallible>>());
        let answer = ServiceBuilder::new().layer(layer).service(inner).oneshot(request());
        let (response, ()) = tokio::join!(answer, replica.end_the_term());
        assert_eq!(response.unwrap().headers()[REASON], "cut");
    }

    #[tokio::test]
    async fn a_handler_that_would_be_ready_is_not_polled_after_the_end() {
        let (replica, _term) = Replica::leading().await;
        let layer = LeaderOnlyLayer::new(replica.leadership.clone());
        let inner = service_fn(|_: Request<()>| async {
            panic!("polled after the end of the term");
            #[allow(unreachable_code)]
            Ok::<_, Infallible>(Response::new(Full::<Bytes>::default()))
        });
        let mut service = ServiceBuilder::new().layer(layer).service(inner);
        let answer = service.call(request());
        replica.end_the_term().await;
        assert_eq!(answer.await.unwrap().headers()[REASON], "cut");
    }

    /// Drops slowly, and says whether the term still waited for it at the end.
    struct Cleanup {
        term: Term,
        waited_for: Option<oneshot::Sender<bool>>,
    }

    impl Drop for Cleanup {
        fn drop(&mut self) {
            // Longer than an elector takes to end a term without work.
            std::thread::sleep(Duration::from_millis(200));
            let _ = self.waited_for.take().unwrap().send(self.term.may_finish());
        }
    }

    /// The elector goes on, on its own thread, while the handler is being dropped.
    #[tokio::test]
    async fn a_hand_over_also_waits_for_what_a_failed_handler_leaves_to_be_dropped() {
        let candidacy = Replica::elector().spawn();
        let term = candidacy.leadership().leading().await.unwrap();
        let layer = LeaderOnlyLayer::new(candidacy.leadership());
        let (waited_for, was_waited_for) = oneshot::channel();
        let mut cleanup = Some(Cleanup { term: term.clone(), waited_for: Some(waited_for) });
        let inner = service_fn(move |_: Request<()>| {
            let cleanup = cleanup.take();
            std::future::poll_fn(move |_| {
                let _owned = &cleanup;
                Poll::Ready(Err::<Response<Full<Bytes>>, _>("out of paper"))
            })
        });
        let mut service = ServiceBuilder::new().layer(layer).service(inner);
        let answer = service.call(request());
        let resigned = candidacy.resign();
        term.cancelled().await;
        answer.await.unwrap_err();
        assert!(was_waited_for.await.unwrap(), "the term ended before the handler was dropped");
        resigned.await;
    }
}
