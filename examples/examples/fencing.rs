//! A write that was on its way when its leader froze, and the resource that refuses it: `cargo run --example fencing`.
//!
//! No election can stop a write that has left the leader, or that a frozen leader sends when it wakes. Whoever receives it
//! can: it remembers the highest fence that it has seen, and refuses lower ones. The program starts two candidates and a
//! ledger that does so, freezes the leader just before it writes, and lets it go on when the other one has written. It
//! exits with 0 only if the late write was refused. `--help` lists the flags.

use std::process::ExitCode;

#[cfg(unix)]
#[tokio::main]
async fn main() -> ExitCode {
    use clap::{Parser, Subcommand};
    use tenure_examples::{
        complain,
        fencing::{self, FencingArgs, writer::WriterArgs},
        start_logging,
    };

    /// Freezes a leader just before it writes, and watches its late write being refused.
    #[derive(Parser)]
    #[command(name = "fencing", args_conflicts_with_subcommands = true)]
    struct Cli {
        #[command(flatten)]
        fencing: FencingArgs,
        #[command(subcommand)]
        role: Option<Role>,
    }

    #[derive(Subcommand)]
    enum Role {
        /// One of the candidates.
        #[command(name = fencing::SUBCOMMAND, hide = true)]
        Writer(WriterArgs),
    }

    start_logging("warn");
    let cli = Cli::parse();
    let outcome = match cli.role {
        Some(Role::Writer(args)) => fencing::writer::run(&args).await,
        None => fencing::run(&cli.fencing, std::env::current_exe()).await,
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => complain("fencing", &error),
    }
}

#[cfg(not(unix))]
fn main() -> ExitCode {
    eprintln!("fencing: it takes Unix signals to freeze a process");
    ExitCode::FAILURE
}
