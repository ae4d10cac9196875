//! WebSockets for the leader only: `cargo run --example websocket -- --store sqlite:/tmp/example.db --listen 127.0.0.1:3001`.
//!
//! Connect to `ws://127.0.0.1:3001/ws` and send some text. When the replica stops, or loses its term, the session ends with
//! close code 1012 and a reason. `--help` lists the flags.

use std::process::ExitCode;

use clap::Parser;
use tenure_examples::{args::ReplicaArgs, complain, start_logging, websocket};

/// One replica of a service with a WebSocket that only the leader serves.
#[derive(Parser)]
#[command(
    name = "websocket",
    after_help = "For the leader only:  GET /ws\n\
                  On every replica:     GET /leadership, GET /leader, GET /leadership/events"
)]
struct Cli {
    #[command(flatten)]
    replica: ReplicaArgs,
}

#[tokio::main]
async fn main() -> ExitCode {
    start_logging("info");
    match websocket::run(&Cli::parse().replica).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => complain("websocket", &error),
    }
}
