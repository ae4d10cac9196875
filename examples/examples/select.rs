//! Work that follows leadership, in plain tokio: `cargo run --example select`.
//!
//! Three ways, side by side: a loop over `select!` that stops when the term does, single pieces of work behind
//! `leader_only`, and something to do once in each term. The program leads, hands over to nobody, leads again in a new
//! term, and ends. With `--store` it takes part in an election with others. `--help` lists the flags.

use std::{error::Error, process::ExitCode, time::Duration};

use clap::Parser;
use tenure::{LeaderOnlyError, Leadership, Term};
use tenure_examples::{args::ElectionArgs, complain, start_logging};
use tokio::time;

/// Work that follows leadership, in plain tokio.
#[derive(Parser)]
#[command(name = "select")]
struct Cli {
    #[command(flatten)]
    election: ElectionArgs,
}

#[tokio::main]
async fn main() -> ExitCode {
    start_logging("warn");
    match run(&Cli::parse().election).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => complain("select", &*error),
    }
}

async fn run(args: &ElectionArgs) -> Result<(), Box<dyn Error>> {
    let config = args.to_config("example", "memory:")?;
    let store = config.store()?;
    store.ensure_schema().await?;
    let elector = config.elector(store)?;
    let leadership = elector.leadership();

    let candidacy = elector.spawn();
    let ticking = tokio::spawn(tick_while_leading(leadership.clone()));
    let preparing = tokio::spawn(prepare_each_term(leadership.clone()));
    let reporting = tokio::spawn(report_now_and_then(leadership.clone()));

    leadership.leading().await?;
    time::sleep(Duration::from_millis(500)).await;
    println!("main         resigns");
    candidacy.resign().await;

    leadership.leading().await?;
    time::sleep(Duration::from_millis(500)).await;
    println!("main         shuts down");
    candidacy.shutdown().await?;

    // Both end by themselves when there are no more terms.
    ticking.await?;
    preparing.await?;
    reporting.abort();
    Ok(())
}

/// `select!` on the end of the term: the work is dropped between two ticks, and the loop looks for the next term.
async fn tick_while_leading(leadership: Leadership) {
    while let Ok(term) = leadership.leading().await {
        let mut ticks = time::interval(Duration::from_millis(100));
        let mut count = 0;
        loop {
            tokio::select! {
                () = term.cancelled() => break,
                _ = ticks.tick() => count += 1,
            }
        }
        println!("select!      term {}: {count} ticks, then cancelled", term.fence());
    }
}

/// Runs once in each term, and is dropped with it.
async fn prepare_each_term(leadership: Leadership) {
    leadership.each_term(prepare).await;
}

async fn prepare(term: Term) {
    println!("each_term    term {}: prepares", term.fence());
    time::sleep(Duration::from_millis(150)).await;
    println!("each_term    term {}: prepared", term.fence());
}

/// A piece of work that only a leader does: refused before it begins, or dropped when its term is cancelled.
async fn report_now_and_then(leadership: Leadership) {
    loop {
        let work = async {
            time::sleep(Duration::from_millis(120)).await;
            "done"
        };
        match leadership.leader_only(work).await {
            Ok(report) => println!("leader_only  {report}"),
            Err(LeaderOnlyError::NotLeader { .. }) => println!("leader_only  not the leader"),
            Err(cut) => println!("leader_only  {cut}"),
        }
        time::sleep(Duration::from_millis(200)).await;
    }
}
