//! The main job, where anyone can watch it: replicas that share only a database, of which exactly one serves, while
//! leaders are killed, replaced and frozen.

mod account;
mod callers;
mod clock;
mod exercises;
mod oracle;
mod process;

use std::{io, path::PathBuf, time::Duration};

use clap::Args;
use tempfile::TempDir;
use tenure_config::ElectionConfigError;

use self::{clock::Clock, exercises::Run, process::Launcher};
use crate::args::{ArgsError, ElectionArgs};

pub use self::{
    account::{Claim, Event, Exercise, SeenTerm, Summary},
    callers::Requests,
    oracle::{Owner, Violation},
    process::{SUBCOMMAND, die_with_parent},
};

/// What to run.
#[derive(Args, Clone, Debug)]
#[non_exhaustive]
pub struct FailoverArgs {
    /// Print one JSON object per event, and one for the summary.
    #[arg(long)]
    pub json: bool,
    /// The election that the replicas take part in, and nobody else; on a SQLite file in a temporary directory if no store is
    /// given.
    #[command(flatten)]
    pub election: ElectionArgs,
}

/// Why a run could not be carried through.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FailoverError {
    /// `memory:` is one process's own.
    #[error("the replicas are processes and cannot share memory: give sqlite:PATH or postgres://…")]
    NotShared,
    /// The flags, or the file that they name, give no election.
    #[error(transparent)]
    Args(#[from] ArgsError),
    /// They contradict each other.
    #[error(transparent)]
    Config(#[from] ElectionConfigError),
    /// A replica's program could not be started.
    #[error("{} cannot be started", program.display())]
    Start {
        /// The program.
        program: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// A replica was started and did not say where it serves.
    #[error("replica {replica} does not serve; what it printed says why")]
    NotServing {
        /// Which.
        replica: usize,
    },
    /// Nobody took over.
    #[error("no replica answered in a new term within {after:?} of {what}")]
    NoLeader {
        /// What had happened.
        what: &'static str,
        /// How long that was waited for.
        after: Duration,
    },
    /// A replica that was asked to stop did not, or did not answer what waited for it.
    #[error("replica {replica} is not done {after:?} after it was asked")]
    StillRunning {
        /// Which.
        replica: usize,
        /// How long that was waited for.
        after: Duration,
    },
    /// The operating system refused something else.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Starts the replicas, as children that run `program` with the subcommand [`SUBCOMMAND`], and prints the account of
/// what happens to them. Dropping the future kills the children.
///
/// # Errors
/// [`FailoverError`] if the run could not be carried through. That a promise was not observed is no error: see
/// [`Summary::all_observed`].
pub async fn run(args: &FailoverArgs, program: PathBuf) -> Result<Summary, FailoverError> {
    let mut election = args.election.clone();
    let directory;
    if election.store.is_none() && election.config.is_none() {
        directory = TempDir::with_prefix("tenure-failover-")?;
        election.store = Some(format!("sqlite:{}", directory.path().join("failover.db").display()));
    }
    let config = election.to_config("failover", "memory:")?;
    if config.store.kind() == Some("memory") {
        return Err(FailoverError::NotShared);
    }
    // Derives the figures that the replicas will derive; it is never run.
    let timing = *config.elector(config.store()?)?.timing();

    election.election = Some(config.election);
    election.timing.lease = config.lease_duration;
    let flags =
        [vec!["--listen".to_owned(), "127.0.0.1:0".to_owned()], election.to_flags()].concat();
    Run::new(Launcher { program, flags }, timing, args.json, Clock::start()).complete().await
}
