//! The answer to a request that nothing has looked at.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode, header::RETRY_AFTER};
use tenure::{ElectionName, Leader};

use crate::{
    Form,
    problem::{Code, Leads, Problem},
};

/// A request was turned away before anything looked at it, since this replica does not lead.
///
/// It may be sent again, to another replica at once, or to this one after [`retry_after`](Self::retry_after). Who leads
/// is told only if it was put in with [`with_leader`](Self::with_leader).
///
/// ```
/// use tenure::{ElectionName, Fence, Identity, Leader};
/// use tenure_http::Refusal;
///
/// let leader = Leader::new(Identity::new("web-7")?, Fence::try_from(42_u64)?, "http://10.0.0.7:8080".into());
/// let refusal = Refusal::new(ElectionName::new("billing")?, None).with_leader(leader);
/// let body = refusal.to_response().into_body();
///
/// let body: serde_json::Value = serde_json::from_slice(&body)?;
/// assert_eq!(body["election"], "billing");
/// assert_eq!(body["leader"]["payload"], "http://10.0.0.7:8080");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Refusal {
    election: ElectionName,
    retry_after: u64,
    leader: Option<Leader>,
}

impl Refusal {
    /// What the reason header says: `refused`.
    pub const REASON: &'static str = "refused";

    /// Turned away by `election`, whose lease is known to run for `lease_left` at most if nobody renews it.
    ///
    /// A client is asked to come back when the lease will have run out, and after one second if nothing is known.
    #[must_use]
    pub fn new(election: ElectionName, lease_left: Option<Duration>) -> Self {
        Self { election, retry_after: whole_seconds(lease_left.unwrap_or_default()), leader: None }
    }

    /// Tells whoever sent the request who leads.
    #[must_use]
    pub fn with_leader(mut self, leader: Leader) -> Self {
        self.leader = Some(leader);
        self
    }

    /// The election that this replica does not lead.
    #[must_use]
    pub fn election(&self) -> &ElectionName {
        &self.election
    }

    /// Who leads, if that may be told.
    #[must_use]
    pub fn leader(&self) -> Option<&Leader> {
        self.leader.as_ref()
    }

    /// When to come back: whole seconds, at least one.
    #[must_use]
    pub fn retry_after(&self) -> Duration {
        Duration::from_secs(self.retry_after)
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
        let mut response = self.problem().to_response(form);
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(self.retry_after));
        response
    }

    fn problem(&self) -> Problem<'_> {
        let mut problem = Problem::new(
            (self.status(), Code::Unavailable),
            Self::REASON,
            "this replica does not lead; nothing has looked at the request, and it may be sent again",
        )
        .about(self.election.as_str());
        problem.leader = self.leader.as_ref().map(|leader| Leads {
            identity: leader.identity().as_str(),
            fence: leader.fence().into(),
            payload: leader.payload().as_str(),
        });
        problem
    }
}

/// Rounded up, since the header has no fractions and a client that comes too early is refused again; zero would be an
/// invitation to come at once.
fn whole_seconds(left: Duration) -> u64 {
    let begun = u64::from(left.subsec_nanos() > 0);
    left.as_secs().saturating_add(begun).max(1)
}

#[cfg(test)]
mod tests {
    use http::{
        Version,
        header::{CONNECTION, CONTENT_TYPE},
    };
    use serde_json::{Value, json};
    use tenure::{Fence, Identity};

    use super::*;
    use crate::{ELECTION, LEADER, REASON};

    fn refusal(lease_left: Option<Duration>) -> Refusal {
        Refusal::new(ElectionName::new("a \"quoted\"\nname").unwrap(), lease_left)
    }

    fn leader(payload: &[u8]) -> Leader {
        let identity = Identity::new("web-\u{7f}\\").unwrap();
        Leader::new(identity, Fence::try_from(7_u64).unwrap(), payload.into())
    }

    fn body(refusal: &Refusal) -> Value {
        serde_json::from_slice(&refusal.to_response().into_body()).unwrap()
    }

    #[test]
    fn retry_after_is_whole_seconds_rounded_up_and_never_zero() {
        let after = |left| refusal(left).to_response().headers()[RETRY_AFTER].clone();
        assert_eq!(after(None), "1");
        assert_eq!(after(Some(Duration::ZERO)), "1");
        assert_eq!(after(Some(Duration::from_millis(400))), "1");
        assert_eq!(after(Some(Duration::from_secs(3))), "3");
        assert_eq!(after(Some(Duration::from_nanos(3_000_000_001))), "4");
        assert_eq!(refusal(Some(Duration::MAX)).retry_after, u64::MAX);
    }

    #[test]
    fn the_answer_says_that_it_is_a_refusal() {
        let response = refusal(None).to_response();
        assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(response.headers()[REASON], "refused");
        assert_eq!(response.headers()[CONTENT_TYPE], "application/problem+json");
    }

    #[test]
    fn the_body_names_the_election_whatever_characters_it_has() {
        assert_eq!(
            body(&refusal(None)),
            json!({
                "title": "Service Unavailable",
                "status": 503,
                "detail": "this replica does not lead; nothing has looked at the request, and it may be sent again",
                "reason": "refused",
                "election": "a \"quoted\"\nname",
            })
        );
    }

    #[test]
    fn the_leader_is_told_only_if_it_was_put_in() {
        let told = refusal(None).with_leader(leader(b"http://[::1]:80/?a=\"b\""));
        assert_eq!(
            body(&told)["leader"],
            json!({ "identity": "web-\u{7f}\\", "fence": 7, "payload": "http://[::1]:80/?a=\"b\"" })
        );
        assert!(body(&refusal(None)).get("leader").is_none());
    }

    #[test]
    fn a_payload_that_is_no_text_is_left_out() {
        let told = refusal(None).with_leader(leader(&[0xff, 0x00]));
        assert_eq!(body(&told)["leader"], json!({ "identity": "web-\u{7f}\\", "fence": 7 }));
    }

    #[test]
    fn grpc_is_told_in_its_own_form() {
        let told = refusal(None).with_leader(leader(b"http://10.0.0.7"));
        let (head, body) =
            told.to_response_in(Form::new(Version::HTTP_2, Some(b"application/grpc"))).into_parts();
        assert_eq!(head.status, StatusCode::OK);
        assert_eq!(head.headers[CONTENT_TYPE], "application/grpc");
        assert_eq!(head.headers["grpc-status"], "14");
        let message = head.headers["grpc-message"].to_str().unwrap();
        assert!(message.starts_with("this%20replica%20does%20not%20lead;"), "{message}");
        assert_eq!(head.headers[REASON], "refused");
        assert_eq!(head.headers[ELECTION], "a%20\"quoted\"%0Aname");
        assert_eq!(head.headers[LEADER], "http://10.0.0.7");
        assert!(body.is_empty());
        assert!(!head.headers.contains_key(CONNECTION));

        let web = Form::new(Version::HTTP_11, Some(b"application/grpc-web-text"));
        let web = told.to_response_in(web);
        assert_eq!(web.headers()[CONTENT_TYPE], "application/grpc-web+proto");
        assert_eq!(web.headers()["grpc-status"], "14");
    }
}
