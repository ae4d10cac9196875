//! Three replicas on one database, of which exactly one serves, while leaders are killed, replaced and frozen:
//! `cargo run --example failover`.
//!
//! It starts itself again for each replica, as the service of the `axum` example, so there is nothing else to build or
//! install. It exits with 0 only if everything that tenure promises was observed. `--help` lists the flags.

use std::process::ExitCode;

#[cfg(unix)]
#[tokio::main]
async fn main() -> ExitCode {
    program::main().await
}

#[cfg(not(unix))]
fn main() -> ExitCode {
    eprintln!("failover: it takes Unix signals to kill, stop and freeze processes");
    ExitCode::FAILURE
}

#[cfg(unix)]
mod program {
    use std::{error::Error, process::ExitCode};

    use clap::{Parser, Subcommand};
    use tenure_examples::{
        args::ReplicaArgs,
        complain,
        failover::{self, FailoverArgs},
        replica,
        signals::StopSignal,
        start_logging,
    };

    /// Kills, replaces and freezes the leader of three replicas, and watches that exactly one of them serves.
    #[derive(Parser)]
    #[command(name = "failover", args_conflicts_with_subcommands = true)]
    struct Cli {
        #[command(flatten)]
        failover: FailoverArgs,
        #[command(subcommand)]
        role: Option<Role>,
    }

    #[derive(Subcommand)]
    enum Role {
        /// One of the replicas.
        #[command(name = failover::SUBCOMMAND, hide = true)]
        Replica(ReplicaArgs),
    }

    pub(super) async fn main() -> ExitCode {
        start_logging("warn");
        let cli = Cli::parse();
        let outcome = match cli.role {
            Some(Role::Replica(args)) => serve(&args).await,
            None => watch(&cli.failover).await,
        };
        outcome.unwrap_or_else(|error| complain("failover", &*error))
    }

    async fn serve(args: &ReplicaArgs) -> Result<ExitCode, Box<dyn Error>> {
        failover::die_with_parent()?;
        replica::serve(args, replica::app).await?;
        Ok(ExitCode::SUCCESS)
    }

    async fn watch(args: &FailoverArgs) -> Result<ExitCode, Box<dyn Error>> {
        let mut stop = StopSignal::listen()?;
        let summary = tokio::select! {
            summary = failover::run(args, std::env::current_exe()?) => summary?,
            // Leaving drops the run, which kills the replicas.
            () = stop.received() => return Err("interrupted".into()),
        };
        Ok(if summary.all_observed() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
}
