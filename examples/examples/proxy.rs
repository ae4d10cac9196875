//! Replicas that forward to the leader: `cargo run --example proxy -- --store sqlite:/tmp/example.db --listen 127.0.0.1:3001`.
//!
//! Start a second one on another port with the same store, and `POST /jobs` to either: the leader answers. `--help` lists the
//! flags.

use std::process::ExitCode;

use clap::Parser;
use tenure_examples::{args::ReplicaArgs, complain, proxy, start_logging};

/// One replica of an HTTP service that forwards to the leader what only the leader answers.
#[derive(Parser)]
#[command(
    name = "proxy",
    after_help = "Answered by the leader, on every replica:  POST /jobs, GET /slow?ms=N, GET /stream?ms=N, POST /echo, and what the example `grpc` serves\n\
                  Of each replica:                           GET /leadership, GET /leader, GET /leadership/events"
)]
struct Cli {
    #[command(flatten)]
    replica: ReplicaArgs,
}

#[tokio::main]
async fn main() -> ExitCode {
    start_logging("info");
    match proxy::run(&Cli::parse().replica).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => complain("proxy", &error),
    }
}
