//! How long a clean hand-over takes when nothing is in flight: from the request to resign until the other candidate leads,
//! with a wake-up from the store and without.

// Timing the clock is what a bench is for.
#![allow(clippy::disallowed_methods)]

use std::{
    process::ExitCode,
    time::{Duration, Instant},
};

use serde_json::json;
use tenure::{Candidacy, DynStore, Elector, Store, store::WithoutHints};
use tenure_benches::{Failure, Times};
use tenure_config::StoreConfig;
use tenure_testbed::{Nats, PgBouncer, Postgres};
use tokio::{
    runtime::Builder,
    time::{sleep, timeout},
};

const LEASE: Duration = Duration::from_secs(3);
/// Longer than a follower takes to look, so that it is its turn, and short, so that the two can take turns.
const PAUSE: Duration = Duration::from_millis(900);
const RUNS: usize = 11;
/// Of the median, with hints.
const LIMIT: Duration = Duration::from_millis(10);
const PATIENCE: Duration = Duration::from_secs(30);

fn main() -> Result<ExitCode, Failure> {
    let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let postgres = Postgres::start()?;
    let pooler = PgBouncer::start(&postgres)?;
    let listen = postgres.url();
    let nats = Nats::start()?;
    let current = Nats::start_current()?;
    let mut kept = true;
    for (name, store) in [
        ("PostgreSQL", json!({"url": postgres.url(), "listen_url": listen})),
        ("PostgreSQL, pooled", json!({"url": pooler.url(), "listen_url": listen})),
        ("NATS 2.9", json!({"url": nats.url()})),
        ("NATS 2.15", json!({"url": current.url()})),
    ] {
        let store = serde_json::from_value::<StoreConfig>(store)?.connect()?;
        kept &= runtime.block_on(compare(name, store))?;
    }
    Ok(if kept { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

async fn compare(name: &str, store: DynStore) -> Result<bool, Failure> {
    store.ensure_schema().await?;
    let hinted = hand_overs(&format!("{name} with hints"), &store).await?;
    let polled = hand_overs(&format!("{name} without"), &WithoutHints(store).into_dyn()).await?;
    for (how, times) in [("with hints", &hinted), ("without", &polled)] {
        println!("{name:<20} {how:<11} {times}");
    }
    let (median, ratio) = (hinted.median(), hinted.ratio(&polled));
    let verdict = if median < LIMIT { "kept" } else { "MISSED" };
    println!("{name:<20} {ratio:>9.3} of what it takes without; limit {LIMIT:?}: {verdict}");
    Ok(median < LIMIT)
}

/// Two candidates that hand over to each other; how long each hand-over took.
async fn hand_overs(election: &str, store: &DynStore) -> Result<Times, Failure> {
    let candidate = || -> Result<Candidacy, Failure> {
        let builder = Elector::builder(election, store.clone()).lease_duration(LEASE);
        Ok(builder.resign_pause(PAUSE).build()?.spawn())
    };
    let mut leader = candidate()?;
    timeout(PATIENCE, leader.leadership().leading()).await??;
    let mut follower = candidate()?;
    let mut times = Vec::new();
    for run in 0..RUNS {
        let following = follower.leadership();
        let follows =
            async { following.watch().wait_for(|now| now.leader().is_some()).await.is_ok() };
        if !timeout(PATIENCE, follows).await? {
            return Err("the follower stopped".into());
        }
        // Longer than the pause, and each time at another point of the polling period.
        sleep(PAUSE + Duration::from_millis(100 + 53 * run as u64)).await;
        let ending = leader.leadership().term().ok_or("the leader lost its term")?;

        let asked = Instant::now();
        let resigning = leader.leadership();
        let resigned = tokio::spawn(async move { resigning.resign().await });
        let term = timeout(PATIENCE, following.leading()).await??;
        times.push(asked.elapsed());
        if ending.end().is_none() || term.fence() <= ending.fence() {
            return Err(format!("{term:?} began before {ending:?} had ended").into());
        }
        resigned.await?;
        std::mem::swap(&mut leader, &mut follower);
    }
    leader.shutdown().await?;
    follower.shutdown().await?;
    Ok(times.into_iter().collect())
}
