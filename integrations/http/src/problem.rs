//! What all answers consist of, and the two forms in which it is said: `application/problem+json`, and a status of gRPC.

use bytes::Bytes;
use http::{
    HeaderMap, HeaderName, HeaderValue, Response, StatusCode,
    header::{CONNECTION, CONTENT_TYPE},
};
use serde::Serialize;

use crate::{ELECTION, Form, LEADER, REASON, form::Protocol, percent};

const GRPC_STATUS: HeaderName = HeaderName::from_static("grpc-status");
const GRPC_MESSAGE: HeaderName = HeaderName::from_static("grpc-message");

/// The codes of gRPC that answers use.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Code {
    InvalidArgument = 3,
    FailedPrecondition = 9,
    Unavailable = 14,
}

/// The members of RFC 9457, but for `type`: without it, `title` is the phrase of the status. What a program needs to
/// know stands in the members of our own that follow.
#[derive(Debug, Serialize)]
pub(crate) struct Problem<'a> {
    title: &'static str,
    #[serde(serialize_with = "as_number")]
    status: StatusCode,
    #[serde(skip)]
    code: Code,
    pub(crate) detail: &'static str,
    reason: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) election: Option<&'a str>,
    /// Of the term that was cut, or under which the request was made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) fence: Option<u64>,
    /// The highest fence that was seen.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) highest: Option<u64>,
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
    pub(crate) fn new(
        (status, code): (StatusCode, Code),
        reason: &'static str,
        detail: &'static str,
    ) -> Self {
        Self {
            title: status.canonical_reason().unwrap_or_default(),
            status,
            code,
            detail,
            reason,
            election: None,
            fence: None,
            highest: None,
            leader: None,
        }
    }

    pub(crate) fn about(mut self, election: &'a str) -> Self {
        self.election = Some(election);
        self
    }

    pub(crate) fn to_response(&self, form: Form) -> Response<Bytes> {
        let mut response = match form.protocol() {
            Protocol::Plain => self.to_json(),
            Protocol::Grpc => self.to_trailers_only("application/grpc"),
            Protocol::GrpcWeb => self.to_trailers_only("application/grpc-web+proto"),
        };
        if form.closes() {
            response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        }
        response
    }

    fn to_json(&self) -> Response<Bytes> {
        let body = serde_json::to_vec(self).expect("strings and numbers always become JSON");
        let mut response = Response::new(Bytes::from(body));
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        headers.insert(REASON, HeaderValue::from_static(self.reason));
        response
    }

    /// The head of the response is all there is of it, so it carries what would stand in the trailers.
    fn to_trailers_only(&self, content_type: &'static str) -> Response<Bytes> {
        let mut response = Response::new(Bytes::new());
        *response.headers_mut() = self.to_trailers();
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
        response
    }

    pub(crate) fn to_trailers(&self) -> HeaderMap {
        let mut trailers = HeaderMap::with_capacity(8);
        trailers.insert(GRPC_STATUS, HeaderValue::from(self.code as u16));
        trailers.insert(GRPC_MESSAGE, percent::encode(self.detail));
        trailers.insert(REASON, HeaderValue::from_static(self.reason));
        if let Some(election) = self.election {
            trailers.insert(ELECTION, percent::encode(election));
        }
        if let Some(payload) = self.leader.as_ref().and_then(|leader| leader.payload) {
            trailers.insert(LEADER, percent::encode(payload));
        }
        trailers
    }
}

fn as_number<S: serde::Serializer>(status: &StatusCode, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_u16(status.as_u16())
}
