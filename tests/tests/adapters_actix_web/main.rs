//! The same cases over real connections, against axum and actix-web: a client cannot tell which of them it talks to.

#![allow(clippy::unwrap_used)] // helpers of tests are tests

mod readiness;
mod servers;
mod standby;

use std::{
    collections::BTreeMap,
    future::{Future, pending},
    net::SocketAddr,
    sync::atomic::Ordering,
    time::Duration,
};

use bytes::Bytes;
use http::{Request, Response, StatusCode, Version};
use http_body_util::{BodyExt, Full};
use hyper::{body::Incoming, client::conn::http1};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tenure::{Elector, Leadership, MemoryStore, Term};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    task::JoinHandle,
};

use self::servers::{Controls, Framework, Gate, serve};

const BOTH: [Framework; 2] = [Framework::Axum, Framework::ActixWeb];

/// A replica that leads until the test ends its term.
struct Leading {
    leadership: Leadership,
    term: Term,
    running: JoinHandle<()>,
    controls: Controls,
    address: SocketAddr,
}

impl Leading {
    async fn new(framework: Framework, gate: Gate, drain_timeout: Duration) -> Self {
        let elector = Elector::builder("table", MemoryStore::new())
            .lease_duration(Duration::from_secs(3))
            .drain_timeout(drain_timeout)
            .build()
            .unwrap();
        let leadership = elector.leadership();
        let running = tokio::spawn(async move {
            let _stopped = elector.run(pending::<()>()).await;
        });
        let term = leadership.leading().await.unwrap();
        let controls = Controls::new();
        let address = serve(framework, &leadership, gate, &controls);
        Self { leadership, term, running, controls, address }
    }

    /// Ends the term at once: what is in flight is not waited for.
    async fn end_the_term(&mut self) {
        self.running.abort();
        let _ = (&mut self.running).await;
    }

    fn waiting(&self) -> usize {
        self.controls.waiting.load(Ordering::SeqCst)
    }
}

fn get(path: &str) -> http::request::Builder {
    Request::builder().uri(path).header("host", "replica")
}

/// The body of a request, among its extensions until it is sent.
#[derive(Clone)]
struct Sent(&'static str);

async fn ask(address: SocketAddr, asked: http::request::Builder) -> Response<Incoming> {
    let sent = asked.extensions_ref().and_then(|extensions| extensions.get());
    let body = sent.map(|Sent(text)| Full::<Bytes>::from(*text)).unwrap_or_default();
    let stream = TcpStream::connect(address).await.unwrap();
    let (mut client, connection) = http1::handshake(TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    client.send_request(asked.body(body).unwrap()).await.unwrap()
}

/// A response, but for what differs from call to call.
#[derive(Debug, PartialEq, Eq)]
struct Answer {
    status: StatusCode,
    headers: BTreeMap<String, String>,
    body: String,
}

async fn answer(address: SocketAddr, asked: http::request::Builder) -> Answer {
    let (mut head, body) = ask(address, asked).await.into_parts();
    head.headers.remove("date");
    // Which methods a path has, axum adds to every answer to another method.
    head.headers.remove("allow");
    if head.version == Version::HTTP_10 {
        // Closed anyway, so that actix-web does not say it.
        head.headers.remove("connection");
    }
    let headers = head
        .headers
        .iter()
        .map(|(name, value)| (name.to_string(), value.to_str().unwrap().to_owned()));
    let mut headers: BTreeMap<_, _> = headers.collect();
    if let Some(left) = headers.get_mut("retry-after").filter(|left| left.len() == 4) {
        // What is left of a long lease.
        *left = "left".to_owned();
    }
    let body = String::from_utf8(body.collect().await.unwrap().to_bytes().to_vec()).unwrap();
    Answer { status: head.status, headers, body: without_times(body) }
}

fn without_times(body: String) -> String {
    let Ok(Value::Object(mut members)) = serde_json::from_str(&body) else { return body };
    for time in ["observed_age_ms", "remaining_ms"] {
        if let Some(time) = members.get_mut(time) {
            *time = if time.is_null() { Value::Null } else { "some".into() };
        }
    }
    Value::Object(members).to_string()
}

/// Waits until `condition` holds.
async fn until(mut condition: impl FnMut() -> bool) {
    while !condition() {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

/// For hand-overs that have nothing to wait for any more: long before they would give up waiting.
async fn promptly<F: Future>(work: F) -> F::Output {
    tokio::select! {
        done = work => done,
        () = tokio::time::sleep(Duration::from_secs(30)) => panic!("still waiting"),
    }
}

#[tokio::test]
async fn a_leader_serves_in_both() {
    for framework in BOTH {
        let leading = Leading::new(framework, Gate::Plain, Duration::from_secs(60)).await;
        let fence = leading.term.fence().to_string();
        let job = answer(leading.address, get("/job")).await;
        assert_eq!((job.status, &job.body), (StatusCode::OK, &fence), "{framework:?}");
        let leader = answer(leading.address, get("/leader")).await;
        assert_eq!(leader.status, StatusCode::OK, "{framework:?}");
        assert_eq!(leader.headers["content-type"], "application/json", "{framework:?}");
        let status = answer(leading.address, get("/leadership")).await;
        let status: Value = serde_json::from_str(&status.body).unwrap();
        assert_eq!(status["fence"].to_string(), fence, "{framework:?}");
        let mistaken = answer(leading.address, get("/mistaken")).await;
        assert_eq!(mistaken.status, StatusCode::INTERNAL_SERVER_ERROR, "{framework:?}");
        assert!(
            mistaken.body.contains("is not behind a `LeaderOnly"),
            "{framework:?}: {mistaken:?}"
        );
    }
}

#[tokio::test]
async fn a_gate_without_extension_hands_no_term_on_in_both() {
    for framework in BOTH {
        let leading =
            Leading::new(framework, Gate::WithoutExtension, Duration::from_secs(60)).await;
        let job = answer(leading.address, get("/job")).await;
        assert_eq!(job.status, StatusCode::INTERNAL_SERVER_ERROR, "{framework:?}");
    }
}

#[tokio::test]
async fn another_handler_never_sees_what_was_admitted_in_both() {
    for framework in BOTH {
        let mut leading = Leading::new(framework, Gate::Otherwise, Duration::from_secs(60)).await;
        let cut = tokio::spawn(answer(leading.address, get("/slow")));
        until(|| leading.waiting() == 1).await;
        leading.end_the_term().await;
        let cut = cut.await.unwrap();
        assert_eq!(cut.headers["tenure-reason"], "cut", "{framework:?}");
        assert_eq!(answer(leading.address, get("/slow")).await.status, 202, "{framework:?}");
    }
}

#[tokio::test]
async fn a_handler_whose_term_ends_is_cut_with_the_same_words_in_both() {
    for content_type in ["text/plain", "application/grpc"] {
        let mut answers = Vec::new();
        for framework in BOTH {
            let mut leading = Leading::new(framework, Gate::Plain, Duration::from_secs(60)).await;
            let asked = get("/slow").header("content-type", content_type);
            let cut = tokio::spawn(answer(leading.address, asked));
            until(|| leading.waiting() == 1).await;
            leading.end_the_term().await;
            let cut = cut.await.unwrap();
            assert_eq!(cut.headers["tenure-reason"], "cut", "{framework:?}");
            assert!(!cut.headers.contains_key("retry-after"), "{framework:?}");
            assert_eq!(leading.waiting(), 0, "{framework:?}: the handler outlives its term");
            answers.push(cut);
        }
        assert_eq!(answers[0], answers[1]);
    }
}

#[tokio::test]
async fn a_body_that_was_cut_is_no_clean_end_in_both() {
    for framework in BOTH {
        let mut leading = Leading::new(framework, Gate::Plain, Duration::from_secs(60)).await;
        leading.controls.lines.unbounded_send("one\n").unwrap();
        let mut stream = TcpStream::connect(leading.address).await.unwrap();
        stream.write_all(b"GET /lines HTTP/1.1\r\nhost: replica\r\n\r\n").await.unwrap();
        let mut received = Vec::new();
        while !received.ends_with(b"4\r\none\n\r\n") {
            assert_ne!(stream.read_buf(&mut received).await.unwrap(), 0, "closed too early");
        }
        leading.end_the_term().await;
        // Whatever is sent from here on is nobody's.
        let _ = leading.controls.lines.unbounded_send("two\n");
        // However the connection goes, closed or reset.
        let _ = stream.read_to_end(&mut received).await;
        let received = String::from_utf8_lossy(&received);
        assert!(received.ends_with("4\r\none\n\r\n"), "{framework:?}: {received}");
    }
}

#[tokio::test]
async fn a_hand_over_finishes_what_is_in_flight_and_closes_connections_in_both() {
    let mut refusals = Vec::new();
    for framework in BOTH {
        let leading = Leading::new(framework, Gate::Plain, Duration::from_secs(60)).await;
        let slow = tokio::spawn(answer(leading.address, get("/slow")));
        leading.controls.lines.unbounded_send("one\n").unwrap();
        let mut lines = ask(leading.address, get("/lines")).await.into_body();
        lines.frame().await.unwrap().unwrap();
        until(|| leading.waiting() == 1).await;

        let resigned = leading.leadership.resign();
        leading.term.cancelled().await;
        // Over a connection that could be kept.
        let mut stream = TcpStream::connect(leading.address).await.unwrap();
        stream.write_all(b"GET /job HTTP/1.1\r\nhost: replica\r\n\r\n").await.unwrap();
        let mut received = String::new();
        promptly(stream.read_to_string(&mut received)).await.unwrap();
        assert!(received.to_lowercase().contains("\r\nconnection: close\r\n"), "{received}");
        refusals.push(answer(leading.address, get("/job")).await);

        leading.controls.gate.add_permits(1);
        assert_eq!(slow.await.unwrap().status, StatusCode::OK, "{framework:?}");
        leading.controls.lines.unbounded_send("two\n").unwrap();
        assert_eq!(lines.frame().await.unwrap().unwrap().into_data().unwrap(), "two\n");
        assert_eq!(leading.term.end(), None, "{framework:?}: the hand-over did not wait");
        leading.controls.lines.close_channel();
        assert!(lines.frame().await.is_none(), "{framework:?}: a body that ended was cut");
        promptly(resigned).await;
    }
    assert_eq!(refusals[0], refusals[1]);
    assert_eq!(refusals[0].headers["connection"], "close");
}

#[tokio::test]
async fn streams_are_cut_at_once_by_a_gate_that_was_told_to_in_both() {
    for framework in BOTH {
        let leading = Leading::new(framework, Gate::CuttingStreams, Duration::from_secs(60)).await;
        leading.controls.lines.unbounded_send("one\n").unwrap();
        let mut lines = ask(leading.address, get("/lines")).await.into_body();
        lines.frame().await.unwrap().unwrap();
        let slow = tokio::spawn(answer(leading.address, get("/slow")));
        until(|| leading.waiting() == 1).await;

        let resigned = leading.leadership.resign();
        assert!(lines.frame().await.unwrap().is_err(), "{framework:?}: a stream was not cut");
        leading.controls.gate.add_permits(1);
        assert_eq!(slow.await.unwrap().status, StatusCode::OK, "{framework:?}");
        promptly(resigned).await;
    }
}

#[tokio::test]
async fn a_client_that_goes_away_takes_its_request_out_of_flight_in_both() {
    for framework in BOTH {
        let leading = Leading::new(framework, Gate::Plain, Duration::from_secs(60)).await;
        leading.controls.lines.unbounded_send("one\n").unwrap();
        let mut lines = ask(leading.address, get("/lines")).await.into_body();
        lines.frame().await.unwrap().unwrap();
        let resigned = leading.leadership.resign();
        leading.term.cancelled().await;
        assert_eq!(leading.term.end(), None, "{framework:?}: the hand-over did not wait");
        drop(lines);
        // Servers notice when they write.
        let writing = async {
            loop {
                let _ = leading.controls.lines.unbounded_send("two\n");
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        promptly(async {
            tokio::select! { () = resigned => {}, () = writing => {} }
        })
        .await;
    }
}

#[tokio::test]
async fn events_tell_the_same_story_in_both() {
    for framework in BOTH {
        let elector =
            Elector::builder("table", MemoryStore::new()).payload("here").build().unwrap();
        let leadership = elector.leadership();
        let address = serve(framework, &leadership, Gate::Plain, &Controls::new());
        let response = ask(address, get("/leadership/events")).await;
        assert_eq!(response.headers()["content-type"], "text/event-stream", "{framework:?}");
        assert_eq!(response.headers()["cache-control"], "no-cache", "{framework:?}");
        let candidacy = elector.spawn();
        let term = leadership.leading().await.unwrap();
        let mut shown = leadership.watch();
        shown.wait_for(|status| status.leader().is_some()).await.unwrap();
        let mut body = response.into_body();
        let mut text = String::new();
        while !text.contains("event: new_leader") {
            let frame = body.frame().await.unwrap().unwrap();
            text.push_str(std::str::from_utf8(frame.data_ref().unwrap()).unwrap());
        }
        candidacy.shutdown().await.unwrap();
        // The stream ends with its elector.
        while let Some(frame) = body.frame().await {
            let frame = frame.unwrap();
            text.push_str(std::str::from_utf8(frame.data_ref().unwrap()).unwrap());
        }
        let names: Vec<_> = text.lines().filter_map(|line| line.strip_prefix("event: ")).collect();
        assert_eq!(names, ["status", "started", "new_leader", "ended"], "{framework:?}: {text}");
        let (identity, fence) = (term.identity(), term.fence());
        let ended = format!(
            "data: {{\"election\":\"table\",\"identity\":\"{identity}\",\"fence\":{fence},\"reason\":\"shutdown\"}}"
        );
        assert!(text.contains(&ended), "{framework:?}: {text}");
    }
}
