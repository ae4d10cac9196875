//! The `grpc` example, run as a program: replicas, and clients.
#![cfg(unix)]
#![allow(clippy::unwrap_used)] // helpers of tests are tests

mod support;

use std::{
    io::{BufRead, BufReader, Read},
    process::Stdio,
};

use support::{Replica, example, wait_for};
use tempfile::TempDir;

fn start(directory: &TempDir) -> Replica {
    let store = format!("sqlite:{}", directory.path().join("example.db").display());
    Replica::start_as(&["grpc", "serve"], &["--store", &store])
}

/// `--at` for each replica.
fn at(replicas: &[&Replica]) -> Vec<String> {
    let flag = |replica: &&Replica| ["--at".to_owned(), format!("http://{}", replica.address())];
    replicas.iter().flat_map(flag).collect()
}

/// What `run` prints, or complains.
fn run(replicas: &[&Replica]) -> Result<String, String> {
    let output = example("grpc").arg("run").args(at(replicas)).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    if output.status.success() { Ok(text(output.stdout)) } else { Err(text(output.stderr)) }
}

fn fence(report: &str) -> i64 {
    let (said, fence) = report.trim().rsplit_once(" under fence ").unwrap();
    assert!(said.starts_with("report is done, by "), "{report}");
    fence.parse().unwrap()
}

#[test]
fn clients_find_the_leader_and_learn_that_its_term_is_over() {
    let directory = TempDir::new().unwrap();
    let leader = start(&directory);
    leader.is_leader();
    let standby = start(&directory);

    let refused = run(&[&standby]).unwrap_err();
    assert!(refused.contains("no replica leads at the moment"), "{refused}");
    let before = fence(&run(&[&standby, &leader]).unwrap());

    let mut watching = example("grpc")
        .arg("watch")
        .args(at(&[&standby, &leader]))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut steps = BufReader::new(watching.stdout.take().unwrap()).lines();
    for step in 1..=3 {
        let line = steps.next().unwrap().unwrap();
        assert!(line.starts_with(&format!("report: step {step}, by ")), "{line}");
    }
    // A stream that never ends does not hold up the hand-over.
    leader.terminate();
    let status = wait_for("the client has exited", || watching.try_wait().unwrap());
    assert!(!status.success());
    let mut said = String::new();
    watching.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    assert!(said.contains("its outcome is unknown (Unavailable)"), "{said}");
    assert_eq!(leader.exited().code(), Some(0));

    standby.is_leader();
    assert!(fence(&run(&[&standby]).unwrap()) > before);
}

#[test]
fn a_url_that_is_none_is_named() {
    let output = example("grpc").args(["run", "--at", "no url"]).output().unwrap();
    assert!(!output.status.success());
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("\"no url\" is not the URL of a replica"), "{said}");
}
