//! Replicas that forward to the leader what they may not answer themselves, so that clients may ask any of them.

use std::{convert::Infallible, time::Duration};

use axum::{Router, body::Body, routing::post};
use http::{
    HeaderMap, HeaderName, HeaderValue, Request, Response, StatusCode, Uri, Version,
    header::{
        CONNECTION, HOST, PROXY_AUTHENTICATE, PROXY_AUTHORIZATION, TE, TRANSFER_ENCODING, UPGRADE,
        VIA,
    },
};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::TokioExecutor,
};
use tenure::Leadership;
use tenure_axum::LeaderOnlyLayer;
use tenure_http::{FORWARDED, Form, Redirect, Refusal};
use tonic::server::NamedService;
use tower::{ServiceExt, service_fn};

use crate::{
    args::ReplicaArgs,
    grpc::Jobs,
    replica::{self, ReplicaError},
};

/// How long it may take to reach the leader. What has been accepted may take as long as the leader lets it.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);

/// Headers that concern one connection only, beside those that `connection` names.
const HOP_BY_HOP: [HeaderName; 8] = [
    CONNECTION,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
    PROXY_AUTHENTICATE,
    PROXY_AUTHORIZATION,
    TE,
    TRANSFER_ENCODING,
    UPGRADE,
];

/// One client for each version of HTTP: a request goes on in the one in which it came, so that trailers, and with them
/// gRPC, come through.
#[derive(Clone)]
struct Clients {
    http1: Client<HttpConnector, Body>,
    http2: Client<HttpConnector, Body>,
}

/// One replica: [`replica::serve`] with the routes of [`app`].
///
/// # Errors
/// [`ReplicaError`] if it cannot start, or if work would not stop.
pub async fn run(args: &ReplicaArgs) -> Result<(), ReplicaError> {
    replica::serve(args, app).await
}

/// What the leader does, on every replica: some routes, and a gRPC service.
pub fn app(leadership: &Leadership) -> Router {
    let clients = Clients::new();
    let leadership = leadership.clone();
    let to_leader = leadership.clone();
    let forward = service_fn(move |request| {
        let (leadership, clients) = (to_leader.clone(), clients.clone());
        async move { Ok::<_, Infallible>(forward(&leadership, &clients, request).await) }
    });
    let grpc = Jobs.map_request(|request: Request<Body>| request.map(tonic::body::Body::new));
    replica::jobs()
        .route("/echo", post(async |body: Body| body))
        .route_service(&format!("/{}/{{method}}", Jobs::NAME), grpc)
        .route_layer(LeaderOnlyLayer::new(leadership.clone()).otherwise(forward))
        .merge(tenure_axum::routes(leadership))
}

impl Clients {
    fn new() -> Self {
        let mut connector = HttpConnector::new();
        connector.set_connect_timeout(Some(CONNECT_TIMEOUT));
        let mut client = Client::builder(TokioExecutor::new());
        let http1 = client.build(connector.clone());
        // Without TLS nobody can be asked which version he speaks.
        Self { http1, http2: client.http2_only(true).build(connector) }
    }

    fn of(&self, version: Version) -> &Client<HttpConnector, Body> {
        if version == Version::HTTP_2 { &self.http2 } else { &self.http1 }
    }
}

/// Bodies are passed on as they come, in both directions.
async fn forward(
    leadership: &Leadership,
    clients: &Clients,
    mut request: Request<Body>,
) -> Response<Body> {
    let form = Form::of(&request);
    let refused = {
        let election = leadership.election().clone();
        let refusal = request.extensions_mut().remove::<Refusal>();
        let refusal = refusal.unwrap_or_else(|| Refusal::new(election, None));
        move || refusal.to_response_in(form).map(Body::from)
    };
    let status = leadership.status();
    // `Redirect` leads to where the request would be answered, and never in a circle.
    let target = status.other_leader().and_then(|leader| {
        let redirect = Redirect::from_standby(&status, request.uri(), request.headers())?;
        Some((redirect.location().clone(), leader.fence()))
    });
    let Some((location, fence)) = target else { return refused() };

    readdress(&mut request, location);
    request.headers_mut().insert(FORWARDED, HeaderValue::from(i64::from(fence)));
    match clients.of(request.version()).request(request).await {
        Ok(response) => {
            let mut response = response.map(Body::new);
            remove_hop_by_hop(response.headers_mut());
            response
        }
        // Nobody has looked at it, as if it had never left.
        Err(error) if error.is_connect() => refused(),
        // Somebody may have.
        Err(error) => {
            let text = format!("the leader was asked, and did not answer: {error}\n");
            let mut response = Response::new(Body::from(text));
            *response.status_mut() = StatusCode::BAD_GATEWAY;
            response
        }
    }
}

fn readdress(request: &mut Request<Body>, location: Uri) {
    // In front of `location`, which is the leader's, there is whom the client meant.
    let asked =
        request.uri().authority().and_then(|host| HeaderValue::try_from(host.as_str()).ok());
    *request.uri_mut() = location;
    let is_http2 = request.version() == Version::HTTP_2;
    if !is_http2 {
        *request.version_mut() = Version::HTTP_11;
    }
    let headers = request.headers_mut();
    // We pass trailers on, and gRPC asks whoever is on the way for that.
    let wants_trailers = is_http2 && headers.get(TE).is_some_and(|te| te == "trailers");
    remove_hop_by_hop(headers);
    if wants_trailers {
        headers.insert(TE, HeaderValue::from_static("trailers"));
    }
    if let Some(host) = headers.remove(HOST).or(asked) {
        headers.insert("x-forwarded-host", host);
    }
    let via = if is_http2 { "2 tenure-example" } else { "1.1 tenure-example" };
    headers.append(VIA, HeaderValue::from_static(via));
}

fn remove_hop_by_hop(headers: &mut HeaderMap) {
    let named: Vec<HeaderName> = headers
        .get_all(CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|names| names.split(','))
        .filter_map(|name| name.trim().parse().ok())
        .collect();
    for name in named.iter().chain(&HOP_BY_HOP) {
        headers.remove(name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_concerns_one_connection_goes_no_further() {
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("connection", "close, X-Mine"),
            ("connection", "x-other,,"),
            ("x-mine", "1"),
            ("x-other", "2"),
            ("keep-alive", "timeout=5"),
            ("te", "trailers"),
            ("transfer-encoding", "chunked"),
            ("upgrade", "websocket"),
            ("proxy-authorization", "Basic abc"),
            ("authorization", "Bearer abc"),
            ("content-type", "text/plain"),
        ] {
            headers.append(name, HeaderValue::from_static(value));
        }
        remove_hop_by_hop(&mut headers);
        let left: Vec<&str> = headers.keys().map(HeaderName::as_str).collect();
        assert_eq!(left, ["authorization", "content-type"]);
    }

    #[test]
    fn a_request_says_whom_the_client_meant() {
        let mut request =
            Request::post("/jobs").header(HOST, "app.example").body(Body::empty()).unwrap();
        readdress(&mut request, Uri::from_static("http://10.0.0.7:8080/jobs"));
        assert_eq!(request.uri(), "http://10.0.0.7:8080/jobs");
        assert_eq!(request.headers()["x-forwarded-host"], "app.example");
        assert!(!request.headers().contains_key(HOST));
        assert_eq!(request.headers()[VIA], "1.1 tenure-example");
    }

    #[test]
    fn trailers_are_asked_for_where_they_can_come() {
        for (version, te) in [(Version::HTTP_2, Some("trailers")), (Version::HTTP_11, None)] {
            let request = Request::post("/jobs").version(version).header(TE, "trailers");
            let mut request = request.body(Body::empty()).unwrap();
            readdress(&mut request, Uri::from_static("http://10.0.0.7:8080/jobs"));
            assert_eq!(request.version(), version);
            assert_eq!(request.headers().get(TE).map(|te| te.to_str().unwrap()), te);
        }
    }
}
