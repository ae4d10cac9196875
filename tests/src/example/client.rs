//! Asks over HTTP.

use bytes::Bytes;
use http_body_util::Empty;
use hyper_util::{
    client::legacy::{self, connect::HttpConnector},
    rt::TokioExecutor,
};

/// Asks over connections that stay open.
pub type Client = legacy::Client<HttpConnector, Empty<Bytes>>;

/// A client with connections of its own, which sends each request once: otherwise one call might be two requests, and the
/// time of the second be unknown.
#[must_use]
pub fn client() -> Client {
    legacy::Client::builder(TokioExecutor::new()).retry_canceled_requests(false).build_http()
}
