//! How soon ten thousand who wait for a term's edge are told, and what that does to a renewal in another election.
//!
//! The other election has its elector on the same thread, and renews as often as it can: the longest time between two of
//! its renewals shows for how long it was kept from the store. Ten thousand tasks that run at once keep every thread of a small
//! machine from its processor for a while, whoever woke them; so that is compared with as many that a bare `Notify` woke.

// Timing the clock is what a bench is for.
#![allow(clippy::disallowed_methods)]

use std::{
    future::{Future, pending, poll_fn},
    process::ExitCode,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    task::Poll,
    time::{Duration, Instant},
};

use tenure::{Candidacy, Elector, Phase};
use tenure_benches::{Failure, NotedStore, Times};
use tokio::{
    runtime::Builder,
    sync::{Notify, oneshot},
    time::sleep,
};

const WAITERS: usize = 10_000;
const RUNS: usize = 21;
/// How often the other election renews.
const RENEWS_EVERY: Duration = Duration::from_millis(2);
/// How many times as far apart its renewals may be while ten thousand are told as while a bare `Notify` tells as many. The
/// election whose term begins or ends has some work of its own to do on their thread; told from there, they cost 4 to 7 times as much.
const DELAY: f64 = 3.0;

fn main() -> Result<ExitCode, Failure> {
    let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    Ok(if runtime.block_on(compare())? { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// What is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wait {
    /// The start, by `leadership.leading()`.
    Leading,
    /// The end, by `term.cancelled()`.
    Cancelled,
    /// The end, by `term.leader_only(..)` of work that never ends.
    LeaderOnly,
}

impl Wait {
    /// How many times as long it may take to tell them as to tell as many tasks by a bare `Notify`.
    fn limit(self) -> f64 {
        match self {
            // Each of them takes a copy of the status, whose lock they share.
            Self::Leading => 12.0,
            Self::Cancelled | Self::LeaderOnly => 3.0,
        }
    }
}

async fn compare() -> Result<bool, Failure> {
    let elections = Elections::start().await?;
    let (_, gaps_in_peace) = elections.told(Wait::Cancelled, 0).await?;
    let (bare, gaps_beside_bare) = elections.told_by_a_bare_notify().await?;
    println!("between two renewals while nobody is told  {gaps_in_peace}");
    let mut kept = true;
    for wait in [Wait::Leading, Wait::Cancelled, Wait::LeaderOnly] {
        let (told, gaps) = elections.told(wait, WAITERS).await?;
        println!("{WAITERS} that wait for {wait:?}");
        for (what, subject, against, reference, limit) in [
            ("until the last is told", &told, "the bare `Notify`", &bare, wait.limit()),
            ("between two renewals", &gaps, "beside the bare `Notify`", &gaps_beside_bare, DELAY),
        ] {
            let ratio = subject.ratio(reference);
            let verdict = if ratio <= limit { "kept" } else { "MISSED" };
            println!("  {what:<26} {subject}");
            println!("  {:<26} {reference}", "  ".to_owned() + against);
            println!("  {ratio:>26.2} x, at most {limit} x: {verdict}");
            kept &= ratio <= limit;
        }
    }
    elections.stop().await?;
    Ok(kept)
}

/// Counts those who were told; the last one says when that was.
struct Roll {
    left: AtomicUsize,
    last: Mutex<Option<oneshot::Sender<Instant>>>,
}

impl Roll {
    fn of(waiters: usize) -> (Arc<Self>, oneshot::Receiver<Instant>) {
        let (last, told) = oneshot::channel();
        let last = Mutex::new(Some(last));
        (Arc::new(Self { left: AtomicUsize::new(waiters), last }), told)
    }

    fn told(&self) {
        if self.left.fetch_sub(1, SeqCst) == 1 {
            let last = self.last.lock().unwrap_or_else(PoisonError::into_inner).take();
            // Nobody may be waiting any more.
            let _ = last.map(|last| last.send(Instant::now()));
        }
    }
}

/// Spawns tasks that wait for what `wait` makes, and lets them get there.
async fn spawn_waiters<F>(
    waiters: usize,
    wait: impl Fn() -> F,
) -> Result<oneshot::Receiver<Instant>, Failure>
where
    F: Future<Output = ()> + Send + 'static,
{
    let (roll, told) = Roll::of(waiters);
    let (here, all_here) = Roll::of(waiters);
    for _ in 0..waiters {
        let (wait, roll, here) = (wait(), roll.clone(), here.clone());
        tokio::spawn(async move {
            let mut wait = Box::pin(wait);
            let pends = poll_fn(|cx| Poll::Ready(wait.as_mut().poll(cx).is_pending())).await;
            assert!(pends, "there is nothing to wait for");
            here.told();
            wait.await;
            roll.told();
        });
    }
    if waiters > 0 {
        all_here.await?;
    }
    Ok(told)
}

/// One election whose edges are waited for, and another one, on the same thread.
struct Elections {
    watched: Candidacy,
    won: NotedStore,
    other: Candidacy,
    renewed: NotedStore,
}

impl Elections {
    async fn start() -> Result<Self, Failure> {
        let (won, renewed) = (NotedStore::default(), NotedStore::default());
        let other = Elector::builder("other", renewed.clone()).renew_interval(RENEWS_EVERY);
        let other = other.build()?.spawn();
        other.leadership().leading().await?;
        let watched = Elector::builder("watched", won.clone()).build()?.spawn();
        watched.leadership().leading().await?;
        Ok(Self { watched, won, other, renewed })
    }

    async fn stop(self) -> Result<(), Failure> {
        self.watched.shutdown().await?;
        Ok(self.other.shutdown().await?)
    }

    /// How long it took until all waiters were told, and the longest time between two renewals of the other election
    /// meanwhile, in many runs.
    async fn told(&self, wait: Wait, waiters: usize) -> Result<(Times, Times), Failure> {
        let mut runs = Vec::new();
        for _ in 0..RUNS {
            runs.push(self.run(wait, waiters).await?);
        }
        Ok((runs.iter().map(|run| run.0).collect(), runs.iter().map(|run| run.1).collect()))
    }

    /// The same for as many tasks that have nothing to do with any election.
    async fn told_by_a_bare_notify(&self) -> Result<(Times, Times), Failure> {
        let mut runs = Vec::new();
        for _ in 0..RUNS {
            let notify = Arc::new(Notify::new());
            let told = spawn_waiters(WAITERS, || notify.clone().notified_owned()).await?;
            let before = self.next_renewals().await.pop();
            // From a thread that is none of the runtime's, as ours.
            let telling = std::thread::spawn(move || {
                let begun = Instant::now();
                notify.notify_waiters();
                begun
            });
            let last = told.await?;
            let begun = telling.join().map_err(|_| "nobody was told")?;
            runs.push((last.duration_since(begun), self.longest_gap(before).await));
        }
        Ok((runs.iter().map(|run| run.0).collect(), runs.iter().map(|run| run.1).collect()))
    }

    async fn run(&self, wait: Wait, waiters: usize) -> Result<(Duration, Duration), Failure> {
        let leadership = self.watched.leadership();
        let mut status = leadership.watch();
        let leads = wait == Wait::Leading;
        // The other edge first.
        leadership.set_eligible(!leads);
        let told = if leads {
            status.wait_for(|now| now.phase() == Phase::Following).await?;
            spawn_waiters(waiters, || {
                let leading = leadership.leading();
                async move { _ = leading.await }
            })
            .await?
        } else {
            let term = leadership.leading().await?;
            match wait {
                Wait::Leading | Wait::Cancelled => {
                    spawn_waiters(waiters, || term.cancelled()).await?
                }
                Wait::LeaderOnly => {
                    spawn_waiters(waiters, || {
                        let work = term.leader_only(pending::<()>());
                        async move { _ = work.await }
                    })
                    .await?
                }
            }
        };
        let before = self.next_renewals().await.pop();
        let asked = Instant::now();
        leadership.set_eligible(leads);
        let last = if waiters > 0 { told.await? } else { Instant::now() };
        let edge = if leads { Phase::Leading } else { Phase::Following };
        status.wait_for(|now| now.phase() == edge).await?;
        let gap = self.longest_gap(before).await;
        let begun = if leads { self.won.won().ok_or("a term that was not won")? } else { asked };
        Ok((last.saturating_duration_since(begun), gap))
    }

    /// The longest time between two renewals, from the last one before to one that was due meanwhile.
    async fn longest_gap(&self, before: Option<Instant>) -> Duration {
        let renewals: Vec<_> = before.into_iter().chain(self.next_renewals().await).collect();
        let gaps = renewals.windows(2).map(|pair| pair[1].duration_since(pair[0]));
        gaps.max().unwrap_or_default()
    }

    /// The renewals that were not taken yet, and the next one from now on.
    async fn next_renewals(&self) -> Vec<Instant> {
        let mut renewals = self.renewed.take_renewals();
        let so_far = renewals.len();
        while renewals.len() == so_far {
            sleep(Duration::from_micros(500)).await;
            renewals.append(&mut self.renewed.take_renewals());
        }
        renewals
    }
}
