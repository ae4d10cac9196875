//! What an election can't do, and its fences can: a leader freezes between its check and its write, its lease runs out,
//! another one leads and writes, and then the first one wakes and writes.
//!
//! Two services take part. The one has the leaders, real processes, which stamp their requests
//! ([`FenceHeader`](tenure_axum::FenceHeader)); the other keeps a ledger, and refuses what comes too late
//! ([`RequireFence`](tenure_axum::RequireFence)).

mod ledger;
pub mod writer;

use std::{io, path::PathBuf, process::Stdio, time::Duration};

use clap::Args;
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;
use tenure::{ElectionName, InvalidValue, StoreError};
use tenure_config::ElectionConfigError;
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines},
    process::{Child, ChildStdin, ChildStdout, Command},
    time,
};

use crate::args::{ArgsError, ElectionArgs};

/// The word that makes the program a candidate.
pub const SUBCOMMAND: &str = "writer";

/// What the candidates contend for, if nothing else is said.
const ELECTION: &str = "fencing";

/// How long anything may take; a lease is much shorter.
const LIMIT: Duration = Duration::from_secs(60);

/// What to run.
#[derive(Args, Clone, Debug)]
#[non_exhaustive]
pub struct FencingArgs {
    /// The election; on a SQLite file in a temporary directory if no store is given.
    #[command(flatten)]
    pub election: ElectionArgs,
}

/// Why it could not be shown.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FencingError {
    /// The flags, or the file that they name, give no election.
    #[error(transparent)]
    Args(#[from] ArgsError),
    /// They contradict each other.
    #[error(transparent)]
    Config(#[from] ElectionConfigError),
    /// The election has no name that it could have.
    #[error(transparent)]
    Name(#[from] InvalidValue),
    /// The database cannot be reached, or refuses the schema.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A candidate did not stop.
    #[error(transparent)]
    Stop(#[from] tenure::StopError),
    /// The operating system refused something.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The ledger's address makes no URL.
    #[error(transparent)]
    Request(#[from] http::Error),
    /// The ledger could not be reached.
    #[error(transparent)]
    Client(#[from] hyper_util::client::legacy::Error),
    /// A candidate ended, or was silent for too long.
    #[error("a candidate ended early, or said nothing for {LIMIT:?}, where {expected} was to come")]
    Silent {
        /// What should have come.
        expected: &'static str,
    },
    /// A candidate said something else than it should have.
    #[error("a candidate said {said:?} in place of {expected:?}: does it lead no more?")]
    Unexpected {
        /// How what it should have said begins.
        expected: &'static str,
        /// What it said.
        said: String,
    },
    /// What must not be.
    #[error("the late write was not refused: {said:?}")]
    NotRefused {
        /// What the candidate was told.
        said: String,
    },
}

/// Runs it, and prints what happens. The candidates are children that run `program` with the subcommand [`SUBCOMMAND`].
///
/// # Errors
/// [`FencingError`], among them that the late write was accepted.
pub async fn run(args: &FencingArgs, program: io::Result<PathBuf>) -> Result<(), FencingError> {
    let program = program?;
    let mut election = args.election.clone();
    let directory;
    if election.store.is_none() && election.config.is_none() {
        directory = TempDir::with_prefix("tenure-fencing-")?;
        election.store = Some(format!("sqlite:{}", directory.path().join("fencing.db").display()));
    }
    let name = election.to_config(ELECTION, "memory:")?.election;
    let address = ledger::serve(ElectionName::new(name)?).await?;
    let flags = [vec!["--ledger".to_owned(), address.to_string()], election.to_flags()].concat();

    let mut first = Writer::start(&program, &flags)?;
    let fence = first.says("leads").await?;
    println!("the first candidate leads under fence {fence}");
    let mut second = Writer::start(&program, &flags)?;
    first.tell("check").await?;
    first.says("checked").await?;
    first.tell("write").await?;
    first.says("accepted").await?;
    println!("its write is accepted");

    first.tell("check").await?;
    first.says("checked").await?;
    first.signal(Signal::STOP)?;
    println!("it makes sure that it leads, and freezes before it writes");

    let next = second.says("leads").await?;
    println!("its lease runs out: the second candidate leads under fence {next}");
    second.tell("check").await?;
    second.says("checked").await?;
    second.tell("write").await?;
    second.says("accepted").await?;
    println!("its write is accepted");

    first.signal(Signal::CONT)?;
    first.tell("write").await?;
    println!("the first one wakes, and writes what it was about to write");
    let said = first.line().await?;
    let Some(refused) = said.strip_prefix("refused ") else {
        return Err(FencingError::NotRefused { said });
    };
    println!("the ledger refuses: {refused}");
    first.end().await?;
    second.end().await
}

/// A candidate as a child process. Dropping it kills it.
struct Writer {
    child: Child,
    stdin: ChildStdin,
    stdout: Lines<BufReader<ChildStdout>>,
}

impl Writer {
    fn start(program: &PathBuf, flags: &[String]) -> io::Result<Self> {
        let mut child = Command::new(program)
            .arg(SUBCOMMAND)
            .args(flags)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let piped = || io::Error::other("the pipes to a child are missing");
        let stdin = child.stdin.take().ok_or_else(piped)?;
        let stdout = BufReader::new(child.stdout.take().ok_or_else(piped)?).lines();
        Ok(Self { child, stdin, stdout })
    }

    async fn tell(&mut self, what: &str) -> io::Result<()> {
        self.stdin.write_all(format!("{what}\n").as_bytes()).await
    }

    /// The next thing that it says, which must begin with this word; what follows the word.
    async fn says(&mut self, expected: &'static str) -> Result<String, FencingError> {
        let said = self.line().await?;
        match said.strip_prefix(expected) {
            Some(rest) => Ok(rest.trim_start().to_owned()),
            None => Err(FencingError::Unexpected { expected, said }),
        }
    }

    async fn line(&mut self) -> Result<String, FencingError> {
        let silent = FencingError::Silent { expected: "a line" };
        tokio::select! {
            line = self.stdout.next_line() => line?.ok_or(silent),
            () = time::sleep(LIMIT) => Err(silent),
        }
    }

    /// A process whose end nobody has waited for keeps its number.
    fn signal(&self, signal: Signal) -> io::Result<()> {
        let pid = self.child.id().and_then(|id| Pid::from_raw(id.cast_signed()));
        Ok(kill_process(pid.ok_or_else(|| io::Error::other("it has ended"))?, signal)?)
    }

    /// Its standard input ends, and so does it.
    async fn end(mut self) -> Result<(), FencingError> {
        drop(self.stdin);
        tokio::select! {
            ended = self.child.wait() => Ok(ended.map(drop)?),
            () = time::sleep(LIMIT) => Err(FencingError::Silent { expected: "its end" }),
        }
    }
}
