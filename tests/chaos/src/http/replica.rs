//! A replica of a service: the program of an example, as users run it.

use std::{
    fs::{self, File},
    io::{self, BufRead, BufReader},
    path::Path,
    process::{Child, ChildStdout, Command, ExitStatus, Stdio},
    time::Duration,
};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;
use tenure_tests::{Stamp, wait_until};

use super::clients::Calling;
use crate::ground::{ELECTION, Way};

/// A process. Dropping it kills it; and so does the death of this one.
pub(crate) struct Replica {
    child: Child,
    pid: Pid,
    pub(crate) url: String,
    /// To its database: the election and the ledger go the same way.
    pub(crate) way: Way,
    pub(crate) from: Stamp,
    /// When it was killed, or has ended.
    pub(crate) to: Option<Stamp>,
    /// Whether somebody asks it.
    pub(crate) calling: Option<Calling>,
    /// A process that prints into a closed pipe would die of it.
    _stdout: BufReader<ChildStdout>,
    /// Its configuration, and what it logs.
    _files: TempDir,
}

impl Replica {
    /// Starts `program`, and waits until it serves.
    pub(crate) fn start(program: &Path, way: Way, lease: Duration) -> io::Result<Self> {
        let from = Stamp::now();
        let files = TempDir::new()?;
        let (configuration, log) = (files.path().join("election.toml"), files.path().join("log"));
        let url = &way.config["url"];
        let text = format!(
            "election = \"{ELECTION}\"\nlease_duration = \"{}ms\"\nstore = {{ url = {url}, listen_url = {} }}\n",
            lease.as_millis(),
            way.config["listen_url"],
        );
        fs::write(&configuration, text)?;
        // It is tied to the thread that starts it, which plays this scenario to its end.
        let mut child = Command::new("setpriv")
            .args(["--pdeathsig", "KILL", "--"])
            .arg(program)
            .args(["--listen", "127.0.0.1:0", "--config"])
            .arg(&configuration)
            .args(["--ledger", url.as_str().unwrap_or_default()])
            .env("RUST_LOG", "warn")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(File::create(&log)?)
            .spawn()?;
        let pid = Pid::from_child(&child);
        let stdout = child.stdout.take().ok_or_else(|| io::Error::other("no standard output"))?;
        let mut stdout = BufReader::new(stdout);
        let mut line = String::new();
        stdout.read_line(&mut line)?;
        let url = line.strip_prefix("listening on ").and_then(|rest| rest.split(' ').next());
        let Some(url) = url.map(str::to_owned) else {
            // It has ended, or soon will.
            let _ = child.kill();
            let status = child.wait()?;
            let log = fs::read_to_string(log)?;
            return Err(io::Error::other(format!("{} {status}: {log}", program.display())));
        };
        let (_stdout, _files) = (stdout, files);
        Ok(Self { child, pid, url, way, from, to: None, calling: None, _stdout, _files })
    }

    /// SIGKILL.
    pub(crate) fn kill(&mut self) -> Stamp {
        self.signal(Signal::KILL);
        self.exited();
        self.to.unwrap_or_else(Stamp::now)
    }

    /// SIGSTOP.
    pub(crate) fn freeze(&self) {
        self.signal(Signal::STOP);
    }

    /// SIGCONT.
    pub(crate) fn thaw(&self) {
        self.signal(Signal::CONT);
    }

    /// SIGTERM: it hands over.
    pub(crate) fn terminate(&self) {
        self.signal(Signal::TERM);
    }

    /// Waits until it has ended.
    pub(crate) fn exited(&mut self) -> ExitStatus {
        let mut status = None;
        wait_until("the replica ends", || {
            status = self.child.try_wait().expect("it can be waited for");
            status.is_some()
        });
        self.to = Some(Stamp::now());
        status.expect("it has ended")
    }

    fn signal(&self, signal: Signal) {
        // Until it is waited for nobody else has its id; and whoever was waited for gets no signal any more.
        if self.to.is_none() {
            kill_process(self.pid, signal).expect("a signal can be sent");
        }
    }
}

impl Drop for Replica {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
