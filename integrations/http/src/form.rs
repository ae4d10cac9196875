//! In which form an answer is understood.

use http::{Request, Version, header::CONTENT_TYPE};

/// The form that an answer must have for whoever sent the request: read from the request's head, and kept until there
/// is an answer to give.
///
/// | asked with | the answer |
/// |---|---|
/// | `content-type: application/grpc…` | a gRPC status in the head, without a body (*trailers only*), under status `200` |
/// | anything else | the status, and a body of type `application/problem+json` |
///
/// That of gRPC-Web is trailers only as well. A body of it that was begun is broken off when it is cut, and not ended with a
/// status: in gRPC-Web that would be a frame of the body, and nobody on this side knows whether a frame of the service's is
/// half sent.
///
/// Over HTTP/1 it also says `connection: close`: the next request of a client that keeps its connection would come to
/// this same replica. HTTP/2 has no such header.
///
/// ```
/// use http::{Version, header::CONNECTION};
/// use tenure::ElectionName;
/// use tenure_http::{Form, Refusal};
///
/// let refusal = Refusal::new(ElectionName::new("billing")?, None);
/// let response = refusal.to_response_in(Form::new(Version::HTTP_2, Some(b"application/grpc")));
/// assert_eq!(response.status(), 200);
/// assert_eq!(response.headers()["grpc-status"], "14"); // UNAVAILABLE
///
/// let response = refusal.to_response_in(Form::new(Version::HTTP_11, None));
/// assert_eq!(response.status(), 503);
/// assert_eq!(response.headers()[CONNECTION], "close");
/// # Ok::<(), tenure::InvalidValue>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Form {
    protocol: Protocol,
    http1: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Protocol {
    #[default]
    Plain,
    Grpc,
    /// Whose trailers are part of the body, in an encoding of its own.
    GrpcWeb,
}

impl Form {
    /// The form for a request of this version, with this value of `content-type`. The default is that of a request that
    /// has none, and leaves the connection open.
    #[must_use]
    pub fn new(version: Version, content_type: Option<&[u8]>) -> Self {
        let protocol = content_type.map(Protocol::of).unwrap_or_default();
        Self { protocol, http1: version <= Version::HTTP_11 }
    }

    /// The form for `request`.
    #[must_use]
    pub fn of<B>(request: &Request<B>) -> Self {
        let content_type = request.headers().get(CONTENT_TYPE);
        Self::new(request.version(), content_type.map(|value| value.as_bytes()))
    }

    /// Whether it is that of gRPC, whose clients look for a status in trailers and follow no redirects.
    #[must_use]
    pub fn is_grpc(self) -> bool {
        self.protocol != Protocol::Plain
    }

    /// Whether a body can be ended with trailers that its reader will look at.
    pub(crate) fn has_trailers(self) -> bool {
        self.protocol == Protocol::Grpc && !self.http1
    }

    pub(crate) fn protocol(self) -> Protocol {
        self.protocol
    }

    pub(crate) fn closes(self) -> bool {
        self.http1
    }

    /// The same, but for the connection.
    pub(crate) fn staying_open(self) -> Self {
        Self { http1: false, ..self }
    }
}

impl Protocol {
    fn of(content_type: &[u8]) -> Self {
        let follows = |start: &str| {
            let (given, rest) = content_type.split_at_checked(start.len())?;
            given.eq_ignore_ascii_case(start.as_bytes()).then_some(rest)
        };
        match follows("application/grpc") {
            Some(_) if follows("application/grpc-web").is_some() => Self::GrpcWeb,
            Some(_) => Self::Grpc,
            None => Self::Plain,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grpc_is_known_by_how_its_content_type_begins() {
        let of = |content_type: &str| Protocol::of(content_type.as_bytes());
        for grpc in ["application/grpc", "application/grpc+proto", "Application/GRPC;x=y"] {
            assert_eq!(of(grpc), Protocol::Grpc, "{grpc}");
        }
        for web in ["application/grpc-web", "application/grpc-web-text+proto"] {
            assert_eq!(of(web), Protocol::GrpcWeb, "{web}");
        }
        for plain in ["", "application/gr", "application/json", "text/application/grpc"] {
            assert_eq!(of(plain), Protocol::Plain, "{plain}");
        }
    }

    #[test]
    fn only_http_1_can_be_asked_to_close() {
        let closes = |version| Form::new(version, None).closes();
        assert!(closes(Version::HTTP_10) && closes(Version::HTTP_11));
        assert!(!closes(Version::HTTP_2) && !closes(Version::HTTP_3));
        assert!(!Form::default().closes());
    }
}
