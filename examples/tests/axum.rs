//! The `axum` example, run as a program.
#![cfg(unix)]

mod support;

use std::net::TcpListener;

use serde_json::Value;
use support::{Replica, example, wait_for};
use tempfile::TempDir;

const FAST: [&str; 2] = ["--lease", "1500ms"];

#[test]
fn a_replica_in_memory_serves_all_its_routes_and_stops_with_0() {
    let replica = Replica::start(&FAST);
    let job = replica.leads();
    assert_eq!(job["fence"], 1);

    assert_eq!(replica.get("/slow?ms=50").json(), job);
    let stream = replica.get("/stream?ms=300").body;
    let lines: Vec<Value> =
        stream.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines, [job.clone(), job.clone(), job]);

    assert_eq!(replica.get("/").status, 200);
    assert_eq!(replica.get("/leader").status, 200);
    assert_eq!(replica.get("/leadership").status, 200);
    assert_eq!(replica.get("/elsewhere").status, 404);
    replica.terminate();
    assert_eq!(replica.exited().code(), Some(0));
}

#[test]
fn of_two_replicas_one_serves_and_hands_over_after_its_requests_are_answered() {
    let directory = TempDir::new().unwrap();
    let store = format!("sqlite:{}", directory.path().join("example.db").display());
    // With the default lease, which also a busy machine renews in time.
    let start = || Replica::start(&["--store", &store]);

    let first = start();
    let job = first.leads();
    let second = start();
    let refusal = second.post("/jobs");
    assert_eq!(refusal.status, 503);
    assert!(refusal.head.contains("tenure-reason: refused"), "{refusal:?}");
    assert_eq!(second.get("/").status, 200);
    assert_eq!(second.get("/leader").status, 503);

    let stream = first.begin_get("/stream?ms=1500");
    first.terminate();
    wait_for("the old leader admits nothing more", || {
        (first.post("/jobs").status == 503).then_some(())
    });
    assert_eq!(second.post("/jobs").status, 503, "the old leader has not finished yet");
    assert_eq!(stream.finish().body.lines().count(), 15);
    assert_eq!(first.exited().code(), Some(0));

    let next = second.leads();
    assert!(next["fence"].as_i64() > job["fence"].as_i64(), "{next} after {job}");
    assert_ne!(next["identity"], job["identity"]);
}

#[test]
fn a_replica_that_cannot_start_says_why() {
    for (flags, part) in [
        (["--store", "redis://:secret@localhost"], "\"redis\" is the scheme of no store"),
        (["--store", "password=secret"], "it names no store; write `memory:`"),
        (["--store", "app.db"], "it names no store"),
        (["--store", ":memory:"], "it names no store"),
        (["--store", "sqlite:"], "names no file"),
        (["--store", "postgres://127.0.0.1:bad/app"], "invalid port number"),
        (["--store", "postgres://postgres:secret@127.0.0.1:1/app"], "refused"),
        (["--store", "sqlite:/nowhere/at/all.db"], "/nowhere/at"),
        (["--lease", "3"], "time unit needed"),
        (["--timeout", "5s"], "operation_timeout"),
        (["--election", ""], "election name is empty"),
    ] {
        let output =
            example("axum").args(["--listen", "127.0.0.1:0"]).args(flags).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success(), "{flags:?}");
        assert!(said.contains(part), "{flags:?}: {said}");
        assert!(!said.contains("secret"), "{said}");
    }
}

#[test]
fn an_address_that_is_taken_is_named_with_its_flag() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let output = example("axum").args(["--listen", &address]).output().unwrap();
    assert!(!output.status.success());
    let said = String::from_utf8_lossy(&output.stderr);
    let part = format!("could not listen on {address}; choose another address with --listen: ");
    assert!(said.contains(&part), "{said}");
}
