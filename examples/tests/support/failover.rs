//! Runs of the `failover` example, read as another program would.

use std::{net::TcpStream, process::Output};

use serde_json::Value;

use super::example;

/// What a run printed with `--json`.
pub(crate) struct Account {
    pub(crate) events: Vec<Value>,
    pub(crate) summary: Value,
}

/// A whole run.
pub(crate) fn run(flags: &[&str]) -> Account {
    let output = example("failover").arg("--json").args(flags).output().unwrap();
    let account = parse(&output);
    assert!(output.status.success(), "{}", account.summary);
    account
}

fn parse(output: &Output) -> Account {
    let text = String::from_utf8(output.stdout.clone()).unwrap();
    let mut events: Vec<Value> =
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let summary = events.pop().filter(|last| last["event"] == "summary").unwrap_or_else(|| {
        panic!("no summary in {text}\n{}", String::from_utf8_lossy(&output.stderr))
    });
    Account { events, summary }
}

impl Account {
    /// Checks that the run did what it is for, whatever it says of itself.
    pub(crate) fn check(&self) {
        let Self { events, summary } = self;
        assert_eq!(summary["observed"], true, "{summary}");
        assert_eq!(summary["violations"], Value::Array(vec![]), "{summary}");
        assert!(summary["took_ms"].as_f64().unwrap() < 60_000.0, "{summary}");

        let signals: Vec<&str> =
            self.named("signalled").filter_map(|it| it["signal"].as_str()).collect();
        assert_eq!(signals[..4], ["SIGKILL", "SIGTERM", "SIGSTOP", "SIGCONT"], "{signals:?}");
        let exercises = summary["exercises"].as_array().unwrap();
        assert_eq!(exercises.len(), 3);
        assert!(summary["terms"].as_array().unwrap().len() >= 4, "{summary}");
        let requests = &summary["requests"];
        for kind in ["served", "refused"] {
            assert!(requests[kind].as_u64().unwrap() > 100, "{kind}: {requests}");
        }
        assert_eq!(requests["unexpected"], 0);
        let fences: Vec<i64> = self.named("leads").filter_map(|it| it["fence"].as_i64()).collect();
        assert!(fences.len() >= 4 && fences.is_sorted_by(|a, b| a < b), "{fences:?}");
        assert_eq!(self.named("started").count(), 5, "{events:?}");
        for event in self.named("started") {
            assert!(!is_there(event), "{event} has outlived the run");
        }
    }

    fn named(&self, name: &str) -> impl Iterator<Item = &Value> {
        self.events.iter().filter(move |event| event["event"] == name)
    }
}

/// Whether the replica that a `started` event tells of is there: also a frozen one accepts connections.
pub(crate) fn is_there(started: &Value) -> bool {
    let address = started["url"].as_str().and_then(|url| url.strip_prefix("http://"));
    TcpStream::connect(address.unwrap()).is_ok()
}
