//! Wake-ups when a lease is given back.

use std::{sync::Arc, time::Duration};

use async_nats::Subscriber;
use futures::{StreamExt, stream};
use serde_json::json;
use tenure::{ElectionName, store::Hints};

use crate::{
    bucket::Bucket,
    error::NatsError,
    link::{Connection, Source, within},
    value::is_release,
};

/// How often the server says that the watch is still there.
const SIGN_OF_LIFE: Duration = Duration::from_secs(5);
/// A watch that is silent for longer than that is given up.
const SILENCE: Duration = Duration::from_secs(13);
/// How long it may take to set up a watch.
const LIMIT: Duration = Duration::from_secs(5);
/// Between the first watch that failed and the next one; doubled each time, up to the longest.
const SHORTEST_PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// Watches the election's key, on a connection of its own where there is a choice. Renewals are received too, and pass in
/// silence: followers are not woken by what does not concern them.
pub(crate) fn of(source: Source, bucket: Arc<Bucket>, election: &ElectionName) -> Hints {
    let watcher = Watcher {
        source,
        subject: bucket.subject(election),
        bucket,
        watch: None,
        pause: Duration::ZERO,
    };
    Hints::new(stream::unfold(watcher, |mut watcher| async {
        watcher.next().await;
        Some(((), watcher))
    }))
}

struct Watcher {
    source: Source,
    bucket: Arc<Bucket>,
    subject: String,
    watch: Option<Watch>,
    /// Before the next watch is set up.
    pause: Duration,
}

impl Watcher {
    /// Waits for a release, or until a new watch was set up, since what came before may have been missed.
    async fn next(&mut self) {
        loop {
            let Some(watch) = &mut self.watch else {
                tokio::time::sleep(jittered(self.pause)).await;
                // Also if it lives for a moment only.
                self.pause = (self.pause * 2).clamp(SHORTEST_PAUSE, LONGEST_PAUSE);
                match Watch::begin(&self.source, &self.bucket, &self.subject).await {
                    Ok(watch) => {
                        self.watch = Some(watch);
                        return;
                    }
                    Err(error) => {
                        tracing::debug!(subject = self.subject, %error, "no watch, no hints");
                        continue;
                    }
                }
            };
            match watch.next().await {
                Some(Sign::Release) => return,
                Some(Sign::OfLife) => self.pause = Duration::ZERO,
                Some(Sign::Other) => {}
                None => self.watch = None,
            }
        }
    }
}

enum Sign {
    Release,
    OfLife,
    Other,
}

struct Watch {
    messages: Subscriber,
    connection: Connection,
}

impl Watch {
    async fn begin(source: &Source, bucket: &Bucket, subject: &str) -> Result<Self, NatsError> {
        let begin = async {
            let mut connection = source.connect(LIMIT).await?;
            let inbox = connection.client().new_inbox();
            let subscribed = connection.client().subscribe(inbox.clone()).await;
            let messages = subscribed.map_err(|_| NatsError::Disconnected)?;
            // It goes away by itself when nobody listens to the inbox any more.
            let config = json!({
                "deliver_subject": inbox,
                "deliver_policy": "new",
                "ack_policy": "none",
                "filter_subject": subject,
                "idle_heartbeat": u64::try_from(SIGN_OF_LIFE.as_nanos()).unwrap_or(u64::MAX),
                "mem_storage": true,
                "num_replicas": 1,
            });
            connection.create_consumer(&bucket.stream(), config).await?;
            Ok(Self { messages, connection })
        };
        within(LIMIT, begin).await
    }

    /// `None` once it is over.
    async fn next(&mut self) -> Option<Sign> {
        let message = tokio::select! {
            biased;
            message = self.messages.next() => message?,
            () = self.connection.broken() => return None,
            () = tokio::time::sleep(SILENCE) => return None,
        };
        Some(match message.status {
            // An idle heartbeat. Whatever else may be said without a message, is followed by silence if it was the end.
            Some(_) => Sign::OfLife,
            None if is_release(&message.payload) => Sign::Release,
            None => Sign::Other,
        })
    }
}

/// Between half of it and all of it, so that watchers that lost theirs together do not come back together.
fn jittered(pause: Duration) -> Duration {
    if pause.is_zero() {
        return pause;
    }
    let random = f64::from(getrandom::u32().unwrap_or_default()) / f64::from(u32::MAX);
    pause.mul_f64(0.5 + random / 2.0)
}
