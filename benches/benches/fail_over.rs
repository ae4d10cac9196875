//! How long an election is without a leader: after a SIGKILL, and at a clean hand-over.
//!
//! `cargo xtask bench` runs it on SQLite and on a private PostgreSQL. Each election has a leader in a process of its own,
//! which is killed at a random moment, and a follower here. Elections run beside each other, so that a run takes seconds.

// Timing the clock is what a bench is for.
#![allow(clippy::disallowed_methods)]

use std::{
    env,
    io::{BufRead, BufReader, Read},
    process::{Child, Command, ExitCode, Stdio},
    time::{Duration, Instant},
};

use tenure::{Candidacy, DynStore, ElectionName, Elector};
use tenure_benches::{Failure, Times};
use tenure_config::connect;
use tenure_testbed::Postgres;

const LEASE: Duration = Duration::from_secs(3);
const RUNS: usize = 15;
/// What the elector adds to what is left of the lease.
const KILL_SLACK: Duration = Duration::from_millis(100);
const KILL_LIMIT: Duration = Duration::from_millis(3_200);

fn main() -> Result<ExitCode, Failure> {
    let mut arguments = env::args().skip(1);
    if let (Some("--lead"), Some(url), Some(election)) =
        (arguments.next().as_deref(), arguments.next(), arguments.next())
    {
        lead(&url, &election)?;
        return Ok(ExitCode::SUCCESS);
    }
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let directory = tempfile::tempdir()?;
    let sqlite = format!("sqlite:{}", directory.path().join("bench.db").display());
    let postgres = Postgres::start()?;
    let mut kept = true;
    for (name, url) in [("SQLite", sqlite.as_str()), ("PostgreSQL", &postgres.url())] {
        kept &= runtime.block_on(measure(name, url))?;
    }
    Ok(if kept { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn candidate(store: &DynStore, election: &str) -> Result<Candidacy, Failure> {
    Ok(Elector::builder(election, store.clone()).lease_duration(LEASE).build()?.spawn())
}

/// The child: leads, says so, and waits to be killed, or for its standard input to end, which means to hand over.
fn lead(url: &str, election: &str) -> Result<(), Failure> {
    let candidacy = candidate(&connect(url)?, election)?;
    futures::executor::block_on(candidacy.leadership().leading())?;
    println!("leading");
    std::io::stdin().read_to_end(&mut Vec::new())?;
    Ok(futures::executor::block_on(candidacy.shutdown())?)
}

/// A leader in a process of its own; gone when this is dropped.
struct Leader(Child);

impl Leader {
    fn start(url: &str, election: &str) -> Result<Self, Failure> {
        let mut child = Command::new(env::current_exe()?)
            .args(["--lead", url, election])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let mut said = String::new();
        BufReader::new(child.stdout.take().ok_or("no output")?).read_line(&mut said)?;
        match said.as_str() {
            "leading\n" => Ok(Self(child)),
            other => Err(format!("the leader said {other:?}").into()),
        }
    }
}

impl Drop for Leader {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// One election from the loss of its leader on.
struct FailOver {
    /// What was left of the lease when the leader was lost.
    left: Duration,
    took: Duration,
}

async fn measure(name: &str, url: &str) -> Result<bool, Failure> {
    let store = connect(url)?;
    store.ensure_schema().await?;
    let killed = fail_overs(&store, url, "kill", |leader| {
        let _ = leader.0.kill();
    })
    .await?;
    let handed_over = fail_overs(&store, url, "hand-over", |leader| {
        drop(leader.0.stdin.take());
    })
    .await?;

    let excess: Times = killed.iter().map(|run| run.took.saturating_sub(run.left)).collect();
    let kills: Times = killed.iter().map(|run| run.took).collect();
    let hand_overs: Times = handed_over.iter().map(|run| run.took).collect();
    let period =
        Elector::builder("bench", store).lease_duration(LEASE).build()?.timing().retry_period();
    // A look is due within a retry period and a fifth, and a look and an acquire take their time.
    let hand_over_limit = period.mul_f64(1.2) + KILL_SLACK;
    let mut kept = true;
    for (what, times, median_limit, max_limit) in [
        ("SIGKILL to the next leader", &kills, LEASE, KILL_LIMIT),
        ("  beyond what was left of the lease", &excess, KILL_SLACK, LEASE),
        ("hand-over to the next leader", &hand_overs, period, hand_over_limit),
    ] {
        println!("{name:<11} {what:<36} {times} (at most {median_limit:?} and {max_limit:?})");
        kept &= times.median() <= median_limit && times.max() <= max_limit;
    }
    Ok(kept)
}

/// Loses the leaders of many elections, spread over a renew interval, and measures when each has the next one.
async fn fail_overs(
    store: &DynStore,
    url: &str,
    how: &str,
    lose: impl Fn(&mut Leader) + Copy + Send + 'static,
) -> Result<Vec<FailOver>, Failure> {
    let mut runs = Vec::new();
    for run in 0..RUNS {
        let election = format!("{how}-{run}");
        let mut leader = Leader::start(url, &election)?;
        let follower = candidate(store, &election)?;
        let store = store.clone();
        runs.push(tokio::spawn(async move {
            let follows =
                follower.leadership().watch().wait_for(|s| s.leader().is_some()).await.map(drop);
            follows.map_err(|_| "the follower stopped")?;
            tokio::time::sleep(LEASE + LEASE / 3 * run as u32 / RUNS as u32).await;
            let record = left_of_the_lease(&store, &election).await?;
            let lost = Instant::now();
            lose(&mut leader);
            let took = async {
                follower.leadership().leading().await?;
                Ok::<_, Failure>(lost.elapsed())
            };
            let took = took.await?;
            follower.shutdown().await?;
            Ok::<_, Failure>(FailOver { left: record, took })
        }));
    }
    let mut done = Vec::new();
    for run in runs {
        done.push(run.await??);
    }
    Ok(done)
}

async fn left_of_the_lease(store: &DynStore, election: &str) -> Result<Duration, Failure> {
    let election = ElectionName::new(election)?;
    let leaders = store.leaders().await?;
    let lease = leaders.into_iter().find(|(name, _)| *name == election).ok_or("no lease")?.1;
    Ok(lease.ttl.ok_or("the store shows no clock")?)
}
