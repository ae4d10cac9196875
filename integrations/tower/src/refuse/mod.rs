//! What answers a request that is refused.

mod on_reject;
mod otherwise;
mod redirect;

use std::future::{Future, Ready, ready};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use tenure_http::{Form, Refusal};

pub use self::{on_reject::OnReject, otherwise::Otherwise, redirect::RedirectToLeader};

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

/// Answers `503 Service Unavailable`, or `UNAVAILABLE` to gRPC, in the form that [`tenure_http`] describes: the default.
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

    fn refuse(&self, refusal: Refusal, request: Request<A>) -> Self::Future {
        ready(Ok(refusal.to_response_in(Form::of(&request)).map(Full::new)))
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use http::{
        Extensions, StatusCode, Uri, Version,
        header::{CONNECTION, LOCATION},
    };
    use http_body_util::BodyExt;
    use tenure::Leadership;
    use tenure_http::{FORWARDED, REASON};
    use tower::{ServiceBuilder, ServiceExt, service_fn};

    use super::*;
    use crate::{
        BoxError, LeaderOnlyLayer,
        test_helpers::{Replica, Standby, grpc_request, request},
    };

    /// What `layer` answers in front of a service that is not to be called.
    async fn answer<R>(layer: LeaderOnlyLayer<R>, request: Request<()>) -> Response<Bytes>
    where
        R: Refuse<(), Infallible> + Clone,
        R::Body: http_body::Body<Data = Bytes, Error: Into<BoxError>>,
    {
        let never = async |_: Request<()>| -> Result<Response<Full<Bytes>>, Infallible> {
            panic!("a standby called the inner service")
        };
        let service = ServiceBuilder::new().layer(layer).service_fn(never);
        let (head, body) = service.oneshot(request).await.unwrap().into_parts();
        Response::from_parts(head, body.collect().await.unwrap().to_bytes())
    }

    fn redirecting(leadership: &Leadership) -> LeaderOnlyLayer<RedirectToLeader> {
        LeaderOnlyLayer::new(leadership.clone()).redirect_to_leader()
    }

    fn asking(uri: &str) -> http::request::Builder {
        Request::builder().method("PUT").uri(uri)
    }

    #[tokio::test]
    async fn a_refusal_closes_connections_of_http_1_only() {
        let elector = Replica::elector();
        let layer = LeaderOnlyLayer::new(elector.leadership());
        let over = |version| Request::builder().version(version).body(()).unwrap();
        let refused = answer(layer.clone(), over(Version::HTTP_11)).await;
        assert_eq!(refused.headers()[CONNECTION], "close");
        let refused = answer(layer, over(Version::HTTP_2)).await;
        assert!(!refused.headers().contains_key(CONNECTION));
    }

    #[tokio::test]
    async fn grpc_is_refused_in_its_own_form_whatever_was_chosen_for_others() {
        let standby = Standby::of_a_leader_at("http://10.0.0.7:8080").await;
        let plain = LeaderOnlyLayer::new(standby.leadership.clone());
        let answers = [
            answer(plain, grpc_request()).await,
            answer(redirecting(&standby.leadership), grpc_request()).await,
        ];
        for refused in answers {
            assert_eq!(refused.status(), StatusCode::OK);
            assert_eq!(refused.headers()["grpc-status"], "14");
            assert_eq!(refused.headers()[REASON], "refused");
            assert!(refused.body().is_empty());
        }
    }

    #[tokio::test]
    async fn requests_are_led_to_the_leader_with_path_and_query() {
        let standby = Standby::of_a_leader_at("http://10.0.0.7:8080/app/").await;
        let asked = asking("/jobs?kind=daily").body(()).unwrap();
        let redirect = answer(redirecting(&standby.leadership), asked).await;
        assert_eq!(redirect.status(), StatusCode::TEMPORARY_REDIRECT);
        assert_eq!(redirect.headers()[LOCATION], "http://10.0.0.7:8080/app/jobs?kind=daily");
        assert_eq!(redirect.headers()[REASON], "refused");
    }

    #[tokio::test]
    async fn a_uri_that_was_rewritten_leads_to_where_it_was_sent() {
        #[derive(Clone)]
        struct Sent(Uri);

        let standby = Standby::of_a_leader_at("http://10.0.0.7").await;
        fn sent(extensions: &Extensions) -> Option<&Uri> {
            Some(&extensions.get::<Sent>()?.0)
        }

        let layer = LeaderOnlyLayer::new(standby.leadership.clone()).redirect_to_leader_at(sent);
        let asked =
            asking("/jobs").extension(Sent(Uri::from_static("/api/jobs"))).body(()).unwrap();
        let redirect = answer(layer, asked).await;
        assert_eq!(redirect.headers()[LOCATION], "http://10.0.0.7/api/jobs");
    }

    #[tokio::test]
    async fn where_nothing_leads_to_the_leader_it_is_503() {
        let standby = Standby::of_a_leader_at("http://lb.example").await;
        let layer = redirecting(&standby.leadership);
        for (why, asked) in [
            ("sent on once already", asking("/").header(FORWARDED, "1")),
            ("sent to that very address", asking("/").header("host", "LB.example:80")),
            ("without a path", asking("*")),
        ] {
            let refused = answer(layer.clone(), asked.body(()).unwrap()).await;
            assert_eq!(refused.status(), StatusCode::SERVICE_UNAVAILABLE, "{why}");
            assert_eq!(refused.headers()[REASON], "refused", "{why}");
            assert!(!refused.headers().contains_key(LOCATION), "{why}");
            let body = std::str::from_utf8(refused.body()).unwrap();
            assert!(!body.contains("lb.example"), "the leader was not to be told: {body}");
        }

        let standby = Standby::of_a_leader_at("web-7, rack 3").await;
        let refused = answer(redirecting(&standby.leadership), request()).await;
        assert_eq!(refused.status(), StatusCode::SERVICE_UNAVAILABLE);

        let restarted = Standby::of_a_leader_at(&format!("{}/", Standby::PAYLOAD)).await;
        let refused = answer(redirecting(&restarted.leadership), request()).await;
        assert_eq!(
            refused.status(),
            StatusCode::SERVICE_UNAVAILABLE,
            "to an earlier life of its own"
        );

        let nobody_known = Replica::elector();
        let refused = answer(redirecting(&nobody_known.leadership()), request()).await;
        assert_eq!(refused.status(), StatusCode::SERVICE_UNAVAILABLE);

        let (itself, _term) = Replica::leading().await;
        itself.leadership.resign().await;
        let refused = answer(redirecting(&itself.leadership), request()).await;
        assert_eq!(refused.status(), StatusCode::SERVICE_UNAVAILABLE);
    }

    #[tokio::test]
    async fn a_function_answers_with_the_refusal_and_the_head_in_hand() {
        let standby = Standby::of_a_leader_at("http://10.0.0.7").await;
        let layer = LeaderOnlyLayer::new(standby.leadership.clone()).advertise_leader().on_reject(
            |refusal, asked| {
                let leader = refusal.leader().and_then(|leader| leader.payload().as_str());
                Response::new(Full::from(format!(
                    "{} {} is for {}",
                    asked.method,
                    asked.uri,
                    leader.unwrap_or("nobody"),
                )))
            },
        );
        let answered = answer(layer, asking("/jobs").body(()).unwrap()).await;
        assert_eq!(answered.body(), "PUT /jobs is for http://10.0.0.7");
    }

    #[tokio::test]
    async fn another_service_gets_the_whole_request_and_the_refusal() {
        let elector = Replica::elector();
        let other = service_fn(async |request: Request<()>| {
            let refusal = request.extensions().get::<Refusal>().unwrap();
            let text = format!("{} without {}", request.uri(), refusal.election());
            Ok::<_, Infallible>(Response::new(text))
        });
        let layer = LeaderOnlyLayer::new(elector.leadership()).otherwise(other);
        let answered = answer(layer, asking("/jobs").body(()).unwrap()).await;
        assert_eq!(answered.body(), "/jobs without billing");
    }

    #[tokio::test]
    async fn another_service_never_sees_what_was_admitted() {
        let (replica, _term) = Replica::leading().await;
        let other = service_fn(async |_| -> Result<Response<Full<Bytes>>, Infallible> {
            panic!("an admitted request was given away")
        });
        let layer = LeaderOnlyLayer::new(replica.leadership.clone()).otherwise(other);
        let inner = service_fn(|_: Request<()>| {
            std::future::pending::<Result<Response<Full<Bytes>>, Infallible>>()
        });
        let cut = ServiceBuilder::new().layer(layer).service(inner).oneshot(request());
        let (cut, ()) = tokio::join!(cut, replica.end_the_term());
        assert_eq!(cut.unwrap().headers()[REASON], "cut");
    }
}
