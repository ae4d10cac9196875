//! The tower layer around a real tonic server, with real tonic clients: what a gRPC client sees of a refusal, a cut and a
//! hand-over.

#![allow(clippy::unwrap_used)] // helpers of tests are tests

mod adapters_support;

use std::{
    convert::Infallible,
    net::SocketAddr,
    task::{Context, Poll},
};

use adapters_support::{Counter, Leader, listen, promptly, standby, until};
use futures::{FutureExt, StreamExt, future::BoxFuture, stream};
use http::uri::PathAndQuery;
use http_body::Body as HttpBody;
use tenure::{Leadership, Term};
use tenure_http::REASON;
use tenure_tower::{Drain, FenceHeader, LeaderOnlyLayer, RequireFence};
use tokio::net::TcpListener;
use tonic::{
    Code, Request, Response, Status, Streaming,
    body::Body,
    client::GrpcService,
    server::NamedService,
    service::LayerExt,
    transport::{Channel, Server, server::TcpIncoming},
};
use tonic_prost::ProstCodec;
use tower::{Layer, Service, ServiceBuilder, service_fn};

type Texts = ProstCodec<String, String>;

/// Answers with text: `Fence` with the fence of its term, `Hang` never, `Count` with one item and then never again.
#[derive(Clone, Default)]
struct Texting {
    hanging: Counter,
}

impl NamedService for Texting {
    const NAME: &'static str = "test.Texting";
}

impl<B> Service<http::Request<B>> for Texting
where
    B: HttpBody + Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>> + Send + 'static,
{
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<B>) -> Self::Future {
        let hanging = self.hanging.clone();
        let answer = async move {
            let mut grpc = tonic::server::Grpc::new(Texts::default());
            match request.uri().path() {
                "/test.Texting/Fence" => grpc.unary(service_fn(fence), request).await,
                "/test.Texting/Hang" => {
                    let _hangs = hanging.enter();
                    grpc.unary(service_fn(hang), request).await
                }
                "/test.Texting/Count" => grpc.server_streaming(service_fn(count), request).await,
                path => Status::unimplemented(path).into_http(),
            }
        };
        answer.map(Ok).boxed()
    }
}

async fn fence(request: Request<String>) -> Result<Response<String>, Status> {
    let term = request.extensions().get::<Term>();
    Ok(Response::new(term.map_or("none".into(), |term| term.fence().to_string())))
}

async fn hang(_: Request<String>) -> Result<Response<String>, Status> {
    std::future::pending().await
}

async fn count(
    _: Request<String>,
) -> Result<Response<impl futures::Stream<Item = Result<String, Status>>>, Status> {
    Ok(Response::new(stream::iter([Ok("one".into())]).chain(stream::pending())))
}

/// A client of [`Texting`].
struct Client<T>(tonic::client::Grpc<T>);

impl<T> Client<T>
where
    T: GrpcService<Body>,
    T::ResponseBody: HttpBody + Send + 'static,
    <T::ResponseBody as HttpBody>::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    fn new(transport: T) -> Self {
        Self(tonic::client::Grpc::new(transport))
    }

    async fn ask(&mut self, method: &'static str) -> Result<String, Status> {
        self.ready().await?;
        let (request, path) = to(method);
        Ok(self.0.unary(request, path, Texts::default()).await?.into_inner())
    }

    async fn count(&mut self) -> Result<Streaming<String>, Status> {
        self.ready().await?;
        let (request, path) = to("/test.Texting/Count");
        Ok(self.0.server_streaming(request, path, Texts::default()).await?.into_inner())
    }

    async fn ready(&mut self) -> Result<(), Status> {
        self.0.ready().await.map_err(|error| Status::from_error(error.into()))
    }
}

fn to(method: &'static str) -> (Request<String>, PathAndQuery) {
    (Request::new(String::new()), PathAndQuery::from_static(method))
}

async fn connect(address: SocketAddr) -> Channel {
    Channel::from_shared(format!("http://{address}")).unwrap().connect().await.unwrap()
}

fn incoming(listener: TcpListener) -> TcpIncoming {
    TcpIncoming::from(listener)
}

/// A server with the layer around everything.
async fn serve(layer: LeaderOnlyLayer, service: Texting) -> Client<Channel> {
    let (listener, address) = listen().await;
    let server = Server::builder().layer(layer).add_service(service);
    tokio::spawn(server.serve_with_incoming(incoming(listener)));
    Client::new(connect(address).await)
}

async fn serve_led_by(leadership: &Leadership) -> Client<Channel> {
    serve(LeaderOnlyLayer::new(leadership.clone()), Texting::default()).await
}

fn assert_refused(refused: &Status) {
    assert_eq!(refused.code(), Code::Unavailable);
    assert!(refused.message().starts_with("this replica does not lead; "), "{refused}");
    assert_eq!(refused.metadata().get(REASON.as_str()).unwrap(), "refused");
}

fn assert_cut(cut: &Status) {
    assert_eq!(cut.code(), Code::Unavailable);
    assert!(cut.message().ends_with("its outcome is unknown"), "{cut}");
    assert_eq!(cut.metadata().get(REASON.as_str()).unwrap(), "cut");
}

#[tokio::test]
async fn around_a_server_a_standby_is_unavailable_and_the_leader_serves() {
    let mut client = serve_led_by(&standby()).await;
    assert_refused(&client.ask("/test.Texting/Fence").await.unwrap_err());
    assert_refused(&client.count().await.unwrap_err());

    let leader = Leader::patient().await;
    let mut client = serve_led_by(&leader.leadership).await;
    let fence = leader.term.fence().to_string();
    assert_eq!(client.ask("/test.Texting/Fence").await.unwrap(), fence);
    let unknown = client.ask("/test.Texting/Other").await.unwrap_err();
    assert_eq!(unknown.code(), Code::Unimplemented);
}

#[tokio::test]
async fn around_one_service_the_others_are_served_by_every_replica() {
    /// The same under another name.
    #[derive(Clone)]
    struct Open;

    impl NamedService for Open {
        const NAME: &'static str = "test.Open";
    }

    impl Service<http::Request<Body>> for Open {
        type Response = http::Response<Body>;
        type Error = Infallible;
        type Future = BoxFuture<'static, Result<Self::Response, Infallible>>;

        fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
            Poll::Ready(Ok(()))
        }

        fn call(&mut self, request: http::Request<Body>) -> Self::Future {
            async move {
                let mut grpc = tonic::server::Grpc::new(Texts::default());
                Ok(grpc.unary(service_fn(fence), request).await)
            }
            .boxed()
        }
    }

    let (listener, address) = listen().await;
    let gated = LeaderOnlyLayer::new(standby()).named_layer(Texting::default());
    let server = Server::builder().add_service(gated).add_service(Open);
    tokio::spawn(server.serve_with_incoming(incoming(listener)));
    let mut client = Client::new(connect(address).await);
    assert_refused(&client.ask("/test.Texting/Fence").await.unwrap_err());
    assert_eq!(client.ask("/test.Open/Fence").await.unwrap(), "none");
}

#[tokio::test]
async fn among_the_routes_of_axum_it_serves_grpc_and_http_alike() {
    let gate = LeaderOnlyLayer::new(standby());
    let app = tonic::service::Routes::new(Texting::default())
        .into_axum_router()
        .route("/jobs", axum::routing::get(|| async { "done" }))
        .layer(gate);
    let address = adapters_support::serve(app).await;
    let mut client = Client::new(connect(address).await);
    assert_refused(&client.ask("/test.Texting/Fence").await.unwrap_err());

    let mut plain = adapters_support::http2(address).await;
    let request = http::Request::get(format!("http://{address}/jobs"));
    let refused = plain.send_request(request.body(Default::default()).unwrap()).await.unwrap();
    assert_eq!(refused.status(), 503);
    assert_eq!(refused.headers()["content-type"], "application/problem+json");
}

#[tokio::test]
async fn a_call_that_is_cut_has_an_unknown_outcome() {
    let mut leader = Leader::patient().await;
    let service = Texting::default();
    let layer = LeaderOnlyLayer::new(leader.leadership.clone());
    let mut client = serve(layer, service.clone()).await;
    let end = async {
        until(|| service.hanging.value() == 1).await;
        leader.end_the_term().await;
    };
    let (cut, ()) = tokio::join!(client.ask("/test.Texting/Hang"), end);
    assert_cut(&cut.unwrap_err());
    assert_eq!(service.hanging.value(), 0, "the handler outlives its term");
}

#[tokio::test]
async fn a_stream_that_is_cut_ends_with_a_status_and_not_with_a_broken_connection() {
    let mut leader = Leader::patient().await;
    let mut client = serve_led_by(&leader.leadership).await;
    let mut stream = client.count().await.unwrap();
    assert_eq!(stream.message().await.unwrap().unwrap(), "one");
    leader.end_the_term().await;
    assert_cut(&promptly(stream.message()).await.unwrap_err());
    // The connection is as good as before.
    assert_refused(&client.ask("/test.Texting/Fence").await.unwrap_err());
}

#[tokio::test]
async fn a_hand_over_that_cuts_streams_does_not_wait_for_them() {
    let leader = Leader::patient().await;
    let layer = LeaderOnlyLayer::new(leader.leadership.clone()).drain(Drain::Cut);
    let mut client = serve(layer, Texting::default()).await;
    let mut stream = client.count().await.unwrap();
    assert_eq!(stream.message().await.unwrap().unwrap(), "one");
    let resigned = leader.leadership.resign();
    assert_cut(&promptly(stream.message()).await.unwrap_err());
    promptly(resigned).await;
}

#[tokio::test]
async fn around_a_client_only_the_leader_sends() {
    let leader = Leader::patient().await;
    let (listener, address) = listen().await;
    let server = Server::builder().add_service(Texting::default());
    tokio::spawn(server.serve_with_incoming(incoming(listener)));
    let channel = connect(address).await;

    let gate = LeaderOnlyLayer::new(leader.leadership.clone());
    let mut client = Client::new(gate.layer(channel.clone()));
    assert_eq!(client.ask("/test.Texting/Fence").await.unwrap(), "none");
    let mut client = Client::new(LeaderOnlyLayer::new(standby()).layer(channel));
    assert_refused(&client.ask("/test.Texting/Fence").await.unwrap_err());
}

#[tokio::test]
async fn fences_are_required_of_grpc_clients_too() {
    let leader = Leader::patient().await;
    let (listener, address) = listen().await;
    let layer = RequireFence::new(leader.term.election().clone());
    let server = Server::builder().layer(layer).add_service(Texting::default());
    tokio::spawn(server.serve_with_incoming(incoming(listener)));
    let channel = connect(address).await;
    let under = |term: &Term| {
        let stamped = ServiceBuilder::new().layer(FenceHeader::of(term)).service(channel.clone());
        Client::new(stamped)
    };

    let mut before = under(&leader.term);
    assert_eq!(before.ask("/test.Texting/Fence").await.unwrap(), "none");
    leader.leadership.resign().await;
    let next = leader.leadership.leading().await.unwrap();
    assert_eq!(under(&next).ask("/test.Texting/Fence").await.unwrap(), "none");
    let late = before.ask("/test.Texting/Fence").await.unwrap_err();
    assert_eq!(late.code(), Code::FailedPrecondition);
    assert_eq!(late.metadata().get(REASON.as_str()).unwrap(), "outdated");
}
