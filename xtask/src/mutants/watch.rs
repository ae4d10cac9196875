//! A run of a test program, which with a bug in it ends as soon as it is clear how.

// What is timed here is how long people wait, not an election.
#![allow(clippy::disallowed_methods)]

use std::{
    fmt,
    io::{BufRead, BufReader, Read},
    process::{Child, Command, Stdio},
    sync::mpsc::{self, RecvTimeoutError},
    thread,
    time::{Duration, Instant},
};

use super::layer::Trial;
use crate::Failure;

/// Far more than any test program takes here without a bug.
const LIMIT: Duration = Duration::from_secs(180);

pub(super) struct Seen {
    pub(super) verdict: Verdict,
    pub(super) took: Duration,
    /// What the program printed until then, by lines.
    pub(super) said: Vec<String>,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Passed,
    /// The first test that failed, or the first property that does not hold.
    Failed(String),
    /// The program failed without saying so.
    Died(String),
    Hung,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Passed => f.write_str("passed"),
            Self::Failed(test) => f.write_str(test),
            Self::Died(how) => f.write_str(how),
            Self::Hung => write!(f, "came to no end within {LIMIT:?}"),
        }
    }
}

/// Runs the program with one bug awake, until the first test fails; or with none, to its end, since whoever reads of a failure then
/// wants to know all about it.
pub(super) fn watch(trial: &Trial, awake: Option<&str>) -> Result<Seen, Failure> {
    let started = Instant::now();
    let mut command = Command::new(&trial.executable);
    command
        .args(&trial.arguments)
        .current_dir(&trial.directory)
        .env_remove("TENURE_MUTANT")
        .envs(awake.map(|name| ("TENURE_MUTANT", name)))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(if awake.is_some() { Stdio::null() } else { Stdio::inherit() });
    let failed = |error| Failure::new(format!("{trial} cannot be run: {error}"));
    let mut child = command.spawn().map_err(failed)?;
    let lines = child.stdout.take().map(lines_of);
    let mut said = Vec::new();
    let mut found = None;
    let verdict = loop {
        let left = LIMIT.saturating_sub(started.elapsed());
        match lines.as_ref().map(|lines| lines.recv_timeout(left)) {
            Some(Ok(line)) => {
                found = found.or_else(|| finding(&line).map(str::to_owned));
                said.push(line);
                if let Some(finding) = found.take_if(|_| awake.is_some()) {
                    break Verdict::Failed(finding);
                }
            }
            Some(Err(RecvTimeoutError::Timeout)) => break Verdict::Hung,
            Some(Err(RecvTimeoutError::Disconnected)) | None => {
                let ended = ended(&mut child).map_err(failed)?;
                break found.map_or(ended, Verdict::Failed);
            }
        }
    };
    // It may have ended by now. What it has started ends with it, as after any failure.
    let _ = child.kill();
    let _ = child.wait();
    Ok(Seen { verdict, took: started.elapsed(), said })
}

/// A thread of its own reads, since reading has no time limit.
fn lines_of(output: impl Read + Send + 'static) -> mpsc::Receiver<String> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        for line in BufReader::new(output).split(b'\n').map_while(Result::ok) {
            if sender.send(String::from_utf8_lossy(&line).into_owned()).is_err() {
                return;
            }
        }
    });
    receiver
}

fn ended(child: &mut Child) -> std::io::Result<Verdict> {
    let status = child.wait()?;
    Ok(if status.success() { Verdict::Passed } else { Verdict::Died(status.to_string()) })
}

/// Reads `test protocol::tests::a_term_ends ... FAILED`, what the model says, and what the simulation says.
fn finding(line: &str) -> Option<&str> {
    let test = || line.strip_prefix("test ")?.strip_suffix(" ... FAILED");
    let line = line.trim_start();
    test().or_else(|| line.strip_prefix("BROKEN: ")).or_else(|| line.strip_prefix("VIOLATED: "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_failed_is_read_from_its_line() {
        assert_eq!(finding("test term::tests::it ... FAILED"), Some("term::tests::it"));
        assert_eq!(finding("test term::tests::it ... ok"), None);
        assert_eq!(finding("test result: FAILED. 1 passed; 1 failed"), None);
        assert_eq!(finding("    BROKEN: one leader"), Some("one leader"));
        assert_eq!(finding("VIOLATED: one-leader"), Some("one-leader"));
    }
}
