//! The same service in two frameworks, behind real servers.

use std::{
    convert::Infallible,
    net::{SocketAddr, TcpListener},
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

use bytes::Bytes;
use futures::{StreamExt, channel::mpsc};
use tenure::Leadership;
use tokio::sync::Semaphore;

/// In which framework a service is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Framework {
    Axum,
    ActixWeb,
}

/// What is set on the gate.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Gate {
    Plain,
    Advertising,
    ComeBackAfterMillis(u64),
    Redirecting,
    Answering,
    /// Another handler answers, with what it was given.
    Otherwise,
    CuttingStreams,
    WithoutExtension,
}

/// What handlers share with their test.
#[derive(Clone)]
pub(crate) struct Controls {
    /// Lets handlers of `/slow` go on.
    pub(crate) gate: Arc<Semaphore>,
    /// How many of them wait.
    pub(crate) waiting: Arc<AtomicUsize>,
    /// What `/lines` answers, line by line.
    pub(crate) lines: mpsc::UnboundedSender<&'static str>,
    lines_read: Arc<Mutex<Option<mpsc::UnboundedReceiver<&'static str>>>>,
}

impl Controls {
    pub(crate) fn new() -> Self {
        let (lines, read) = mpsc::unbounded();
        Self {
            gate: Arc::new(Semaphore::new(0)),
            waiting: Arc::default(),
            lines,
            lines_read: Arc::new(Mutex::new(Some(read))),
        }
    }

    async fn wait(&self) {
        struct Waiting<'a>(&'a AtomicUsize);
        impl Drop for Waiting<'_> {
            fn drop(&mut self) {
                self.0.fetch_sub(1, Ordering::SeqCst);
            }
        }
        self.waiting.fetch_add(1, Ordering::SeqCst);
        let _waiting = Waiting(&self.waiting);
        self.gate.acquire().await.unwrap().forget();
    }

    fn lines(&self) -> impl futures::Stream<Item = Result<Bytes, Infallible>> + Send + 'static {
        let lines = self.lines_read.lock().unwrap().take().expect("asked for once");
        lines.map(|line| Ok(Bytes::from(line)))
    }
}

/// Serves until the test's process ends.
pub(crate) fn serve(
    framework: Framework,
    leadership: &Leadership,
    gate: Gate,
    controls: &Controls,
) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (leadership, controls) = (leadership.clone(), controls.clone());
    match framework {
        Framework::Axum => {
            listener.set_nonblocking(true).unwrap();
            let listener = tokio::net::TcpListener::from_std(listener).unwrap();
            let app = in_axum::app(leadership, gate, controls);
            tokio::spawn(async move { axum::serve(listener, app).await });
        }
        Framework::ActixWeb => {
            thread::spawn(move || in_actix_web::serve(listener, &leadership, gate, &controls));
        }
    }
    address
}

mod in_axum {
    use std::{convert::Infallible, time::Duration};

    use axum::{
        Router,
        body::{Body, to_bytes},
        http::{Request, Response, StatusCode},
        routing::get,
    };
    use tenure_axum::{Drain, LeaderOnlyLayer, LeaderTerm, RetryAfter};
    use tenure_http::Refusal;
    use tower::service_fn;

    use super::{Controls, Gate, Leadership};

    pub(super) fn app(leadership: Leadership, gate: Gate, controls: Controls) -> Router {
        let job = async |LeaderTerm(term): LeaderTerm| term.fence().to_string();
        let (slow, lines) = (controls.clone(), controls);
        let slow = async move |LeaderTerm(term): LeaderTerm| {
            slow.wait().await;
            term.fence().to_string()
        };
        let lines = async move || Body::from_stream(lines.lines());
        let gated = Router::new()
            .route("/job", get(job).post(job))
            .route("/slow", get(slow))
            .route("/lines", get(lines));
        let layer = LeaderOnlyLayer::new(leadership.clone());
        let gated = match gate {
            Gate::Plain => gated.route_layer(layer),
            Gate::Advertising => gated.route_layer(layer.advertise_leader()),
            Gate::ComeBackAfterMillis(millis) => {
                let after = RetryAfter::Fixed(Duration::from_millis(millis));
                gated.route_layer(layer.retry_after(after))
            }
            Gate::Redirecting => gated.route_layer(layer.redirect_to_leader()),
            Gate::Answering => gated.route_layer(layer.on_reject(|refusal, asked| {
                let text = format!("{} {} {}", asked.method, asked.uri, refusal.election());
                let mut response = Response::new(Body::from(text));
                *response.status_mut() = StatusCode::IM_A_TEAPOT;
                response
            })),
            Gate::Otherwise => gated.route_layer(layer.otherwise(service_fn(otherwise))),
            Gate::CuttingStreams => gated.route_layer(layer.drain(Drain::Cut)),
            Gate::WithoutExtension => gated.route_layer(layer.without_extension()),
        };
        gated
            .route("/", get(async || "open"))
            .route("/mistaken", get(job))
            .merge(tenure_axum::routes(leadership))
    }

    async fn otherwise(request: Request<Body>) -> Result<Response<Body>, Infallible> {
        let (head, body) = request.into_parts();
        let body = String::from_utf8(to_bytes(body, usize::MAX).await.unwrap().to_vec()).unwrap();
        let election = head.extensions.get::<Refusal>().unwrap().election();
        let text = format!("{} {} {election} {body}", head.method, head.uri);
        let mut response = Response::new(Body::from(text));
        *response.status_mut() = StatusCode::ACCEPTED;
        Ok(response)
    }
}

mod in_actix_web {
    use std::{net::TcpListener, time::Duration};

    use actix_web::{
        App, HttpRequest, HttpResponse, HttpServer, Responder,
        http::StatusCode,
        rt::System,
        web::{self, Data, ReqData},
    };
    use tenure_actix_web::{Drain, LeaderOnly, LeaderTerm, Refusal, RetryAfter};

    use super::{Controls, Gate, Leadership};

    pub(super) fn serve(
        listener: TcpListener,
        leadership: &Leadership,
        gate: Gate,
        controls: &Controls,
    ) {
        let (leadership, controls) = (leadership.clone(), controls.clone());
        let server = HttpServer::new(move || {
            let gate = middleware(leadership.clone(), gate);
            App::new()
                .app_data(Data::new(controls.clone()))
                .service(
                    web::resource("/job")
                        .wrap(gate.clone())
                        .route(web::get().to(job))
                        .route(web::post().to(job)),
                )
                .service(web::resource("/slow").wrap(gate.clone()).route(web::get().to(slow)))
                .service(web::resource("/lines").wrap(gate).route(web::get().to(lines)))
                .route("/", web::get().to(async || "open"))
                .route("/mistaken", web::get().to(job))
                .configure(tenure_actix_web::routes(leadership.clone()))
        });
        let server = server.workers(1).disable_signals().listen(listener).unwrap();
        System::new().block_on(server.run()).unwrap();
    }

    fn middleware(leadership: Leadership, gate: Gate) -> LeaderOnly {
        let middleware = LeaderOnly::new(leadership);
        match gate {
            Gate::Plain => middleware,
            Gate::Advertising => middleware.advertise_leader(),
            Gate::ComeBackAfterMillis(millis) => {
                middleware.retry_after(RetryAfter::Fixed(Duration::from_millis(millis)))
            }
            Gate::Redirecting => middleware.redirect_to_leader(),
            Gate::Answering => middleware.on_reject(|refusal, asked: &HttpRequest| {
                let text = format!("{} {} {}", asked.method(), asked.uri(), refusal.election());
                HttpResponse::build(StatusCode::IM_A_TEAPOT).body(text)
            }),
            Gate::Otherwise => middleware.otherwise(otherwise),
            Gate::CuttingStreams => middleware.drain(Drain::Cut),
            Gate::WithoutExtension => middleware.without_extension(),
        }
    }

    async fn otherwise(
        refusal: ReqData<Refusal>,
        asked: HttpRequest,
        body: String,
    ) -> impl Responder {
        let (method, uri) = (asked.method(), asked.uri());
        let text = format!("{method} {uri} {} {body}", refusal.election());
        HttpResponse::Accepted().body(text)
    }

    async fn job(LeaderTerm(term): LeaderTerm) -> String {
        term.fence().to_string()
    }

    async fn slow(LeaderTerm(term): LeaderTerm, controls: Data<Controls>) -> String {
        controls.wait().await;
        term.fence().to_string()
    }

    async fn lines(controls: Data<Controls>) -> HttpResponse {
        HttpResponse::Ok().streaming(controls.lines())
    }
}
