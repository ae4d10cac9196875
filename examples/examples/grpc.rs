//! A gRPC service for the leader only, and its client:
//! `cargo run --example grpc -- serve --store sqlite:/tmp/example.db --listen 127.0.0.1:3001`, and
//! `cargo run --example grpc -- run --at http://127.0.0.1:3001 --at http://127.0.0.1:3002`.
//!
//! `watch` in place of `run` prints steps until the leader's term ends. `--help` lists the flags.

use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};
use tenure_examples::{
    args::ReplicaArgs,
    complain,
    grpc::{self, CallError, Job, JobsClient, Report},
    start_logging,
};

/// A gRPC service that only the leader serves, and its client.
#[derive(Parser)]
#[command(name = "grpc")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Starts one replica of the service.
    Serve(Box<ReplicaArgs>),
    /// Has a job run by whichever replica leads.
    Run(CallArgs),
    /// Watches a job step by step, until the leader's term ends.
    Watch(CallArgs),
}

#[derive(Args)]
struct CallArgs {
    /// URL of a replica; repeat it for each one that there is.
    #[arg(long, value_name = "URL", default_value = "http://127.0.0.1:3000")]
    at: Vec<String>,
    /// What is to be done.
    #[arg(long, default_value = "report")]
    job: String,
}

#[tokio::main]
async fn main() -> ExitCode {
    let called = match Cli::parse().command {
        Command::Serve(replica) => {
            start_logging("info");
            return match grpc::serve(&replica).await {
                Ok(()) => ExitCode::SUCCESS,
                Err(error) => complain("grpc", &error),
            };
        }
        Command::Run(args) => run(&args).await,
        Command::Watch(args) => watch(&args).await,
    };
    match called {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => complain("grpc", &error),
    }
}

async fn run(args: &CallArgs) -> Result<(), CallError> {
    let report = JobsClient::new(&args.at)?.run(&Job::named(&args.job)).await?;
    print(&report);
    Ok(())
}

async fn watch(args: &CallArgs) -> Result<(), CallError> {
    let mut reports = JobsClient::new(&args.at)?.watch(&Job::named(&args.job)).await?;
    while let Some(report) = reports.message().await? {
        print(&report);
    }
    Ok(())
}

fn print(Report { identity, fence, text, .. }: &Report) {
    println!("{text}, by {identity} under fence {fence}");
}
