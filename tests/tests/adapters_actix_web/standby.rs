//! What a standby answers, option by option and request by request.

use std::time::Duration;

use http::{Method, Request, Version};
use tenure::{Candidacy, Elector, Leadership, MemoryStore};

use super::{
    BOTH, Sent, answer, get,
    servers::{Controls, Gate, serve},
};

const LEADER: &str = "http://10.0.0.7:8080";

/// A replica that does not lead, and knows who does.
struct Standby {
    leadership: Leadership,
    _both: [Candidacy; 2],
}

impl Standby {
    async fn new() -> Self {
        let store = MemoryStore::new();
        let contender = |payload| {
            // Long enough for its lease to be told with the same number to all.
            let builder = Elector::builder("table", store.clone());
            let builder = builder.lease_duration(Duration::from_secs(3000)).payload(payload);
            builder.fixed_identity_risking_two_leaders(format!("of {payload}")).build().unwrap()
        };
        let leader = contender(LEADER).spawn();
        leader.leadership().leading().await.unwrap();
        let standby = contender("").spawn();
        let leadership = standby.leadership();
        let mut watch = leadership.watch();
        watch.wait_for(|status| status.leader().is_some()).await.unwrap();
        Self { leadership, _both: [leader, standby] }
    }
}

#[tokio::test]
async fn a_standby_answers_the_same_in_both() {
    let standby = Standby::new().await;
    let refused = |status: u16| (status, Some("refused"));
    for (gate, asked, (status, reason)) in [
        (Gate::Plain, get("/job"), refused(503)),
        (Gate::Plain, get("/job").method(Method::POST), refused(503)),
        (Gate::Plain, get("/job").method(Method::DELETE), refused(503)),
        (Gate::Plain, get("/job").method(Method::HEAD), refused(503)),
        (Gate::Plain, get("/job").header("connection", "close"), refused(503)),
        (Gate::Plain, get("/job").version(Version::HTTP_10), refused(503)),
        (Gate::Plain, get("/job").header("content-type", "application/grpc"), refused(200)),
        (Gate::Plain, get("/job").header("content-type", "application/grpc-web"), refused(200)),
        (Gate::Plain, get("/lines?a=b"), refused(503)),
        (Gate::Plain, get("/nowhere"), (404, None)),
        (Gate::Plain, get("/leadership"), (200, None)),
        (Gate::Plain, get("/leader"), refused(503)),
        (Gate::Plain, get("/leader").method(Method::HEAD), refused(503)),
        (Gate::Advertising, get("/job"), refused(503)),
        (Gate::Advertising, get("/job").header("content-type", "application/grpc"), refused(200)),
        (Gate::Advertising, get("/job").version(Version::HTTP_10), refused(503)),
        (Gate::ComeBackAfterMillis(1), get("/job"), refused(503)),
        (Gate::ComeBackAfterMillis(2_001), get("/job"), refused(503)),
        (Gate::Redirecting, get("/job?kind=daily"), refused(307)),
        (Gate::Redirecting, get("/job").method(Method::POST), refused(307)),
        (Gate::Redirecting, get("/job").method(Method::HEAD), refused(307)),
        (Gate::Redirecting, get("/job").version(Version::HTTP_10), refused(307)),
        (Gate::Redirecting, get("/job").header("tenure-forwarded", "1"), refused(503)),
        (Gate::Redirecting, get("/job").header("content-type", "application/grpc"), refused(200)),
        (Gate::Redirecting, Request::get("/job").header("host", "10.0.0.7:8080"), refused(503)),
        (Gate::Answering, get("/job?kind=daily"), (418, None)),
        (Gate::Answering, get("/job").header("content-type", "application/grpc"), (418, None)),
        (Gate::Otherwise, get("/job?kind=daily"), (202, None)),
        (Gate::Otherwise, get("/job").method(Method::POST).extension(Sent("a body")), (202, None)),
        (Gate::Otherwise, get("/job").header("content-type", "application/grpc"), (202, None)),
        (Gate::CuttingStreams, get("/lines"), refused(503)),
        (Gate::WithoutExtension, get("/job"), refused(503)),
    ] {
        let case = format!("{gate:?} {:?} {:?}", asked.method_ref(), asked.uri_ref());
        let controls = Controls::new();
        let [in_axum, in_actix_web] =
            BOTH.map(|framework| serve(framework, &standby.leadership, gate, &controls));
        let again = clone(&asked);
        let in_axum = answer(in_axum, asked).await;
        assert_eq!(in_axum.status, status, "{case}");
        assert_eq!(in_axum.headers.get("tenure-reason").map(String::as_str), reason, "{case}");
        let mut in_actix_web = answer(in_actix_web, again).await;
        if reason.is_none() && status != 200 {
            // What the frameworks say of themselves is theirs.
            in_actix_web.headers = in_axum.headers.clone();
        }
        assert_eq!(in_actix_web, in_axum, "{case}");
    }
}

fn clone(asked: &http::request::Builder) -> http::request::Builder {
    let again = Request::builder()
        .method(asked.method_ref().unwrap())
        .uri(asked.uri_ref().unwrap())
        .version(*asked.version_ref().unwrap());
    let again = match asked.extensions_ref().unwrap().get::<Sent>() {
        Some(sent) => again.extension(sent.clone()),
        None => again,
    };
    let headers = asked.headers_ref().unwrap().iter();
    headers.fold(again, |again, (name, value)| again.header(name, value))
}
