//! A participant, seen from the test that started it.

use std::{
    io::{self, BufRead, BufReader, Write},
    os::unix::process::CommandExt,
    path::Path,
    process::{self, Child, ExitStatus, Stdio},
    sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc},
    thread::{self, JoinHandle},
};

use rustix::process::{Pid, Signal, kill_process};

use crate::{
    Command, Entry, Event, Reporter, Settings, Stamp, Timeline, run_candidate, wait_until,
};

/// One candidate. Dropping it ends it.
#[derive(Debug)]
pub struct Participant {
    number: usize,
    timeline: Arc<Timeline>,
    body: Body,
}

#[derive(Debug)]
enum Body {
    Process(Process),
    Threads(Threads),
}

/// A process with one candidate in it. Dropping it kills the process; and when the test's own process is killed, the
/// participant notices that its standard input has closed, and ends.
#[derive(Debug)]
struct Process {
    child: Mutex<Child>,
    pid: Pid,
    listening: Option<JoinHandle<()>>,
}

/// Threads of the test's own process. Dropping it shuts the candidate down.
#[derive(Debug)]
struct Threads {
    commands: mpsc::Sender<Command>,
    running: Option<JoinHandle<()>>,
}

impl Participant {
    /// In a process of its own.
    pub(crate) fn start(
        program: &Path,
        settings: &Settings,
        number: usize,
        timeline: Arc<Timeline>,
    ) -> io::Result<Self> {
        let mut words = settings.within.iter().map(AsRef::as_ref).chain([program.as_os_str()]);
        let first = words.next().unwrap_or(program.as_os_str());
        let mut child = process::Command::new(first)
            .args(words)
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
        let process = Process { child: Mutex::new(child), pid, listening: Some(listening) };
        Ok(Self { number, timeline, body: Body::Process(process) })
    }

    /// On threads of this process.
    pub(crate) fn start_here(
        settings: &Settings,
        number: usize,
        timeline: Arc<Timeline>,
    ) -> io::Result<Self> {
        let heard = timeline.clone();
        let reporter = Reporter::start(move |message| heard.hear(number, message))?;
        let (commands, told) = mpsc::channel();
        let running = thread::Builder::new().name(format!("participant-{number}")).spawn({
            let settings = settings.clone();
            move || {
                if let Err(error) = run_candidate(&settings, told, &reporter) {
                    let error = Some(error.to_string());
                    reporter.say(Event::Stopped { error });
                }
            }
        })?;
        let threads = Threads { commands, running: Some(running) };
        Ok(Self { number, timeline, body: Body::Threads(threads) })
    }

    /// By which it is known on the timeline.
    #[must_use]
    pub fn number(&self) -> usize {
        self.number
    }

    /// The id of its process.
    ///
    /// # Panics
    /// If it is no process.
    #[must_use]
    pub fn pid(&self) -> i32 {
        self.process().pid.as_raw_nonzero().get()
    }

    /// Tells it something.
    ///
    /// # Panics
    /// If it is gone.
    pub fn tell(&self, command: Command) {
        match &self.body {
            Body::Process(process) => process.tell(command),
            Body::Threads(threads) => {
                threads.commands.send(command).expect("the participant listens");
            }
        }
    }

    /// Kills it with SIGKILL, and says when: it has done nothing any more after that.
    ///
    /// # Panics
    /// If it is no process.
    pub fn kill(&self) -> Stamp {
        self.process().signal(Signal::KILL);
        self.exited();
        Stamp::now()
    }

    /// Stops it with SIGSTOP.
    ///
    /// # Panics
    /// If it is no process.
    pub fn freeze(&self) {
        self.process().signal(Signal::STOP);
    }

    /// Lets it go on with SIGCONT.
    ///
    /// # Panics
    /// If it is no process.
    pub fn thaw(&self) {
        self.process().signal(Signal::CONT);
    }

    /// Waits until its process has ended.
    ///
    /// # Panics
    /// If it does not, or is no process.
    #[track_caller]
    pub fn exited(&self) -> ExitStatus {
        let process = self.process();
        let mut status = None;
        wait_until("the participant ends", || {
            status = process.lock().try_wait().expect("it can be waited for");
            status.is_some()
        });
        status.expect("it has ended")
    }

    #[track_caller]
    fn process(&self) -> &Process {
        match &self.body {
            Body::Process(process) => process,
            Body::Threads(_) => panic!("participant {} is no process", self.number),
        }
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
}

impl Process {
    fn tell(&self, command: Command) {
        let line = serde_json::to_string(&command).expect("a command can be written");
        let mut child = self.lock();
        let stdin = child.stdin.as_mut().expect("its standard input is open");
        writeln!(stdin, "{line}").expect("the participant listens");
    }

    fn signal(&self, signal: Signal) {
        // The child is a zombie at the least until it is waited for, so this is nobody else's id.
        kill_process(self.pid, signal).expect("a signal can be sent");
    }

    fn lock(&self) -> MutexGuard<'_, Child> {
        self.child.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Process {
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

impl Drop for Threads {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.commands.send(Command::ShutDown);
        if let Some(running) = self.running.take() {
            // That it panicked, if it did, was printed.
            let _ = running.join();
        }
    }
}
