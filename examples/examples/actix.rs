//! One replica of an actix-web service: `cargo run --example actix -- --store sqlite:/tmp/example.db --listen 127.0.0.1:3001`.
//!
//! Start a second one on another port with the same store, and `POST /jobs` to both: the one that leads has an actor that
//! numbers the jobs, the other refuses with `503`. Stop the one that leads with Ctrl-C, and the other takes over, with an
//! actor of its own. `--help` lists the flags.

use std::process::ExitCode;

use clap::Parser;
use tenure_examples::{
    actix_replica, args::ReplicaArgs, complain, ledger::LedgerArgs, start_logging,
};

/// One replica of an actix-web service, with an actor that exists only on the leader.
#[derive(Parser)]
#[command(
    name = "actix",
    after_help = "For the leader only:  POST /jobs?ms=N\n\
                  On every replica:     GET /, GET /leadership, GET /leader, GET /leadership/events"
)]
struct Cli {
    #[command(flatten)]
    replica: ReplicaArgs,
    #[command(flatten)]
    ledger: LedgerArgs,
}

fn main() -> ExitCode {
    start_logging("info");
    let cli = Cli::parse();
    match actix::System::new().block_on(actix_replica::run(&cli.replica, &cli.ledger)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => complain("actix", &error),
    }
}
