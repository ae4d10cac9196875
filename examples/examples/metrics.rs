//! The service of the `axum` example with `GET /metrics` for Prometheus:
//! `cargo run --example metrics -- --store sqlite:/tmp/example.db --listen 127.0.0.1:3001`.
//!
//! `docs/grafana.json` is a dashboard for what it shows. `--help` lists the flags.

use std::process::ExitCode;

use clap::Parser;
use tenure_examples::{args::ReplicaArgs, complain, metrics, start_logging};

/// One replica of an HTTP service, with its metrics.
#[derive(Parser)]
#[command(
    name = "metrics",
    after_help = "For the leader only:  POST /jobs, GET /slow?ms=N, GET /stream?ms=N\n\
                  On every replica:     GET /, GET /metrics, GET /leadership, GET /leader, GET /leadership/events"
)]
struct Cli {
    #[command(flatten)]
    replica: ReplicaArgs,
}

#[tokio::main]
async fn main() -> ExitCode {
    start_logging("info");
    match metrics::run(&Cli::parse().replica).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => complain("metrics", &error),
    }
}
