//! How soon a leader-only actor starts and stops at the edges of a term.
//!
//! Measured from the store's answer by which the term is won, and from the call that has it handed over: the election's
//! thread has its part in both. Beside the actor a task waits for the same edges: nobody can be told of them with less.

// Timing the clock is what a bench is for.
#![allow(clippy::disallowed_methods)]

use std::{
    process::ExitCode,
    time::{Duration, Instant},
};

use actix::{Actor, Context};
use tenure::{Elector, Leadership, Phase, Stopped};
use tenure_actix::LeaderSupervisor;
use tenure_benches::{Failure, NotedStore, Times};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

const RUNS: usize = 500;
/// Of the medians.
const LIMIT: Duration = Duration::from_millis(1);
/// How many times as long it may take as telling a task.
const RATIO: f64 = 2.0;

/// What happened, and when.
type Happened = (Edge, Instant);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Edge {
    Start,
    Stop,
}

/// Tells when it starts and stops.
struct Worker(UnboundedSender<Happened>);

impl Actor for Worker {
    type Context = Context<Self>;

    fn started(&mut self, _: &mut Context<Self>) {
        let _ = self.0.send((Edge::Start, Instant::now()));
    }

    fn stopped(&mut self, _: &mut Context<Self>) {
        let _ = self.0.send((Edge::Stop, Instant::now()));
    }
}

/// The same by a task.
async fn watch(leadership: Leadership, tell: UnboundedSender<Happened>) -> Result<(), Stopped> {
    loop {
        let term = leadership.leading().await?;
        let _ = tell.send((Edge::Start, Instant::now()));
        term.cancelled().await;
        let _ = tell.send((Edge::Stop, Instant::now()));
    }
}

fn main() -> Result<ExitCode, Failure> {
    let [starts, stops] = actix::System::new().block_on(measure())?;
    let mut kept = true;
    for (what, [actor, task]) in
        [("from won to `started`", starts), ("from ineligible to `stopped`", stops)]
    {
        let ratio = actor.ratio(&task);
        let is_kept = actor.median() < LIMIT && ratio <= RATIO;
        let verdict = if is_kept { "kept" } else { "MISSED" };
        println!("{what:<30} {actor}");
        println!("{:<30} {task}", "  a task that is told the same");
        println!("  {ratio:.2} x, at most {RATIO} x; the median below {LIMIT:?}: {verdict}");
        kept &= is_kept;
    }
    Ok(if kept { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// How long it took to tell the actor, and to tell the task, of the starts and of the stops of many terms.
async fn measure() -> Result<[[Times; 2]; 2], Failure> {
    let store = NotedStore::default();
    let elector = Elector::builder("bench", store.clone()).build()?;
    let leadership = elector.leadership();
    let (actor, of_actor) = unbounded_channel();
    let _address = LeaderSupervisor::new(leadership.clone()).start(move |_| Worker(actor.clone()));
    let (task, of_task) = unbounded_channel();
    actix::spawn(watch(leadership.clone(), task));
    let candidacy = elector.spawn();

    let mut told = [of_actor, of_task];
    let [mut starts, mut stops]: [[Vec<Duration>; 2]; 2] = Default::default();
    let mut status = leadership.watch();
    for _ in 0..RUNS {
        leadership.set_eligible(true);
        let started = both(&mut told, Edge::Start).await?;
        let won = store.won().ok_or("a term that was not won")?;
        let asked = Instant::now();
        leadership.set_eligible(false);
        let stopped = both(&mut told, Edge::Stop).await?;
        for (times, [actor, task], since) in
            [(&mut starts, started, won), (&mut stops, stopped, asked)]
        {
            times[0].push(actor.duration_since(since));
            times[1].push(task.duration_since(since));
        }
        status.wait_for(|status| status.phase() == Phase::Following).await?;
    }
    candidacy.shutdown().await?;
    Ok([starts, stops].map(|times| times.map(Times::from_iter)))
}

/// When the two have seen the edge.
async fn both(
    [actor, task]: &mut [UnboundedReceiver<Happened>; 2],
    edge: Edge,
) -> Result<[Instant; 2], Failure> {
    let seen = [actor.recv().await, task.recv().await];
    match seen {
        [Some((first, actor)), Some((second, task))] if (first, second) == (edge, edge) => {
            Ok([actor, task])
        }
        other => Err(format!("{other:?} in place of {edge:?}").into()),
    }
}
