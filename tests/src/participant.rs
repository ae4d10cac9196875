//! A participant, seen from the test that started it.

use std::{
    io::{self, BufRead, BufReader, Write},
    os::unix::process::CommandExt,
    path::Path,
    process::{self, Child, ExitStatus, Stdio},
    sync::{Arc, Mutex, PoisonError},
    thread::{self, JoinHandle},
};

use rustix::process::{Pid, Signal, kill_process};

use crate::{Command, Entry, Event, Settings, Stamp, Timeline, wait_until};

/// A process with one candidate in it. Dropping it kills the process; and when the test's own process is killed, the
/// participant notices that its standard input has closed, and ends.
#[derive(Debug)]
pub struct Participant {
    number: usize,
    timeline: Arc<Timeline>,
    child: Mutex<Child>,
    pid: Pid,
    listening: Option<JoinHandle<()>>,
}

impl Participant {
    pub(crate) fn start(
        program: &Path,
        settings: &Settings,
        number: usize,
        timeline: Arc<Timeline>,
    ) -> io::Result<Self> {
        let mut child = process::Command::new(program)
            .arg(serde_json::to_string(settings)?)
            // In a group of its own a process that is frozen is hung up on when the test is killed.
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let said = child.stdout.take().ok_or_else(|| io::Error::other("no standard output"))?;
        let listening = thread::Builder::new().name(format!("participant-{number}")).spawn({
            let timeline = timeline.clone();
            move || {
                // A process that is killed may leave half a line.
                for line in BufReader::new(said).lines().map_while(Result::ok) {
                    if let Ok(message) = serde_json::from_str(&line) {
                        timeline.hear(number, message);
                    }
                }
            }
        })?;
        let pid = Pid::from_child(&child);
        Ok(Self { number, timeline, child: Mutex::new(child), pid, listening: Some(listening) })
    }

    /// By which it is known on the timeline.
    #[must_use]
    pub fn number(&self) -> usize {
        self.number
    }

    /// Tells it something.
    ///
    /// # Panics
    /// If it is gone.
    pub fn tell(&self, command: Command) {
        let line = serde_json::to_string(&command).expect("a command can be written");
        let mut child = self.child.lock().unwrap_or_else(PoisonError::into_inner);
        let stdin = child.stdin.as_mut().expect("its standard input is open");
        writeln!(stdin, "{line}").expect("the participant listens");
    }

    /// Kills it with SIGKILL, and says when: it has done nothing any more after that.
    pub fn kill(&self) -> Stamp {
        self.signal(Signal::KILL);
        self.exited();
        Stamp::now()
    }

    /// Stops it with SIGSTOP.
    pub fn freeze(&self) {
        self.signal(Signal::STOP);
    }

    /// Lets it go on with SIGCONT.
    pub fn thaw(&self) {
        self.signal(Signal::CONT);
    }

    /// Waits until it has ended.
    ///
    /// # Panics
    /// If it does not.
    #[track_caller]
    pub fn exited(&self) -> ExitStatus {
        let mut status = None;
        wait_until("the participant ends", || {
            let mut child = self.child.lock().unwrap_or_else(PoisonError::into_inner);
            status = child.try_wait().expect("it can be waited for");
            status.is_some()
        });
        status.expect("it has ended")
    }

    /// Waits until it says something that `is_it` recognizes, and tells when it said so. What it said earlier counts.
    ///
    /// # Panics
    /// If it does not.
    #[track_caller]
    pub fn says(&self, what: &str, is_it: impl FnMut(&Event) -> bool) -> Entry {
        self.says_after(0, what, is_it)
    }

    /// As [`says`](Self::says), but not before this many entries of the timeline.
    ///
    /// # Panics
    /// If it does not.
    #[track_caller]
    pub fn says_after(
        &self,
        place: usize,
        what: &str,
        mut is_it: impl FnMut(&Event) -> bool,
    ) -> Entry {
        let what = format!("participant {}: {what}", self.number);
        self.timeline.wait_for(&what, |entries| {
            let mut theirs =
                entries[place..].iter().filter(|entry| entry.participant == self.number);
            theirs.find(|entry| is_it(&entry.event)).cloned()
        })
    }

    fn signal(&self, signal: Signal) {
        // The child is a zombie at the least until it is waited for, so this is nobody else's id.
        kill_process(self.pid, signal).expect("a signal can be sent");
    }
}

impl Drop for Participant {
    fn drop(&mut self) {
        let child = self.child.get_mut().unwrap_or_else(PoisonError::into_inner);
        // It may have ended already; a frozen process can be killed, too.
        let _ = child.kill();
        let _ = child.wait();
        if let Some(listening) = self.listening.take() {
            // It only hears out what was said.
            let _ = listening.join();
        }
    }
}
