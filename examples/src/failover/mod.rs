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
use tenure::{Elector, MemoryStore};

use self::{clock::Clock, exercises::Run, process::Launcher};
use crate::args::TimingArgs;

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
    /// Where the lease is kept: `sqlite:PATH` or `postgres://…`; a SQLite file in a temporary directory if not given.
    #[arg(long, value_name = "URL")]
    pub store: Option<String>,
    /// The election that the replicas take part in. Nobody else may.
    #[arg(long, value_name = "NAME", default_value = "failover")]
    pub election: String,
    /// Print one JSON object per event, and one for the summary.
    #[arg(long)]
    pub json: bool,
    /// How fast.
    #[command(flatten)]
    pub timing: TimingArgs,
}

/// Why a run could not be carried through.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FailoverError {
    /// `memory:` is one process's own.
    #[error("the replicas are processes and cannot share memory: give sqlite:PATH or postgres://…")]
    NotShared,
    /// The timings contradict each other.
    #[error(transparent)]
    Config(#[from] tenure::ConfigError),
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
    let directory;
    let store = match &args.store {
        Some(url) if url.starts_with("memory:") => return Err(FailoverError::NotShared),
        Some(url) => url.clone(),
        None => {
            directory = TempDir::with_prefix("tenure-failover-")?;
            format!("sqlite:{}", directory.path().join("failover.db").display())
        }
    };
    // Derives the figures that the replicas will derive; it is never run.
    let elector = Elector::builder(&args.election, MemoryStore::new());
    let timing = *args.timing.apply(elector).build()?.timing();

    let mut flags = args.timing.to_flags();
    flags.extend(["--listen", "127.0.0.1:0", "--store", &store].map(str::to_owned));
    flags.extend(["--election".to_owned(), args.election.clone()]);
    Run::new(Launcher { program, flags }, timing, args.json, Clock::start()).complete().await
}
