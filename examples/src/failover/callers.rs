//! Clients that call every replica all the time, and what they were told.

use std::{
    collections::BTreeMap,
    ops::AddAssign,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use http::{Method, Request, StatusCode, Uri};
use http_body_util::{BodyExt, Empty};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::TokioExecutor,
};
use serde::Serialize;
use tenure_http::{Cut, REASON, Refusal};
use tokio::{sync::watch, task::JoinSet, time};

use super::{clock::Clock, oracle::Oracle};
use crate::replica::Answer;

/// Time between two calls of one replica, whether the earlier ones were answered or not.
pub(super) const CALL_INTERVAL: Duration = Duration::from_millis(20);
/// Calls that may wait for one replica at a time. A frozen one answers none, and gets them all when it wakes.
const MAX_WAITING: usize = 400;

/// What one call came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// The leader did the work.
    Served(Answer),
    /// Not the leader; nothing was done.
    Refused,
    /// The term ended meanwhile; unknown what was done.
    Cut,
    /// No HTTP answer, for example since the process is dead.
    Unanswered,
    /// An answer that no replica should give.
    Unexpected,
}

/// How many calls came to what.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Requests {
    /// Answered by a leader.
    pub served: u64,
    /// Turned away by a replica that does not lead.
    pub refused: u64,
    /// Broken off by the end of a term.
    pub cut: u64,
    /// Not answered: the process was killed or had ended.
    pub unanswered: u64,
    /// Answered as no replica should.
    pub unexpected: u64,
}

impl Requests {
    /// All of them.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.served + self.refused + self.cut + self.unanswered + self.unexpected
    }
}

impl AddAssign for Requests {
    fn add_assign(&mut self, other: Self) {
        self.served += other.served;
        self.refused += other.refused;
        self.cut += other.cut;
        self.unanswered += other.unanswered;
        self.unexpected += other.unexpected;
    }
}

/// Who leads, as far as clients know: from the answer with the highest fence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Leads {
    pub(super) replica: usize,
    pub(super) answer: Answer,
    pub(super) since: Duration,
}

/// Everything that was answered by now.
#[derive(Debug)]
pub(super) struct Record {
    clock: Clock,
    seen: Mutex<Seen>,
    leads: watch::Sender<Option<Leads>>,
}

#[derive(Debug, Default)]
struct Seen {
    oracle: Oracle,
    /// By replica.
    requests: BTreeMap<usize, Requests>,
    /// Calls sent and not answered yet, by replica.
    waiting: BTreeMap<usize, u64>,
}

impl Record {
    pub(super) fn new(clock: Clock) -> Arc<Self> {
        let leads = watch::Sender::new(None);
        Arc::new(Self { clock, seen: Mutex::default(), leads })
    }

    /// Waits until a replica answers with a higher fence than `above`.
    pub(super) async fn leader_above(&self, above: Option<i64>) -> Leads {
        let mut leads = self.leads.subscribe();
        loop {
            let known = leads.borrow_and_update().clone();
            match known {
                Some(known) if Some(known.answer.fence) > above => return known,
                _ => {
                    // Cannot fail: the sender is in `self`.
                    let _ = leads.changed().await;
                }
            }
        }
    }

    /// What the calls of one replica came to.
    pub(super) fn requests_to(&self, replica: usize) -> Requests {
        self.seen().requests.get(&replica).copied().unwrap_or_default()
    }

    /// What all calls came to.
    pub(super) fn requests(&self) -> Requests {
        let mut total = Requests::default();
        self.seen().requests.values().for_each(|requests| total += *requests);
        total
    }

    /// How many calls wait for this replica.
    pub(super) fn waiting_for(&self, replica: usize) -> u64 {
        self.seen().waiting.get(&replica).copied().unwrap_or_default()
    }

    /// Looks at everything the oracle has concluded.
    pub(super) fn judge<T>(&self, look: impl FnOnce(&Oracle) -> T) -> T {
        look(&self.seen().oracle)
    }

    fn sent(&self, replica: usize) -> Duration {
        *self.seen().waiting.entry(replica).or_default() += 1;
        self.clock.now()
    }

    fn answered(&self, replica: usize, outcome: &Outcome, sent: Duration) -> Duration {
        let mut seen = self.seen();
        // Read under the lock, so that the order of answers is the order of their times.
        let received = self.clock.now();
        *seen.waiting.entry(replica).or_default() -= 1;
        let requests = seen.requests.entry(replica).or_default();
        match outcome {
            Outcome::Served(_) => requests.served += 1,
            Outcome::Refused => requests.refused += 1,
            Outcome::Cut => requests.cut += 1,
            Outcome::Unanswered => requests.unanswered += 1,
            Outcome::Unexpected => requests.unexpected += 1,
        }
        if let Outcome::Served(answer) = outcome {
            seen.oracle.served(replica, answer, sent, received);
            self.leads.send_if_modified(|leads| {
                let newer = leads.as_ref().is_none_or(|known| known.answer.fence < answer.fence);
                if newer {
                    *leads = Some(Leads { replica, answer: answer.clone(), since: received });
                }
                newer
            });
        }
        received
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        // Counters are whole after each statement, so what a panic left is usable.
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One call and its answer.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) outcome: Outcome,
    pub(super) received: Duration,
}

/// A client of one replica.
#[derive(Clone, Debug)]
pub(super) struct Caller {
    replica: usize,
    url: String,
    client: Client<HttpConnector, Empty<Bytes>>,
    record: Arc<Record>,
}

impl Caller {
    pub(super) fn new(replica: usize, url: String, record: Arc<Record>) -> Self {
        // Otherwise one call might be two requests, and the time of the second be unknown.
        let client =
            Client::builder(TokioExecutor::new()).retry_canceled_requests(false).build_http();
        Self { replica, url, client, record }
    }

    /// Calls the leader-only route again and again, until dropped.
    pub(super) async fn call_all_the_time(self) {
        let mut ticks = time::interval(CALL_INTERVAL);
        ticks.set_missed_tick_behavior(time::MissedTickBehavior::Delay);
        let mut waiting = JoinSet::new();
        loop {
            ticks.tick().await;
            while waiting.try_join_next().is_some() {}
            if waiting.len() < MAX_WAITING {
                let caller = self.clone();
                waiting.spawn(async move { caller.call(Method::POST, "/jobs").await });
            }
        }
    }

    /// One call of a leader-only route. It waits for as long as it takes.
    pub(super) async fn call(&self, method: Method, path: &str) -> Call {
        let sent = self.record.sent(self.replica);
        let outcome = self.ask(method, path).await.unwrap_or(Outcome::Unanswered);
        let received = self.record.answered(self.replica, &outcome, sent);
        Call { outcome, received }
    }

    async fn ask(&self, method: Method, path: &str) -> Result<Outcome, BoxError> {
        let uri: Uri = format!("{}{path}", self.url).parse()?;
        let request = Request::builder().method(method).uri(uri).body(Empty::new())?;
        let (head, body) = self.client.request(request).await?.into_parts();
        let body = body.collect().await?.to_bytes();
        let reason = head.headers.get(REASON).and_then(|reason| reason.to_str().ok());
        Ok(match (head.status, reason) {
            (StatusCode::OK, _) => {
                serde_json::from_slice(&body).map_or(Outcome::Unexpected, Outcome::Served)
            }
            (StatusCode::SERVICE_UNAVAILABLE, Some(Refusal::REASON)) => Outcome::Refused,
            (StatusCode::SERVICE_UNAVAILABLE, Some(Cut::REASON)) => Outcome::Cut,
            _ => Outcome::Unexpected,
        })
    }
}

type BoxError = Box<dyn std::error::Error + Send + Sync>;
