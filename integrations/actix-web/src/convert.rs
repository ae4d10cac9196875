//! Between the types of tenure-http and those of actix-web, which is at an older version of the `http` crate.

use actix_web::{
    HttpRequest, HttpResponse,
    http::{
        StatusCode, Version,
        header::{CONTENT_TYPE, HeaderName, HeaderValue},
    },
};
use bytes::Bytes;
use http::header::CONNECTION;
use tenure::Status;
use tenure_http::{Form, Redirect};

/// In which form `request` is to be answered.
pub(crate) fn form(request: &HttpRequest) -> Form {
    let content_type = request.headers().get(CONTENT_TYPE);
    let version = match request.version() {
        Version::HTTP_09 => http::Version::HTTP_09,
        Version::HTTP_10 => http::Version::HTTP_10,
        Version::HTTP_2 => http::Version::HTTP_2,
        Version::HTTP_3 => http::Version::HTTP_3,
        _ => http::Version::HTTP_11,
    };
    Form::new(version, content_type.map(|value| value.as_bytes()))
}

/// Where the leader that a standby knows of would answer `request`.
pub(crate) fn redirect(status: &Status, request: &HttpRequest) -> Option<Redirect> {
    let uri = request.uri().to_string().parse().ok()?;
    let headers = request.headers().iter().filter_map(|(name, value)| {
        let name = http::HeaderName::from_bytes(name.as_str().as_bytes()).ok()?;
        Some((name, http::HeaderValue::from_bytes(value.as_bytes()).ok()?))
    });
    Redirect::from_standby(status, &uri, &headers.collect())
}

pub(crate) fn response(response: http::Response<Bytes>) -> HttpResponse {
    let (head, body) = response.into_parts();
    let status = StatusCode::from_u16(head.status.as_u16());
    let mut builder = HttpResponse::build(status.expect("both know the same codes"));
    for (name, value) in &head.headers {
        if name == CONNECTION {
            // actix-web writes this header itself.
            builder.force_close();
            continue;
        }
        let name = HeaderName::from_bytes(name.as_str().as_bytes());
        let value = HeaderValue::from_bytes(value.as_bytes());
        builder.append_header((
            name.expect("both allow the same names"),
            value.expect("both allow the same values"),
        ));
    }
    builder.body(body)
}
