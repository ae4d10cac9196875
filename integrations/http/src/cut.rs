//! The answer to a request whose term ended before it was answered.

use bytes::Bytes;
use http::{HeaderMap, Response, StatusCode};
use tenure::{ElectionName, Fence};

use crate::{
    Form,
    problem::{Code, Problem},
};

/// A request was being worked on when the term ended, and no answer had been begun: whether it took effect is unknown.
///
/// It asks nobody to come back: only who sent the request can know whether it may be repeated. If an answer had been
/// begun, there is no place for this one; its body then ends with an error instead.
///
/// ```
/// use http::header::RETRY_AFTER;
/// use tenure::{ElectionName, Fence};
/// use tenure_http::{Cut, REASON};
///
/// let response = Cut::new(ElectionName::new("billing")?, Fence::try_from(42_u64)?).to_response();
/// assert_eq!(response.headers()[REASON], "cut");
/// assert!(!response.headers().contains_key(RETRY_AFTER));
/// # Ok::<(), tenure::InvalidValue>(())
/// ```
#[derive(Clone, Debug)]
pub struct Cut {
    election: ElectionName,
    fence: Fence,
}

impl Cut {
    /// What the reason header says: `cut`.
    pub const REASON: &'static str = "cut";

    /// Cut by the end of the term with this fence.
    #[must_use]
    pub fn new(election: ElectionName, fence: Fence) -> Self {
        Self { election, fence }
    }

    /// The election whose term ended.
    #[must_use]
    pub fn election(&self) -> &ElectionName {
        &self.election
    }

    /// The fence of the term that ended.
    #[must_use]
    pub fn fence(&self) -> Fence {
        self.fence
    }

    /// `503 Service Unavailable`.
    #[must_use]
    pub fn status(&self) -> StatusCode {
        StatusCode::SERVICE_UNAVAILABLE
    }

    /// The whole answer, for those who speak plain HTTP.
    #[must_use]
    pub fn to_response(&self) -> Response<Bytes> {
        self.to_response_in(Form::default())
    }

    /// The whole answer, in the form that a request asks for.
    #[must_use]
    pub fn to_response_in(&self, form: Form) -> Response<Bytes> {
        self.problem().to_response(form)
    }

    /// What ends a body that had been begun, if it can be ended with trailers: those of gRPC over HTTP/2. Any other body
    /// has to fail, so that nobody takes it for a whole one.
    #[must_use]
    pub fn to_trailers(&self, form: Form) -> Option<HeaderMap> {
        form.has_trailers().then(|| self.problem().to_trailers())
    }

    fn problem(&self) -> Problem<'_> {
        let mut problem = Problem::new(
            (self.status(), Code::Unavailable),
            Self::REASON,
            "this replica's term ended while the request was being worked on; its outcome is unknown",
        )
        .about(self.election.as_str());
        problem.fence = Some(self.fence.into());
        problem
    }
}

#[cfg(test)]
mod tests {
    use http::{
        Version,
        header::{CONTENT_TYPE, RETRY_AFTER},
    };
    use serde_json::{Value, json};

    use super::*;
    use crate::{ELECTION, REASON};

    #[test]
    fn only_the_trailers_of_grpc_can_say_that_a_body_was_cut() {
        let cut = Cut::new(ElectionName::new("billing").unwrap(), Fence::MIN);
        let trailers = |version, content_type: Option<&[u8]>| {
            cut.to_trailers(Form::new(version, content_type))
        };
        let grpc = trailers(Version::HTTP_2, Some(b"application/grpc+proto")).unwrap();
        assert_eq!(grpc["grpc-status"], "14");
        assert_eq!(grpc[REASON], "cut");
        assert_eq!(grpc[ELECTION], "billing");
        assert!(!grpc.contains_key(CONTENT_TYPE));
        assert_eq!(trailers(Version::HTTP_2, None), None);
        // Its trailers are part of the body.
        assert_eq!(trailers(Version::HTTP_2, Some(b"application/grpc-web")), None);
        // Nobody reads trailers there.
        assert_eq!(trailers(Version::HTTP_11, Some(b"application/grpc")), None);
    }

    #[test]
    fn a_cut_says_that_the_outcome_is_unknown_and_invites_no_retry() {
        let cut = Cut::new(ElectionName::new("billing").unwrap(), Fence::try_from(42_u64).unwrap());
        let (head, body) = cut.to_response().into_parts();
        assert_eq!(head.status, StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(head.headers[REASON], "cut");
        assert_eq!(head.headers[CONTENT_TYPE], "application/problem+json");
        assert!(!head.headers.contains_key(RETRY_AFTER));
        assert_eq!(
            serde_json::from_slice::<Value>(&body).unwrap(),
            json!({
                "title": "Service Unavailable",
                "status": 503,
                "detail": "this replica's term ended while the request was being worked on; its outcome is unknown",
                "reason": "cut",
                "election": "billing",
                "fence": 42,
            })
        );
    }
}
