//! The `failover` example on SQLite, run as a program.
#![cfg(unix)]

mod support;

use std::{
    io::{BufRead, BufReader},
    process::Stdio,
};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use support::{
    example,
    failover::{is_there, run},
    wait_for,
};

#[test]
fn everything_promised_is_observed_on_sqlite() {
    run(&[]).check();
}

#[test]
fn a_run_that_is_killed_or_interrupted_leaves_no_replica() {
    for signal in [Signal::INT, Signal::KILL] {
        let mut run = example("failover").arg("--json").stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(run.stdout.take().unwrap()).lines();
        let events = lines.map(|line| serde_json::from_str::<Value>(&line.unwrap()).unwrap());
        let replicas: Vec<Value> =
            events.filter(|event| event["event"] == "started").take(3).collect();
        assert!(replicas.iter().all(is_there), "{replicas:?}");

        kill_process(Pid::from_raw(run.id().cast_signed()).unwrap(), signal).unwrap();
        assert!(!run.wait().unwrap().success());
        wait_for("all replicas are gone", || (!replicas.iter().any(is_there)).then_some(()));
    }
}

#[test]
fn a_store_that_processes_cannot_share_is_refused() {
    let output = example("failover").args(["--store", "memory:"]).output().unwrap();
    assert!(!output.status.success());
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("cannot share"), "{said}");
}
