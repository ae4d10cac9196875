//! What is done to a bucket.

use serde_json::Value;
use tenure_nats::async_nats;

use super::runtime;

/// Deletes the bucket with all records.
pub(super) fn delete_bucket(url: &str) {
    let answer = ask(url, "$JS.API.STREAM.DELETE.KV_leader_election");
    assert_eq!(answer["success"], true, "{answer}");
}

/// What all its records take.
pub(super) fn bucket_bytes(url: &str) -> u64 {
    ask(url, "$JS.API.STREAM.INFO.KV_leader_election")["state"]["bytes"].as_u64().unwrap_or(0)
}

fn ask(url: &str, subject: &'static str) -> Value {
    runtime().block_on(async {
        let client = async_nats::connect(url).await.expect("the server is there");
        let answer = client.request(subject, "".into()).await.expect("the server answers");
        serde_json::from_slice(&answer.payload).expect("it answers in JSON")
    })
}
