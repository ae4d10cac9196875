//! One replica of an HTTP service: `cargo run --example axum -- --store sqlite:/tmp/example.db --listen 127.0.0.1:3001`.
//!
//! Start a second one on another port with the same store, and `POST /jobs` to both: one answers, the other refuses with
//! `503`. Stop the one that leads with Ctrl-C, and the other takes over. `--help` lists the flags.

use std::process::ExitCode;

use clap::Parser;
use tenure_examples::{args::ReplicaArgs, complain, ledger::LedgerArgs, replica, start_logging};

/// One replica of an HTTP service with routes that only the leader serves.
#[derive(Parser)]
#[command(
    name = "axum",
    after_help = "For the leader only:  POST /jobs, GET /slow?ms=N, GET /stream?ms=N\n\
                  On every replica:     GET /, GET /leadership, GET /leader, GET /leadership/events"
)]
struct Cli {
    #[command(flatten)]
    replica: ReplicaArgs,
    #[command(flatten)]
    ledger: LedgerArgs,
}

#[tokio::main]
async fn main() -> ExitCode {
    start_logging("info");
    let cli = Cli::parse();
    match replica::run(&cli.replica, &cli.ledger).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => complain("axum", &error),
    }
}
