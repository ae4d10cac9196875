//! The `metrics` example, run as a program, and the dashboard that shows what it gives.
#![cfg(unix)]

mod support;

use std::collections::BTreeSet;

use support::{Replica, wait_for};

/// The name of a metric without what the exporter appends to that of a histogram.
fn family(name: &str) -> &str {
    let histogram = ["_bucket", "_sum", "_count"].iter().find_map(|end| name.strip_suffix(end));
    histogram.filter(|name| name.ends_with("_seconds")).unwrap_or(name)
}

#[test]
fn a_leader_shows_what_it_counts_to_prometheus() {
    let replica = Replica::start_as(&["metrics"], &["--lease", "1500ms"]);
    wait_for("it leads", || (replica.get("/leader").status == 200).then_some(()));
    assert_eq!(replica.post("/jobs").status, 200);
    let text = wait_for("it has renewed", || {
        let text = replica.get("/metrics").body;
        text.contains("operation=\"renew\",outcome=\"ok\"").then_some(text)
    });
    for line in [
        "tenure_is_leader{election=\"example\"} 1",
        "tenure_requests_total{election=\"example\",outcome=\"admitted\"} 1",
        "tenure_transitions_total{election=\"example\",to=\"leading\",reason=\"elected\"} 1",
        "# TYPE tenure_store_call_duration_seconds histogram",
    ] {
        assert!(text.contains(line), "{line} in\n{text}");
    }
    let samples = text.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
    for sample in samples {
        let name = family(sample.split(['{', ' ']).next().unwrap());
        assert!(tenure::metrics::ALL.contains(&name), "{name} is not in the table");
    }
}

/// Whatever looks like the name of a metric.
fn names(text: &str) -> BTreeSet<&str> {
    let is_part = |character: char| character.is_ascii_alphanumeric() || character == '_';
    let words = text.split(|character| !is_part(character));
    words.filter(|word| word.starts_with("tenure_")).map(family).collect()
}

#[test]
fn the_dashboard_uses_the_metrics_that_there_are_and_all_of_them() {
    let dashboard = include_str!("../../docs/grafana.json");
    serde_json::from_str::<serde_json::Value>(dashboard).unwrap();
    assert_eq!(names(dashboard), BTreeSet::from(tenure::metrics::ALL));
}
