//! Listening for releases, on a connection of its own.
//!
//! A listener needs its server's connection for itself, which a pooler does not give: hence a way of its own to the
//! server. Whatever goes wrong with it only costs the hints.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use futures::{Stream, StreamExt, stream, stream::BoxStream};
use sqlx::{
    postgres::{PgConnectOptions, PgListener, PgPoolOptions},
    raw_sql,
};
use tenure::{
    ElectionName,
    store::{Hints, within},
};
use tokio::{runtime::Handle, select, time::sleep};
use tracing::{debug, warn};

use crate::{jitter::halved, link::server, literal::hex, table::Table};

/// How long to connect, and to wait for an answer.
const LIMIT: Duration = Duration::from_secs(5);
/// A network path that has died says nothing, so it is tried as often as that.
const CHECK_EVERY: Duration = Duration::from_secs(15);
/// The pauses between attempts to connect.
const FIRST_PAUSE: Duration = Duration::from_millis(250);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

const TARGET: &str = "tenure";

/// A hint for each release of this election, and one whenever listening has begun: something may have been missed.
pub(crate) fn hints(
    options: Arc<PgConnectOptions>,
    table: &Table,
    election: &ElectionName,
) -> Hints {
    let listener = Listener {
        options,
        channel: table.channel(),
        election: election.clone(),
        listening: None,
        failures: 0,
    };
    let hints = stream::unfold(listener, |mut listener| async move {
        listener.hint().await;
        Some(((), listener))
    });
    Hints::new(OnRuntime { runtime: None, stream: hints.boxed() })
}

/// What a notification says: which election. In hexadecimal digits, so that it means the same in every encoding.
pub(crate) fn notification(election: &ElectionName) -> String {
    hex(election.as_str().as_bytes())
}

struct Listener {
    options: Arc<PgConnectOptions>,
    channel: String,
    election: ElectionName,
    listening: Option<PgListener>,
    /// Since it last heard anything.
    failures: u32,
}

impl Listener {
    async fn hint(&mut self) {
        loop {
            let heard = match &mut self.listening {
                None => {
                    sleep(pause(self.failures)).await;
                    self.begin().await
                }
                Some(_) => self.listen().await,
            };
            match heard {
                Ok(()) => return,
                Err(why) => self.failed(&why),
            }
        }
    }

    async fn begin(&mut self) -> Result<(), String> {
        // Of one connection, and none is ever made by itself: the driver listens by way of a pool.
        let pool = PgPoolOptions::new()
            .max_connections(1)
            .max_lifetime(None)
            .idle_timeout(None)
            .test_before_acquire(false)
            .acquire_timeout(LIMIT)
            .connect_lazy_with((*self.options).clone());
        self.listening = Some(
            in_time(async {
                let mut listening = PgListener::connect_with(&pool).await?;
                listening.ignore_pool_close_event(true);
                listening.eager_reconnect(false);
                listening.listen(&self.channel).await?;
                Ok(listening)
            })
            .await?,
        );
        debug!(target: TARGET, election = %self.election, channel = self.channel, "listening for releases");
        Ok(())
    }

    /// Waits for a release of this election.
    async fn listen(&mut self) -> Result<(), String> {
        let listening = self.listening.as_mut().ok_or("not connected")?;
        let ours = notification(&self.election);
        loop {
            select! {
                heard = listening.try_recv() => {
                    let heard = heard.map_err(|error| error.to_string())?;
                    let notification = heard.ok_or("the connection was closed")?;
                    self.failures = 0;
                    if notification.payload() == ours {
                        return Ok(());
                    }
                }
                () = sleep(CHECK_EVERY) => {
                    check(listening).await?;
                    self.failures = 0;
                }
            }
        }
    }

    fn failed(&mut self, why: &str) {
        self.listening = None;
        self.failures = self.failures.saturating_add(1);
        let (election, server) = (&self.election, server(&self.options));
        // Once for each time that it breaks.
        if self.failures == 1 {
            warn!(target: TARGET, %election, why, "no hints from {server}: a hand-over takes a look more");
        } else {
            debug!(target: TARGET, %election, why, failures = self.failures, "still no hints from {server}");
        }
    }
}

/// Whether the server still knows that this connection listens: one behind a pooler does not, or not for long.
async fn check(listening: &mut PgListener) -> Result<(), String> {
    let channels = raw_sql("SELECT pg_listening_channels()");
    let channels = in_time(channels.fetch_all(listening)).await?;
    if channels.is_empty() {
        return Err("the connection does not listen any more: there must be no pooler in between"
            .to_owned());
    }
    Ok(())
}

async fn in_time<T>(work: impl Future<Output = Result<T, sqlx::Error>>) -> Result<T, String> {
    match within(LIMIT, work).await {
        Some(outcome) => outcome.map_err(|error| error.to_string()),
        None => Err(format!("no answer within {LIMIT:?}")),
    }
}

/// None before the first attempt; later ones double, and are spread.
fn pause(failures: u32) -> Duration {
    match failures {
        0 => Duration::ZERO,
        _ => halved((FIRST_PAUSE * 2_u32.saturating_pow(failures.min(16) - 1)).min(LONGEST_PAUSE)),
    }
}

/// Drops a stream on the runtime that polled it, wherever that happens: the driver spawns a task to say good-bye.
struct OnRuntime {
    runtime: Option<Handle>,
    stream: BoxStream<'static, ()>,
}

impl Stream for OnRuntime {
    type Item = ();

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<()>> {
        if self.runtime.is_none() {
            self.runtime = Handle::try_current().ok();
        }
        self.stream.poll_next_unpin(cx)
    }
}

impl Drop for OnRuntime {
    fn drop(&mut self) {
        let _on_runtime = self.runtime.as_ref().map(Handle::enter);
        self.stream = stream::empty().boxed();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_and_stay_bounded() {
        assert_eq!(pause(0), Duration::ZERO);
        for failures in 1..100 {
            assert!(pause(failures) >= FIRST_PAUSE / 2 && pause(failures) <= LONGEST_PAUSE);
        }
        assert!(pause(40) >= LONGEST_PAUSE / 2);
    }
}
