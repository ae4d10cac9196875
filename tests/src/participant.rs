//! A participant, seen from the test that started it.

use std::{
    io::{self, BufRead, BufReader, Write},
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{self, ChildStdin, ExitStatus, Stdio},
    sync::{Arc, Mutex, PoisonError, mpsc},
    thread::{self, JoinHandle},
};

use crate::{
    Command, Entry, Event, Example, Message, Process, Reporter, Settings, Stamp, Timeline,
    example::watch, run_candidate,
};

/// What runs participants.
#[derive(Clone, Debug)]
pub(crate) enum Runner {
    /// Processes of this program, which says what it does.
    Program(PathBuf),
    /// Threads of the test's own process.
    Threads,
    /// Processes of this program, which is asked over HTTP.
    Example(PathBuf),
}

/// One candidate. Dropping it ends it.
#[derive(Debug)]
pub struct Participant {
    number: usize,
    timeline: Arc<Timeline>,
    body: Body,
}

#[derive(Debug)]
enum Body {
    Program(Program),
    Threads(Threads),
    Example(Asked),
}

/// A process with one candidate in it. Dropping it kills the process; and when the test's own process is killed, the
/// participant notices that its standard input has closed, and ends.
#[derive(Debug)]
struct Program {
    process: Process,
    stdin: Mutex<ChildStdin>,
    listening: Option<JoinHandle<()>>,
}

/// Threads of the test's own process. Dropping it shuts the candidate down.
#[derive(Debug)]
struct Threads {
    commands: mpsc::Sender<Command>,
    running: Option<JoinHandle<()>>,
}

/// A process of an example. Dropping it kills the process.
#[derive(Debug)]
struct Asked {
    example: Arc<Example>,
    watching: Option<JoinHandle<()>>,
}

impl Participant {
    pub(crate) fn start(
        runner: &Runner,
        settings: &Settings,
        number: usize,
        timeline: Arc<Timeline>,
    ) -> io::Result<Self> {
        let heard = timeline.clone();
        let hear = move |message| heard.hear(number, message);
        let thread = thread::Builder::new().name(format!("participant-{number}"));
        let body = match runner {
            Runner::Program(program) => {
                Body::Program(Program::start(program, settings, thread, hear)?)
            }
            Runner::Threads => Body::Threads(Threads::start(settings, thread, hear)?),
            Runner::Example(program) => {
                Body::Example(Asked::start(program, settings, thread, hear)?)
            }
        };
        Ok(Self { number, timeline, body })
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
    #[track_caller]
    pub fn pid(&self) -> i32 {
        self.process().pid()
    }

    /// Tells it something.
    ///
    /// # Panics
    /// If it is gone, or an example, which cannot be told that: only to shut down.
    #[track_caller]
    pub fn tell(&self, command: Command) {
        match (&self.body, command) {
            (Body::Program(program), _) => program.tell(command),
            (Body::Threads(threads), _) => {
                threads.commands.send(command).expect("the participant listens");
            }
            (Body::Example(asked), Command::ShutDown) => asked.example.process().terminate(),
            (Body::Example(_), _) => panic!("an example cannot be told {command:?}"),
        }
    }

    /// Kills it with SIGKILL, and says when: it has done nothing any more after that.
    ///
    /// # Panics
    /// If it is no process.
    #[track_caller]
    pub fn kill(&self) -> Stamp {
        self.process().kill()
    }

    /// Stops it with SIGSTOP.
    ///
    /// # Panics
    /// If it is no process.
    #[track_caller]
    pub fn freeze(&self) {
        self.process().freeze();
    }

    /// Lets it go on with SIGCONT.
    ///
    /// # Panics
    /// If it is no process.
    #[track_caller]
    pub fn thaw(&self) {
        self.process().thaw();
    }

    /// Waits until its process has ended.
    ///
    /// # Panics
    /// If it does not, or is no process.
    #[track_caller]
    pub fn exited(&self) -> ExitStatus {
        self.process().exited()
    }

    #[track_caller]
    fn process(&self) -> &Process {
        match &self.body {
            Body::Program(program) => &program.process,
            Body::Example(asked) => asked.example.process(),
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

impl Program {
    fn start(
        program: &Path,
        settings: &Settings,
        thread: thread::Builder,
        hear: impl Fn(Message) + Send + 'static,
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
        let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
        let process = Process::new(child);
        let stdin = stdin.ok_or_else(|| io::Error::other("no standard input"))?;
        let said = stdout.ok_or_else(|| io::Error::other("no standard output"))?;
        let listening = thread.spawn(move || {
            // A process that is killed may leave half a line.
            for line in BufReader::new(said).lines().map_while(Result::ok) {
                if let Ok(message) = serde_json::from_str(&line) {
                    hear(message);
                }
            }
        })?;
        Ok(Self { process, stdin: Mutex::new(stdin), listening: Some(listening) })
    }

    fn tell(&self, command: Command) {
        let line = serde_json::to_string(&command).expect("a command can be written");
        let mut stdin = self.stdin.lock().unwrap_or_else(PoisonError::into_inner);
        writeln!(stdin, "{line}").expect("the participant listens");
    }
}

impl Threads {
    fn start(
        settings: &Settings,
        thread: thread::Builder,
        hear: impl Fn(Message) + Send + 'static,
    ) -> io::Result<Self> {
        let reporter = Reporter::start(hear)?;
        let (commands, told) = mpsc::channel();
        let settings = settings.clone();
        let running = thread.spawn(move || {
            if let Err(error) = run_candidate(&settings, told, &reporter) {
                let error = Some(error.to_string());
                reporter.say(Event::Stopped { error });
            }
        })?;
        Ok(Self { commands, running: Some(running) })
    }
}

impl Asked {
    fn start(
        program: &Path,
        settings: &Settings,
        thread: thread::Builder,
        hear: impl Fn(Message) + Send + 'static,
    ) -> io::Result<Self> {
        let say = move |event| hear(Message { at: Stamp::now(), event });
        let example = Arc::new(Example::start(program, settings, &[])?);
        say(Event::Joined { identity: example.identity().to_owned() });
        let watched = example.clone();
        let watching = thread.spawn(move || watch(&watched, say).expect("there is a runtime"))?;
        Ok(Self { example, watching: Some(watching) })
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        self.process.end();
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

impl Drop for Asked {
    fn drop(&mut self) {
        self.example.process().end();
        if let Some(watching) = self.watching.take() {
            // It notices that nobody answers any more. That it panicked, if it did, was printed.
            let _ = watching.join();
        }
    }
}
