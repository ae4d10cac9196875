//! The form that both answers share: `503` with a reason and a body of type `application/problem+json`.

use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode, header::CONTENT_TYPE};
use serde::Serialize;

use crate::REASON;

/// What both answers are.
pub(crate) const STATUS: StatusCode = StatusCode::SERVICE_UNAVAILABLE;

/// The members of RFC 9457, but for `type`: without it, `title` is the phrase of the status. What a program needs to
/// know stands in the members of our own that follow.
#[derive(Debug, Serialize)]
pub(crate) struct Problem<'a> {
    title: &'static str,
    status: u16,
    detail: &'static str,
    reason: &'static str,
    election: &'a str,
    /// Of the term that was cut.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) fence: Option<u64>,
    /// Who leads instead.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) leader: Option<Leads<'a>>,
}

/// A leader as the body of a refusal shows it.
#[derive(Debug, Serialize)]
pub(crate) struct Leads<'a> {
    pub(crate) identity: &'a str,
    pub(crate) fence: u64,
    /// Only if it is text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) payload: Option<&'a str>,
}

impl<'a> Problem<'a> {
    pub(crate) fn new(reason: &'static str, election: &'a str, detail: &'static str) -> Self {
        Self {
            title: "Service Unavailable",
            status: STATUS.as_u16(),
            detail,
            reason,
            election,
            fence: None,
            leader: None,
        }
    }

    pub(crate) fn to_body(&self) -> Bytes {
        serde_json::to_vec(self).expect("strings and numbers always become JSON").into()
    }

    pub(crate) fn to_response(&self) -> Response<Bytes> {
        let mut response = Response::new(self.to_body());
        *response.status_mut() = STATUS;
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        headers.insert(REASON, HeaderValue::from_static(self.reason));
        response
    }
}
