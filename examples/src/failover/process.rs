//! One replica as a child process.

use std::{
    io,
    path::PathBuf,
    process::{ExitStatus, Stdio},
    time::Duration,
};

use rustix::process::{Pid, Signal, kill_process};
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    process::{Child, ChildStdout, Command},
    time,
};

use super::FailoverError;

/// The word that makes the `failover` program a replica.
pub const SUBCOMMAND: &str = "replica";

/// How replicas are started.
#[derive(Debug)]
pub(super) struct Launcher {
    pub(super) program: PathBuf,
    pub(super) flags: Vec<String>,
}

/// A running replica. Dropping it kills it, so that none outlives a panic or an interruption.
#[derive(Debug)]
pub(super) struct Replica {
    pub(super) number: usize,
    pub(super) pid: Pid,
    pub(super) url: String,
    child: Child,
    /// Kept open: a replica that prints into a closed pipe would die of it.
    _stdout: BufReader<ChildStdout>,
}

impl Launcher {
    /// Starts a replica, and waits until it serves.
    pub(super) async fn start(&self, number: usize) -> Result<Replica, FailoverError> {
        let mut child = Command::new(&self.program)
            .arg(SUBCOMMAND)
            .args(&self.flags)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .map_err(|source| FailoverError::Start { program: self.program.clone(), source })?;
        let pid = child.id().and_then(|id| Pid::from_raw(id.cast_signed()));
        let stdout = child.stdout.take();
        let (Some(pid), Some(stdout)) = (pid, stdout) else {
            return Err(FailoverError::NotServing { replica: number });
        };

        let mut stdout = BufReader::new(stdout);
        let mut line = String::new();
        tokio::select! {
            read = stdout.read_line(&mut line) => { read?; }
            () = time::sleep(START_LIMIT) => {}
        }
        let url = line.strip_prefix("listening on ").and_then(|rest| rest.split(' ').next());
        let url = url.ok_or(FailoverError::NotServing { replica: number })?.to_owned();
        Ok(Replica { number, pid, url, child, _stdout: stdout })
    }
}

impl Replica {
    /// Sends a signal. The process cannot be another one by now: its number is free only once it was waited for.
    pub(super) fn signal(&self, signal: Signal) -> io::Result<()> {
        Ok(kill_process(self.pid, signal)?)
    }

    /// Waits for its end.
    pub(super) async fn exited(&mut self, limit: Duration) -> Result<ExitStatus, FailoverError> {
        tokio::select! {
            status = self.child.wait() => Ok(status?),
            () = time::sleep(limit) => {
                Err(FailoverError::StillRunning { replica: self.number, after: limit })
            }
        }
    }
}

/// Has this process killed when the one that started it dies in a way that leaves it no time for that.
///
/// Linux ties this to the thread that started it, which is the main one here.
///
/// # Errors
/// If the operating system refuses.
pub fn die_with_parent() -> io::Result<()> {
    #[cfg(target_os = "linux")]
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
    Ok(())
}

const START_LIMIT: Duration = Duration::from_secs(20);
