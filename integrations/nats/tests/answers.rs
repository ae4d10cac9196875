//! What real servers say too rarely to wait for it: from a server that answers by a script.

#![allow(clippy::unwrap_used)] // helpers of tests are tests

use std::{
    error::Error,
    net::SocketAddr,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use serde_json::{Value, json};
use tenure::{
    ElectionName, Fence, Identity, StoreError,
    store::{AcquireRequest, Outcome, PlaceRequest, ReleaseRequest, RenewRequest, Session, Store},
};
use tenure_nats::{NatsError, NatsStore, SetupError, migrate};
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::{TcpListener, TcpStream},
};

const LEASE: Duration = Duration::from_secs(15);
const TERM: i64 = 40;

/// What it answers, to which subject.
type Script = dyn Fn(&str) -> String + Send + Sync;

/// What the script has for a subject to which nobody listens.
const NOBODY: &str = "";

/// The store of a server that answers as the script has it.
async fn scripted(script: impl Fn(&str) -> String + Send + Sync + 'static) -> NatsStore {
    let addr = serve(script).await;
    NatsStore::new(&format!("nats://{addr}")).unwrap()
}

/// Starts a server that speaks as much of the protocol as the driver needs.
async fn serve(script: impl Fn(&str) -> String + Send + Sync + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap();
    let script: Arc<Script> = Arc::new(script);
    tokio::spawn(async move {
        loop {
            let (client, _) = listener.accept().await.unwrap();
            let script = script.clone();
            // Until the client hangs up.
            tokio::spawn(async move { converse(client, &*script).await });
        }
    });
    addr
}

async fn converse(client: TcpStream, script: &Script) -> std::io::Result<()> {
    let mut client = BufReader::new(client);
    let info = json!({"version": "2.10.0", "proto": 1, "headers": true, "max_payload": 1_000_000, "jetstream": true});
    client.write_all(format!("INFO {info}\r\n").as_bytes()).await?;
    let mut inbox = String::new();
    loop {
        let mut line = String::new();
        if client.read_line(&mut line).await? == 0 {
            return Ok(());
        }
        match *line.split_whitespace().collect::<Vec<_>>() {
            ["PING"] => client.write_all(b"PONG\r\n").await?,
            ["SUB", _, id] => inbox = id.to_owned(),
            // Headers have a length of their own in front of the whole one.
            ["PUB" | "HPUB", subject, reply_to, .., length] => {
                let mut payload = vec![0; length.parse::<usize>().unwrap() + 2];
                client.read_exact(&mut payload).await?;
                let answer = script(subject);
                let length = answer.len();
                let message = match &*answer {
                    NOBODY => {
                        format!("HMSG {reply_to} {inbox} 16 16\r\nNATS/1.0 503\r\n\r\n\r\n")
                    }
                    answer => format!("MSG {reply_to} {inbox} {length}\r\n{answer}\r\n"),
                };
                client.write_all(message.as_bytes()).await?;
            }
            _ => {}
        }
    }
}

/// A bucket as `ensure_schema` leaves it.
fn bucket(change: impl FnOnce(&mut Value)) -> String {
    let mut info = json!({
        "config": {
            "name": "KV_leader_election", "subjects": ["$KV.leader_election.>"], "retention": "limits",
            "storage": "file", "num_replicas": 1, "max_msgs_per_subject": 1, "max_msg_size": -1, "discard": "new",
        },
        "created": "2026-11-29T22:21:53Z",
        "state": {"messages": 1, "first_seq": 1_795_990_913_000_000_u64},
    });
    change(&mut info);
    info.to_string()
}

fn refusal(err_code: u64) -> String {
    json!({"error": {"code": 400, "err_code": err_code, "description": "as the script has it"}})
        .to_string()
}

const NO_MESSAGE: u64 = 10037;
const NO_FILES: u64 = 10049;
const NO_STREAM: u64 = 10059;
const SUBJECTS_OVERLAP: u64 = 10065;
const WRONG_SEQUENCE: u64 = 10071;
const FULL: u64 = 10077;

/// A message of the stream.
fn message(seq: u64, time: &str, data: &str) -> String {
    json!({"message": {"seq": seq, "time": time, "data": data}}).to_string()
}

/// The term of "web-1", written anew since it was read last.
fn renewed_elsewhere() -> impl Fn() -> String {
    use base64::{Engine, prelude::BASE64_STANDARD};
    let revision = AtomicU64::new(1_795_990_913_000_001);
    move || {
        let record = json!({
            "tenure": 1, "holder": "web-1", "fence": TERM, "settled": true, "duration_us": 15_000_000, "payload": "",
            "released": false, "nonce": "5f",
        });
        let data = BASE64_STANDARD.encode(record.to_string());
        message(revision.fetch_add(1, Ordering::SeqCst), "2026-11-29T22:21:54Z", &data)
    }
}

fn election() -> ElectionName {
    ElectionName::new("billing").unwrap()
}

fn holder() -> Identity {
    Identity::new("web-1").unwrap()
}

fn cause(error: &StoreError) -> &NatsError {
    error.source().unwrap().downcast_ref().unwrap()
}

#[track_caller]
fn assert_contended<T: std::fmt::Debug>(outcome: Result<T, StoreError>) {
    let error = outcome.unwrap_err();
    assert!(matches!(cause(&error), NatsError::Contended), "{error:?}");
    assert!(error.is_retryable(), "{error}");
}

/// Bounded, so that the elector's next call can be made.
#[tokio::test]
async fn a_record_that_somebody_else_always_changes_first_is_given_up_for_now() {
    let read = renewed_elsewhere();
    let store = scripted(move |subject| match subject {
        "$JS.API.STREAM.INFO.KV_leader_election" => bucket(|_| {}),
        "$JS.API.STREAM.MSG.GET.KV_leader_election" => read(),
        _ => refusal(WRONG_SEQUENCE),
    })
    .await;
    let mut session = store.session(&election());
    let fence = Fence::try_from(TERM).unwrap();
    assert_contended(session.renew(&RenewRequest::new(holder(), fence, LEASE)).await);
    assert_contended(session.release(&ReleaseRequest::new(holder(), fence)).await);
    assert_contended(store.depose(&election()).await);
}

#[tokio::test]
async fn a_record_that_comes_and_goes_is_not_placed_and_not_won() {
    let store = scripted(move |subject| match subject {
        "$JS.API.STREAM.INFO.KV_leader_election" => bucket(|_| {}),
        "$JS.API.STREAM.MSG.GET.KV_leader_election" => refusal(NO_MESSAGE),
        _ => refusal(WRONG_SEQUENCE),
    })
    .await;
    let mut session = store.session(&election());
    assert_contended(session.place(&PlaceRequest::new(LEASE)).await);
    let outcome = session.acquire(&AcquireRequest::new(holder(), None, LEASE)).await.unwrap();
    assert_eq!(outcome, Outcome::Lost(None));
}

/// Between the claim and the look at what came of it.
#[tokio::test]
async fn a_claim_that_was_written_over_before_it_was_read_back_is_lost() {
    let (read, looks) = (renewed_elsewhere(), AtomicU64::new(0));
    let store = scripted(move |subject| match subject {
        "$JS.API.STREAM.INFO.KV_leader_election" => bucket(|_| {}),
        "$JS.API.STREAM.MSG.GET.KV_leader_election" => {
            if looks.fetch_add(1, Ordering::SeqCst) == 0 { refusal(NO_MESSAGE) } else { read() }
        }
        _ => json!({"stream": "KV_leader_election", "seq": 1_795_990_913_000_000_u64}).to_string(),
    })
    .await;
    let claim = AcquireRequest::new(Identity::new("web-2").unwrap(), None, LEASE);
    let outcome = store.session(&election()).acquire(&claim).await.unwrap();
    let Outcome::Lost(Some(by)) = outcome else { panic!("{outcome:?}") };
    assert_eq!(by.holder, Some(holder()));
}

#[tokio::test]
async fn what_is_shown_of_a_store_and_its_sessions_is_no_secret() {
    let store = NatsStore::new("nats://app:secret@127.0.0.1:1").unwrap();
    let store = store.with_bucket("leases").unwrap();
    let session = store.session(&election());
    let shown = format!("{store:?} {session:?}");
    assert!(shown.contains("leases") && shown.contains("127.0.0.1:1"), "{shown}");
    assert!(shown.contains("billing") && !shown.contains("secret"), "{shown}");
}

/// All that an error says.
fn everything(error: &StoreError) -> String {
    let causes = std::iter::successors(error.source(), |cause| (*cause).source());
    causes.fold(error.to_string(), |said, cause| format!("{said}: {cause}"))
}

/// Files of certificates are read when somebody connects, and without them nobody is.
#[tokio::test]
async fn a_certificate_that_is_not_there_is_looked_for_when_it_is_needed() {
    let addr = serve(|_| NOBODY.to_owned()).await;
    let store = NatsStore::new(&format!("tls://{addr}")).unwrap();
    let with_authority = store.clone().with_root_certificates("/nowhere/ca.pem").unwrap();
    let with_own = store.with_client_certificate("/nowhere/own.pem", "/nowhere/own.key").unwrap();
    for store in [with_authority, with_own] {
        let error = store.ping().await.unwrap_err();
        assert!(everything(&error).contains("No such file"), "{}", everything(&error));
    }
}

/// Those of an application's client are its own business.
#[tokio::test]
async fn an_applications_client_takes_no_certificate() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap().to_string();
    // Nobody answers there; the client connects by itself, when it can.
    let client = async_nats::ConnectOptions::new().retry_on_initial_connect().connect(addr);
    let theirs = NatsStore::from_client(client.await.unwrap());
    let refused = theirs.with_client_certificate("own.pem", "own.key").unwrap_err();
    assert!(matches!(refused, SetupError::NotOurClient { .. }), "{refused}");
    assert!(refused.to_string().contains("a client certificate"), "{refused}");
}

#[test]
fn a_bucket_without_room_for_anything_is_refused() {
    let store = NatsStore::new("nats://db").unwrap();
    assert!(matches!(store.with_max_bytes(0), Err(SetupError::NoBytes)));
}

/// A bucket of which the server does not know yet when it was created.
fn unfinished() -> String {
    bucket(|info| {
        info["created"] = "0001-01-01T00:00:00Z".into();
        info["state"] = json!({"messages": 0, "first_seq": 0});
    })
}

/// What a server says to somebody while it carries out the request of somebody else to create the same bucket; all of it was
/// seen when twelve did so at once.
#[tokio::test]
async fn a_bucket_that_is_still_being_created_is_waited_for() {
    let unnoted = bucket(|info| info["state"]["messages"] = 0.into());
    let stored =
        json!({"stream": "KV_leader_election", "seq": 1_795_990_913_000_000_u64}).to_string();
    let (info, create, note) =
        ("$JS.API.STREAM.INFO", "$JS.API.STREAM.CREATE", "$KV.leader_election./note");
    for course in [
        // It is not known when it was created.
        vec![(info, unfinished()), (info, unfinished()), (info, bucket(|_| {}))],
        // It is there, and takes no messages yet.
        vec![
            (info, unnoted.clone()),
            (note, NOBODY.to_owned()),
            (info, unnoted.clone()),
            (note, stored),
        ],
        // It is in the way of another one of the same name.
        vec![
            (info, refusal(NO_STREAM)),
            (create, refusal(SUBJECTS_OVERLAP)),
            (info, bucket(|_| {})),
        ],
        // Its files are.
        vec![(info, refusal(NO_STREAM)), (create, refusal(NO_FILES)), (info, bucket(|_| {}))],
    ] {
        let asked = Arc::new(AtomicUsize::new(0));
        let (turns, turn) = (course.clone(), asked.clone());
        let store = scripted(move |subject| {
            let (expected, answer) = &turns[turn.fetch_add(1, Ordering::SeqCst)];
            assert!(subject.starts_with(expected), "{subject} in place of {expected}");
            answer.clone()
        })
        .await;
        store.ensure_schema().await.unwrap();
        assert_eq!(asked.load(Ordering::SeqCst), course.len(), "{course:?}");
    }
}

/// Nobody is creating it: then the reason is another one, and is said.
#[tokio::test]
async fn a_bucket_that_cannot_be_created_is_not_waited_for_without_end() {
    let store = scripted(|_| unfinished()).await;
    let error = store.ensure_schema().await.unwrap_err();
    assert!(matches!(cause(&error), NatsError::BeingCreated), "{error:?}");
    assert!(error.is_retryable(), "{error}");

    let store = scripted(|subject| match subject {
        "$JS.API.STREAM.INFO.KV_leader_election" => refusal(NO_STREAM),
        _ => refusal(SUBJECTS_OVERLAP),
    })
    .await;
    let error = store.ensure_schema().await.unwrap_err();
    assert_eq!(cause(&error).jetstream_code(), Some(SUBJECTS_OVERLAP));
    assert!(error.is_fatal() && error.to_string().contains("with_bucket"), "{error}");
}

/// Somebody deletes it whenever it was made.
#[tokio::test]
async fn a_bucket_that_never_stays_is_given_up_for_now() {
    let store = scripted(|subject| match subject {
        "$JS.API.STREAM.INFO.KV_leader_election" => refusal(NO_STREAM),
        _ => json!({}).to_string(),
    })
    .await;
    assert_contended(store.ensure_schema().await);
}

/// The old bucket is frozen only when it is written there where its elections are.
#[tokio::test]
async fn a_migration_that_cannot_note_its_target_freezes_nothing() {
    let asked = Arc::new(Mutex::new(Vec::new()));
    let heard = asked.clone();
    let store = scripted(move |subject| {
        heard.lock().unwrap().push(subject.to_owned());
        match subject {
            "$JS.API.STREAM.INFO.KV_leader_election" => bucket(|_| {}),
            "$JS.API.STREAM.MSG.GET.KV_leader_election" => refusal(NO_MESSAGE),
            "$JS.API.STREAM.INFO.KV_target" => bucket(|info| {
                info["config"]["subjects"] = json!(["$KV.target.>"]);
                info["config"]["description"] = "tenure: elections are being moved here".into();
            }),
            _ => refusal(FULL),
        }
    })
    .await;
    let target = store.clone().with_bucket("target").unwrap();
    let error = migrate(&store, &target).await.unwrap_err();
    assert_eq!(cause(&error).jetstream_code(), Some(FULL), "{error:?}");
    let asked = asked.lock().unwrap();
    assert!(asked.iter().any(|subject| subject == "$KV.leader_election./moved-to"), "{asked:?}");
    assert!(!asked.iter().any(|subject| subject.contains("STREAM.UPDATE")), "{asked:?}");
}

#[tokio::test]
async fn a_reply_that_is_none_of_jetstreams_is_fatal() {
    let time = "2026-11-29T22:21:54Z";
    for reply in [
        "nonsense".to_owned(),
        message(7, time, "not base64"),
        message(7, "yesterday", ""),
        json!({"message": {"seq": 7, "time": time, "hdrs": "not base64"}}).to_string(),
    ] {
        let shown = reply.clone();
        let store = scripted(move |subject| match subject {
            "$JS.API.STREAM.INFO.KV_leader_election" => bucket(|_| {}),
            _ => reply.clone(),
        })
        .await;
        let error = store.session(&election()).inspect().await.unwrap_err();
        assert!(matches!(cause(&error), NatsError::Reply(_)), "{shown}: {error:?}");
        assert!(error.is_fatal() && error.to_string().contains("not one of JetStream"), "{error}");
    }
}

/// What the driver does is large. Futures that hold it by value grow from level to level, and a few levels fill the stack of a
/// thread in builds that are not optimized: a claim took more than 2 MB once.
#[tokio::test]
async fn the_futures_of_all_calls_are_small() {
    const MOST: usize = 2_048;
    let store = NatsStore::new("nats://127.0.0.1:1").unwrap();
    let (election, holder) = (ElectionName::new("billing").unwrap(), Identity::new("a").unwrap());
    let session = || store.session(&election);
    let claim = AcquireRequest::new(holder.clone(), None, LEASE);
    let renewal = RenewRequest::new(holder.clone(), Fence::MIN, LEASE);
    let sizes = [
        ("ensure_schema", size_of_val(&store.ensure_schema())),
        ("ping", size_of_val(&store.ping())),
        ("leaders", size_of_val(&store.leaders())),
        ("depose", size_of_val(&store.depose(&election))),
        ("inspect", size_of_val(&session().inspect())),
        ("place", size_of_val(&session().place(&PlaceRequest::new(LEASE)))),
        ("acquire", size_of_val(&session().acquire(&claim))),
        ("renew", size_of_val(&session().renew(&renewal))),
        ("release", size_of_val(&session().release(&ReleaseRequest::new(holder, Fence::MIN)))),
        ("migrate", size_of_val(&migrate(&store, &store))),
    ];
    let large: Vec<_> = sizes.iter().filter(|(_, size)| *size > MOST).collect();
    assert!(large.is_empty(), "bytes: {large:?} of {sizes:?}");
}
