//! One server of each version for each test program, and what its tests have in common.

#![allow(dead_code, clippy::unwrap_used)] // no test program needs all of it, and it is for tests alone

use std::{
    error::Error,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
    time::Duration,
};

use async_nats::{Client, HeaderMap};
use bytes::Bytes;
use futures::StreamExt;
use serde_json::{Value, json};
use tenure::{
    ElectionName, Fence, Identity, Lease, StoreError,
    store::{AcquireRequest, Observed, Outcome, ReleaseRequest, RenewRequest, Session, Store},
};
use tenure_nats::{BucketError, NatsError, NatsSession, NatsStore, async_nats};
use tenure_testbed::Nats;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

/// Does not run out during a test.
pub(crate) const LONG: Duration = Duration::from_secs(600);

/// The servers that all tests of this program share, the old one and the current one. They go away with the process.
pub(crate) fn old() -> &'static Nats {
    static SERVER: OnceLock<Nats> = OnceLock::new();
    SERVER.get_or_init(|| Nats::start().unwrap())
}

pub(crate) fn current() -> &'static Nats {
    static SERVER: OnceLock<Nats> = OnceLock::new();
    SERVER.get_or_init(|| Nats::start_current().unwrap())
}

/// A name that no other test uses.
pub(crate) fn fresh_name(what: &str) -> String {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    format!("{what}_{}", NUMBER.fetch_add(1, Ordering::Relaxed))
}

pub(crate) fn election() -> ElectionName {
    ElectionName::new("billing").unwrap()
}

/// A backup of a bucket.
#[derive(Clone)]
pub(crate) struct Backup {
    request: Value,
    archive: Vec<Bytes>,
}

/// A hand on what lies behind a store's back.
pub(crate) struct Admin(pub(crate) Client);

impl Admin {
    pub(crate) async fn of(server: &Nats) -> Self {
        Self(async_nats::connect(server.url()).await.unwrap())
    }

    /// Asks JetStream, and gives what it says, errors included.
    pub(crate) async fn ask(&self, api: &str, request: &Value) -> Value {
        let subject = format!("$JS.API.{api}");
        let reply = self.0.request(subject, request.to_string().into()).await.unwrap();
        serde_json::from_slice(&reply.payload).unwrap()
    }

    pub(crate) async fn create(&self, bucket: &str, change: impl FnOnce(&mut Value)) {
        let mut config = json!({
            "name": format!("KV_{bucket}"), "subjects": [format!("$KV.{bucket}.>")],
            "retention": "limits", "storage": "file", "num_replicas": 1, "max_msgs_per_subject": 1,
            "max_msgs": -1, "max_bytes": -1, "max_age": 0, "max_msg_size": -1, "max_consumers": -1,
            "discard": "new", "deny_delete": true, "allow_rollup_hdrs": true,
        });
        change(&mut config);
        let created = self.ask(&format!("STREAM.CREATE.KV_{bucket}"), &config).await;
        assert!(created["error"].is_null(), "{created}");
    }

    pub(crate) async fn info(&self, bucket: &str) -> Value {
        self.ask(&format!("STREAM.INFO.KV_{bucket}"), &json!({"subjects_filter": ">"})).await
    }

    /// Emptied first: a server was seen to find the records of a bucket again when one of the same name was created right
    /// after it had been deleted.
    pub(crate) async fn delete(&self, bucket: &str) {
        self.ask(&format!("STREAM.PURGE.KV_{bucket}"), &json!({})).await;
        let answer = self.ask(&format!("STREAM.DELETE.KV_{bucket}"), &json!({})).await;
        // There is none any more, in any case.
        let gone = answer["success"] == true || answer["error"]["err_code"] == 10059;
        assert!(gone, "{answer}");
    }

    /// All keys that there are.
    pub(crate) async fn keys(&self, bucket: &str) -> Vec<String> {
        let info = self.info(bucket).await;
        let subjects = info["state"]["subjects"].as_object().cloned().unwrap_or_default();
        let prefix = format!("$KV.{bucket}.");
        subjects.keys().map(|subject| subject.strip_prefix(&prefix).unwrap().to_owned()).collect()
    }

    /// The message under a key, as the server gives it.
    pub(crate) async fn message(&self, bucket: &str, key: &str) -> Option<Value> {
        let request = json!({"last_by_subj": format!("$KV.{bucket}.{key}")});
        let answer = self.ask(&format!("STREAM.MSG.GET.KV_{bucket}"), &request).await;
        Some(answer["message"].clone()).filter(|message| !message.is_null())
    }

    /// Writes without any condition.
    pub(crate) async fn put(&self, bucket: &str, key: &str, value: impl Into<Vec<u8>>) {
        self.put_with(bucket, key, value, HeaderMap::new()).await;
    }

    pub(crate) async fn put_with(
        &self,
        bucket: &str,
        key: &str,
        value: impl Into<Vec<u8>>,
        headers: HeaderMap,
    ) {
        let subject = format!("$KV.{bucket}.{key}");
        let reply =
            self.0.request_with_headers(subject, headers, value.into().into()).await.unwrap();
        assert!(reply.payload.starts_with(br#"{"stream""#), "{:?}", reply.payload);
    }

    /// Takes a backup, as the server gives it: a description and an archive in pieces.
    pub(crate) async fn back_up(&self, bucket: &str) -> Backup {
        let inbox = self.0.new_inbox();
        let mut pieces = self.0.subscribe(inbox.clone()).await.unwrap();
        let request = json!({"deliver_subject": inbox, "no_consumers": true});
        let answer = self.ask(&format!("STREAM.SNAPSHOT.KV_{bucket}"), &request).await;
        assert!(answer["error"].is_null(), "{answer}");
        let mut archive = Vec::new();
        loop {
            let piece = pieces.next().await.unwrap();
            if piece.payload.is_empty() {
                break;
            }
            if let Some(reply) = piece.reply {
                self.0.publish(reply, "".into()).await.unwrap();
            }
            archive.push(piece.payload);
        }
        let request = json!({"config": answer["config"], "state": answer["state"]});
        Backup { request, archive }
    }

    /// Puts the backup in place of what is there. A current server has been seen to fail, once in
    /// some hundred times, so it is tried again.
    pub(crate) async fn restore(&self, bucket: &str, backup: Backup) {
        let mut answers = Vec::new();
        for _ in 0..5 {
            let answer = self.try_to_restore(bucket, &backup).await;
            if answer["error"].is_null() {
                return;
            }
            answers.push(answer);
        }
        panic!("{answers:?}");
    }

    async fn try_to_restore(&self, bucket: &str, backup: &Backup) -> Value {
        self.delete(bucket).await;
        let answer = self.ask(&format!("STREAM.RESTORE.KV_{bucket}"), &backup.request).await;
        let subject = answer["deliver_subject"].as_str().expect("a subject").to_owned();
        for piece in &backup.archive {
            self.0.request(subject.clone(), piece.clone()).await.unwrap();
        }
        let done = self.0.request(subject, "".into()).await.unwrap();
        serde_json::from_slice(&done.payload).unwrap()
    }

    /// Removes a key without a trace.
    pub(crate) async fn forget(&self, bucket: &str, key: &str) {
        let request = json!({"filter": format!("$KV.{bucket}.{key}")});
        let purged = self.ask(&format!("STREAM.PURGE.KV_{bucket}"), &request).await;
        assert!(purged["error"].is_null(), "{purged}");
    }
}

/// A network path on which requests arrive, and replies are lost while it says so.
pub(crate) struct OneWay {
    pub(crate) url: String,
    loses_replies: Arc<AtomicBool>,
}

impl OneWay {
    pub(crate) async fn to(server: &Nats) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("nats://{}", listener.local_addr().unwrap());
        let loses_replies = Arc::new(AtomicBool::new(false));
        let (target, loses) = (server.addr(), loses_replies.clone());
        tokio::spawn(async move {
            loop {
                let (client, _) = listener.accept().await.unwrap();
                let server = TcpStream::connect(target).await.unwrap();
                let (mut from_client, mut to_client) = client.into_split();
                let (mut from_server, mut to_server) = server.into_split();
                tokio::spawn(
                    async move { tokio::io::copy(&mut from_client, &mut to_server).await },
                );
                let loses = loses.clone();
                tokio::spawn(async move {
                    let mut buffer = vec![0; 64 * 1024];
                    while let Ok(length @ 1..) = from_server.read(&mut buffer).await {
                        let lost = loses.load(Ordering::SeqCst);
                        if !lost && to_client.write_all(&buffer[..length]).await.is_err() {
                            return;
                        }
                    }
                });
            }
        });
        Self { url, loses_replies }
    }

    pub(crate) fn lose_replies(&self, lose: bool) {
        self.loses_replies.store(lose, Ordering::SeqCst);
    }
}

/// Asks again and again until there is an answer.
pub(crate) async fn wait_for<T>(what: &str, mut ask: impl AsyncFnMut() -> Option<T>) -> T {
    for _ in 0..6_000 {
        if let Some(answer) = ask().await {
            return answer;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("waited in vain for {what}");
}

/// A store with a bucket of its own, in place.
pub(crate) async fn fresh_store(server: &Nats) -> (NatsStore, String) {
    let bucket = fresh_name("bucket");
    let store = NatsStore::new(&server.url()).unwrap().with_bucket(&bucket).unwrap();
    store.ensure_schema().await.unwrap();
    (store, bucket)
}

/// One candidate and its session.
pub(crate) struct Candidate {
    pub(crate) identity: Identity,
    pub(crate) session: NatsSession,
}

impl Candidate {
    pub(crate) fn new(name: &str, store: &NatsStore) -> Self {
        Self { identity: Identity::new(name).unwrap(), session: store.session(&election()) }
    }

    pub(crate) fn claim_of(&self, observed: Option<&Lease>) -> AcquireRequest {
        AcquireRequest::new(self.identity.clone(), observed.map(Observed::from), LONG)
    }

    pub(crate) fn renewal_of(&self, fence: Fence) -> RenewRequest {
        RenewRequest::new(self.identity.clone(), fence, LONG)
    }

    pub(crate) fn release_of(&self, fence: Fence) -> ReleaseRequest {
        ReleaseRequest::new(self.identity.clone(), fence)
    }

    pub(crate) async fn look(&mut self) -> Option<Lease> {
        self.session.inspect().await.unwrap()
    }

    /// Claims whatever is there.
    pub(crate) async fn lead(&mut self) -> Lease {
        let seen = self.look().await;
        won(self.session.acquire(&self.claim_of(seen.as_ref())).await.unwrap())
    }

    pub(crate) async fn renew(&mut self, fence: Fence) -> Outcome {
        self.session.renew(&self.renewal_of(fence)).await.unwrap()
    }
}

pub(crate) fn won(outcome: Outcome) -> Lease {
    match outcome {
        Outcome::Won(lease) => lease,
        Outcome::Lost(by) => panic!("lost to {by:?}"),
    }
}

pub(crate) fn lost(outcome: Outcome) -> Option<Lease> {
    match outcome {
        Outcome::Won(lease) => panic!("won {lease:?}"),
        Outcome::Lost(by) => by,
    }
}

/// What is wrong with the bucket.
pub(crate) fn bucket_error(error: &StoreError) -> &BucketError {
    assert!(error.is_fatal(), "{error}");
    match error.source().unwrap().downcast_ref::<NatsError>() {
        Some(NatsError::Bucket(error)) => error,
        other => panic!("{other:?}"),
    }
}

/// On both versions.
pub(crate) async fn on_both(test: impl AsyncFn(&'static Nats)) {
    test(old()).await;
    test(current()).await;
}

pub(crate) fn store(server: &Nats, bucket: &str) -> NatsStore {
    NatsStore::new(&server.url()).unwrap().with_bucket(bucket).unwrap()
}
