//! The `proxy` example, run as a program.
#![cfg(unix)]
#![allow(clippy::unwrap_used)] // helpers of tests are tests

mod support;

use std::{convert::Infallible, time::Duration};

use axum::body::Body;
use bytes::Bytes;
use futures::channel::mpsc;
use http::{Request, Response, StatusCode, Version};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::TokioExecutor,
};
use serde_json::{Value, json};
use support::{Replica, wait_for};
use tempfile::TempDir;
use tenure_examples::grpc::{Job, JobsClient};
use tonic::Code;

/// One that hands over within half a second, whatever streams.
fn start(directory: &TempDir) -> Replica {
    let store = format!("sqlite:{}", directory.path().join("example.db").display());
    Replica::start_as(&["proxy"], &["--store", &store, "--drain", "500ms"])
}

/// Two replicas, of which the first leads, and what it answers.
fn leader_and_standby(directory: &TempDir) -> (Replica, Replica, Value) {
    let leader = start(directory);
    leader.is_leader();
    let standby = start(directory);
    let job = wait_for("the standby forwards", || {
        let response = standby.post("/jobs");
        (response.status == 200).then(|| response.json())
    });
    assert_eq!(standby.get("/leader").status, 503);
    (leader, standby, job)
}

struct Http(Client<HttpConnector, Body>);

impl Http {
    fn of(version: Version) -> Self {
        let mut client = Client::builder(TokioExecutor::new());
        Self(client.http2_only(version == Version::HTTP_2).build_http())
    }

    async fn send(&self, request: Request<Body>) -> Response<Incoming> {
        tokio::select! {
            response = self.0.request(request) => response.unwrap(),
            () = tokio::time::sleep(Duration::from_secs(30)) => panic!("no answer"),
        }
    }
}

#[test]
fn whichever_replica_is_asked_the_leader_answers() {
    let directory = TempDir::new().unwrap();
    let (leader, standby, job) = leader_and_standby(&directory);
    assert_eq!(job["identity"], leader.get("/leader").json()["identity"]);
    assert_eq!(leader.post("/jobs").json(), job);

    let lines = standby.get("/stream?ms=500").body;
    let lines: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines, [&job; 5].map(Clone::clone));
    assert_eq!(standby.get("/elsewhere").status, 404);

    leader.terminate();
    assert_eq!(leader.exited().code(), Some(0));
    standby.is_leader();
    let next = standby.post("/jobs").json();
    assert!(next["fence"].as_i64() > job["fence"].as_i64(), "{next} after {job}");
}

#[tokio::test]
async fn bodies_stream_both_ways_over_either_version() {
    let directory = TempDir::new().unwrap();
    let (_leader, standby, _) = leader_and_standby(&directory);
    for version in [Version::HTTP_11, Version::HTTP_2] {
        let client = Http::of(version);
        let (sender, receiver) = mpsc::unbounded::<Result<Bytes, Infallible>>();
        let request = Request::post(format!("http://{}/echo", standby.address()))
            .version(version)
            .header("connection-less", "end to end");
        let request = request.body(Body::from_stream(receiver)).unwrap();
        sender.unbounded_send(Ok("one".into())).unwrap();
        let response = client.send(request).await;
        assert_eq!((response.status(), response.version()), (StatusCode::OK, version));

        let mut body = response.into_body();
        assert_eq!(next(&mut body).await, "one");
        // Only now, so that neither side can have waited for the whole.
        sender.unbounded_send(Ok("two".into())).unwrap();
        assert_eq!(next(&mut body).await, "two");
        drop(sender);
        assert_eq!(body.collect().await.unwrap().to_bytes(), "");
    }
}

async fn next(body: &mut Incoming) -> Bytes {
    tokio::select! {
        frame = body.frame() => frame.unwrap().unwrap().into_data().unwrap(),
        () = tokio::time::sleep(Duration::from_secs(30)) => panic!("the body is held back"),
    }
}

#[tokio::test]
async fn calls_of_grpc_are_forwarded_with_how_they_end() {
    let directory = TempDir::new().unwrap();
    let (leader, standby, job) = leader_and_standby(&directory);
    let client = JobsClient::new(&[format!("http://{}", standby.address())]).unwrap();
    let report = client.run(&Job::named("report")).await.unwrap();
    assert_eq!(json!(report.identity), job["identity"]);

    let mut reports = client.watch(&Job::named("report")).await.unwrap();
    for step in 1..=3 {
        let report = reports.message().await.unwrap().unwrap();
        assert_eq!(report.text, format!("report: step {step}"));
    }
    leader.terminate();
    let cut = loop {
        if let Err(cut) = reports.message().await {
            break cut;
        }
    };
    // The leader's own words, in the trailers.
    assert_eq!(cut.code(), Code::Unavailable, "{cut}");
    assert_eq!(cut.metadata().get("tenure-reason").unwrap(), "cut", "{cut}");
}

#[tokio::test]
async fn what_was_forwarded_once_is_not_forwarded_again() {
    let directory = TempDir::new().unwrap();
    let (leader, standby, _) = leader_and_standby(&directory);
    let forwarded = |replica: &Replica| {
        Request::post(format!("http://{}/jobs", replica.address()))
            .header("tenure-forwarded", "1")
            .body(Body::empty())
            .unwrap()
    };
    let client = Http::of(Version::HTTP_11);
    let refused = client.send(forwarded(&standby)).await;
    assert_eq!(refused.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(refused.headers()["tenure-reason"], "refused");
    assert_eq!(client.send(forwarded(&leader)).await.status(), StatusCode::OK);
}
