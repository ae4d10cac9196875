//! The answer to a request that was not made under the latest term.

use bytes::Bytes;
use http::{Response, StatusCode};
use tenure::Fence;

use crate::{
    Form, Stamp, StampError,
    problem::{Code, Problem},
};

/// A request was turned away for the term that it was made under, or said nothing about. Nothing has acted on it.
///
/// | | `tenure-reason` | status | gRPC |
/// |---|---|---|---|
/// | [`Outdated`](Self::Outdated) | `outdated` | `412 Precondition Failed` | `FAILED_PRECONDITION` |
/// | [`Foreign`](Self::Foreign) | `foreign` | `412 Precondition Failed` | `FAILED_PRECONDITION` |
/// | [`Unstamped`](Self::Unstamped) | `unstamped` | `428 Precondition Required` | `FAILED_PRECONDITION` |
/// | [`Malformed`](Self::Malformed) | `malformed` | `400 Bad Request` | `INVALID_ARGUMENT` |
/// | [`Unknown`](Self::Unknown) | `unknown` | `503 Service Unavailable` | `UNAVAILABLE` |
///
/// ```
/// use tenure::{ElectionName, Fence};
/// use tenure_http::{FenceRefusal, Form, REASON, Stamp};
///
/// let stamp = Stamp::new(ElectionName::new("billing")?, Fence::try_from(41_u64)?);
/// let refusal = FenceRefusal::Outdated { stamp, highest: Fence::try_from(42_u64)? };
/// let response = refusal.to_response_in(Form::default());
/// assert_eq!(response.status(), 412);
/// assert_eq!(response.headers()[REASON], "outdated");
/// # Ok::<(), tenure::InvalidValue>(())
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum FenceRefusal {
    /// A request of a later term was seen before: whoever sent this one does not lead any more.
    Outdated {
        /// The term that it was made under.
        stamp: Stamp,
        /// That of the latest term seen.
        highest: Fence,
    },
    /// It was made under a term of an election that has no say here.
    Foreign {
        /// That term.
        stamp: Stamp,
    },
    /// It does not say under which term it was made.
    Unstamped,
    /// What it says cannot be read.
    Malformed(StampError),
    /// It could not be found out whether a later term was seen.
    Unknown {
        /// The term that it was made under.
        stamp: Stamp,
    },
}

impl FenceRefusal {
    /// What the reason header says.
    #[must_use]
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Outdated { .. } => "outdated",
            Self::Foreign { .. } => "foreign",
            Self::Unstamped => "unstamped",
            Self::Malformed(_) => "malformed",
            Self::Unknown { .. } => "unknown",
        }
    }

    /// The status, for those who speak plain HTTP.
    #[must_use]
    pub fn status(&self) -> StatusCode {
        self.statuses().0
    }

    /// The whole answer, in the form that a request asks for. It leaves the connection open: the replica is the right one.
    #[must_use]
    pub fn to_response_in(&self, form: Form) -> Response<Bytes> {
        let mut problem = Problem::new(self.statuses(), self.reason(), self.detail());
        match self {
            Self::Outdated { stamp, highest } => {
                problem = problem.about(stamp.election().as_str());
                problem.fence = Some(stamp.fence().into());
                problem.highest = Some((*highest).into());
            }
            Self::Foreign { stamp } | Self::Unknown { stamp } => {
                problem = problem.about(stamp.election().as_str());
                problem.fence = Some(stamp.fence().into());
            }
            Self::Unstamped | Self::Malformed(_) => {}
        }
        problem.to_response(form.staying_open())
    }

    fn statuses(&self) -> (StatusCode, Code) {
        match self {
            Self::Outdated { .. } | Self::Foreign { .. } => {
                (StatusCode::PRECONDITION_FAILED, Code::FailedPrecondition)
            }
            Self::Unstamped => (StatusCode::PRECONDITION_REQUIRED, Code::FailedPrecondition),
            Self::Malformed(_) => (StatusCode::BAD_REQUEST, Code::InvalidArgument),
            Self::Unknown { .. } => (StatusCode::SERVICE_UNAVAILABLE, Code::Unavailable),
        }
    }

    fn detail(&self) -> &'static str {
        match self {
            Self::Outdated { .. } => {
                "a request of a later term was seen before; whoever sent this one does not lead any more"
            }
            Self::Foreign { .. } => "the request was made under a term of another election",
            Self::Unstamped => "the request does not say under which term it was made",
            Self::Malformed(StampError::Incomplete) => {
                "only one of the headers tenure-election and tenure-fence is there"
            }
            Self::Malformed(StampError::Repeated) => {
                "the header tenure-election or tenure-fence is there more than once"
            }
            Self::Malformed(_) => "the header tenure-election or tenure-fence cannot be read",
            Self::Unknown { .. } => "it could not be found out whether a later term was seen",
        }
    }
}

#[cfg(test)]
mod tests {
    use http::{
        Version,
        header::{CONNECTION, CONTENT_TYPE},
    };
    use serde_json::{Value, json};
    use tenure::ElectionName;

    use super::*;
    use crate::REASON;

    fn stamp() -> Stamp {
        Stamp::new(ElectionName::new("billing").unwrap(), Fence::try_from(41_u64).unwrap())
    }

    #[test]
    fn a_late_request_is_told_what_was_seen() {
        let refusal =
            FenceRefusal::Outdated { stamp: stamp(), highest: 42_u64.try_into().unwrap() };
        let (head, body) = refusal.to_response_in(Form::new(Version::HTTP_11, None)).into_parts();
        assert_eq!(head.status, StatusCode::PRECONDITION_FAILED);
        assert_eq!(head.headers[CONTENT_TYPE], "application/problem+json");
        assert!(!head.headers.contains_key(CONNECTION));
        assert_eq!(
            serde_json::from_slice::<Value>(&body).unwrap(),
            json!({
                "title": "Precondition Failed",
                "status": 412,
                "detail": "a request of a later term was seen before; whoever sent this one does not lead any more",
                "reason": "outdated",
                "election": "billing",
                "fence": 41,
                "highest": 42,
            })
        );
    }

    #[test]
    fn every_refusal_has_its_status_in_both_forms() {
        let grpc = Form::new(Version::HTTP_2, Some(b"application/grpc"));
        for (refusal, status, code) in [
            (FenceRefusal::Foreign { stamp: stamp() }, 412, "9"),
            (FenceRefusal::Unstamped, 428, "9"),
            (FenceRefusal::Malformed(StampError::NotText), 400, "3"),
            (FenceRefusal::Unknown { stamp: stamp() }, 503, "14"),
        ] {
            assert_eq!(refusal.status(), status);
            for form in [Form::default(), grpc] {
                assert_eq!(refusal.to_response_in(form).headers()[REASON], refusal.reason());
            }
            assert_eq!(refusal.to_response_in(grpc).headers()["grpc-status"], code);
        }
    }
}
