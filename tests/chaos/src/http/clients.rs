//! Clients that ask every replica all the time, and what they were told.

use std::{
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use http::{Request, StatusCode, header::HeaderMap};
use http_body_util::{BodyExt, Empty};
use serde::Deserialize;
use tenure::store::within;
use tenure_http::{Cut, REASON, Refusal};
use tenure_tests::{Client, Stamp, client};
use tokio::{
    runtime::{Builder, Runtime},
    task::{JoinHandle, JoinSet},
    time::{self, MissedTickBehavior},
};

use super::judge::{Answer, Author, Call, Outcome};

/// How many clients there are, each with connections of its own.
const CLIENTS: u32 = 8;
/// How often each asks each replica: with three of them 300 times a second.
const INTERVAL: Duration = Duration::from_millis(80);
/// How many requests of one client may wait for one replica.
const MAX_WAITING: usize = 4;
/// After this a client gives a request up. A replica that is frozen does not know of that: when it wakes it finds all of
/// them, and among them some that are new. It is longer than a replica lets a job wait and then works on it: otherwise one
/// that can do few jobs would do none, since each is given up when its turn has come.
const PATIENCE: Duration = Duration::from_secs(3);

/// All clients, on a thread of their own.
pub(crate) struct Clients {
    clients: Vec<Client>,
    told: Told,
    runtime: Runtime,
}

/// Requests to one replica, again and again.
pub(crate) struct Calling {
    stop: Arc<AtomicBool>,
    clients: Vec<JoinHandle<()>>,
}

/// What all clients have asked and were told, in the order in which they asked.
#[derive(Clone, Default)]
struct Told(Arc<Mutex<Vec<Call>>>);

impl Clients {
    pub(crate) fn new() -> Self {
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let clients = (0..CLIENTS).map(|_| client()).collect();
        Self { clients, told: Told::default(), runtime: runtime.expect("there are threads") }
    }

    /// From now on all of them ask this replica, which is there.
    pub(crate) fn call(&self, replica: usize, url: &str) -> Calling {
        let stop = Arc::new(AtomicBool::new(false));
        let clients = (0..).zip(&self.clients).map(|(number, client)| {
            let caller = Caller {
                replica,
                url: url.to_owned(),
                client: client.clone(),
                told: self.told.clone(),
            };
            // Not all at the same time.
            let first = INTERVAL * number / CLIENTS;
            self.runtime.spawn(caller.call_all_the_time(first, stop.clone()))
        });
        Calling { clients: clients.collect(), stop }
    }

    /// Looks at what was asked and told so far.
    pub(crate) fn see<T>(&self, look: impl FnOnce(&[Call]) -> T) -> T {
        look(&self.told.lock())
    }

    /// Waits until nothing is under way any more to a replica that is not asked any more, and is gone.
    pub(crate) fn finish(&self, calling: Calling) {
        calling.stop();
        self.runtime.block_on(async {
            for client in calling.clients {
                // That one has panicked was printed.
                let _ = client.await;
            }
        });
    }
}

impl Calling {
    /// Asks nothing more.
    pub(crate) fn stop(&self) {
        // Nothing else hangs on it: whoever sees it later asks once more.
        self.stop.store(true, Ordering::Relaxed);
    }
}

impl Told {
    /// Returns the name of the job.
    fn sent(&self, replica: usize) -> usize {
        let sent = Stamp::now();
        let mut calls = self.lock();
        calls.push(Call { replica, sent, answer: None });
        calls.len() - 1
    }

    fn answered(&self, id: usize, outcome: Outcome) {
        let received = Stamp::now();
        self.lock()[id].answer = Some(Answer { received, outcome });
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Call>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One client of one replica.
#[derive(Clone)]
struct Caller {
    replica: usize,
    url: String,
    client: Client,
    told: Told,
}

impl Caller {
    async fn call_all_the_time(self, first: Duration, stop: Arc<AtomicBool>) {
        time::sleep(first).await;
        let mut ticks = time::interval(INTERVAL);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut waiting = JoinSet::new();
        while !stop.load(Ordering::Relaxed) {
            ticks.tick().await;
            while waiting.try_join_next().is_some() {}
            if waiting.len() < MAX_WAITING {
                waiting.spawn(self.clone().call());
            }
        }
        waiting.join_all().await;
    }

    async fn call(self) {
        let id = self.told.sent(self.replica);
        // Too late, or the connection broke, or there was none: whether the request had arrived, nobody knows.
        let outcome = within(PATIENCE, self.ask(id)).await.and_then(Result::ok);
        self.told.answered(id, outcome.unwrap_or(Outcome::Unknown));
    }

    async fn ask(&self, id: usize) -> Result<Outcome, BoxError> {
        let uri = format!("{}/jobs?id={id}", self.url);
        let request = Request::post(uri).body(Empty::new())?;
        let (head, body) = self.client.request(request).await?.into_parts();
        let body = body.collect().await?.to_bytes();
        Ok(meaning(head.status, &head.headers, &body))
    }
}

/// What the answer of an example with a ledger means.
fn meaning(status: StatusCode, headers: &HeaderMap, body: &[u8]) -> Outcome {
    let reason = headers.get(REASON).and_then(|reason| reason.to_str().ok());
    match (status, reason) {
        (StatusCode::OK, None) => match serde_json::from_slice(body) {
            Ok(Job { identity, fence }) => Outcome::Accepted(Author { fence, identity }),
            Err(error) => Outcome::Unexpected(error.to_string()),
        },
        (StatusCode::SERVICE_UNAVAILABLE, Some(Cut::REASON)) => Outcome::Unknown,
        // Nothing was written, or nothing was even looked at.
        (StatusCode::SERVICE_UNAVAILABLE, None | Some(Refusal::REASON))
        | (StatusCode::CONFLICT, None) => Outcome::Refused,
        (StatusCode::INTERNAL_SERVER_ERROR | StatusCode::GATEWAY_TIMEOUT, None) => Outcome::Unknown,
        _ => {
            let body = String::from_utf8_lossy(body);
            Outcome::Unexpected(format!("{status} {}: {body}", reason.unwrap_or_default()))
        }
    }
}

/// What both examples answer; actix-web's says more.
#[derive(Deserialize)]
struct Job {
    identity: String,
    fence: i64,
}

type BoxError = Box<dyn std::error::Error + Send + Sync>;
