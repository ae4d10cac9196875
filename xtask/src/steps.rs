//! Steps of a command: each is named, timed, and added to the closing summary.

// What is timed here is how long people wait, not an election.
#![allow(clippy::disallowed_methods)]

use std::{
    io::{BufRead, BufReader, Write},
    process::{Command, ExitStatus, Stdio},
    time::{Duration, Instant},
};

use crate::{Failure, tally::Tally};

/// Runs steps one after the other and remembers how they went.
#[derive(Debug, Default)]
pub(crate) struct Steps {
    done: Vec<Done>,
    tests: Option<Tally>,
}

#[derive(Debug)]
struct Done {
    name: String,
    took: Duration,
    /// Why it failed, if it did.
    failure: Option<String>,
}

impl Steps {
    /// Runs `work` as the step `name`.
    pub(crate) fn step(
        &mut self,
        name: &str,
        work: impl FnOnce() -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        println!("==> {name}");
        let started = Instant::now();
        let outcome = work();
        let failure = outcome.as_ref().err().map(ToString::to_string);
        let done = Done { name: name.to_owned(), took: started.elapsed(), failure };
        println!("==> {done}\n");
        self.done.push(done);
        outcome
    }

    /// Runs a program as the step `name`. What it prints remains visible.
    pub(crate) fn program(&mut self, name: &str, command: &mut Command) -> Result<(), Failure> {
        self.step(name, || {
            let status = command.status().map_err(|error| cannot_start(command, &error))?;
            succeeded(name, status)
        })
    }

    /// Runs a program that runs tests as the step `name`, and counts them. A test that is ignored fails the step: it
    /// would go on being reported without ever being run.
    pub(crate) fn tests(&mut self, name: &str, command: &mut Command) -> Result<(), Failure> {
        let mut counted = Tally::default();
        let outcome = self.step(name, || {
            let status = count_tests(command, &mut counted)?;
            succeeded(name, status)?;
            match counted.ignored {
                0 => Ok(()),
                ignored => Err(Failure::new(format!("{name}: {ignored} tests are ignored"))),
            }
        });
        *self.tests.get_or_insert_default() += counted;
        outcome
    }

    /// How many tests have passed.
    pub(crate) fn passed(&self) -> u64 {
        self.tests.map_or(0, |tests| tests.passed)
    }

    /// Prints how each step went, why those failed that did, and last, how many tests passed and failed.
    pub(crate) fn print_summary(&self) {
        for done in &self.done {
            println!("{done}");
        }
        for Done { name, failure, .. } in &self.done {
            if let Some(failure) = failure {
                println!("{name}: {failure}");
            }
        }
        println!(
            "{:>8.1} s  in all",
            self.done.iter().map(|done| done.took.as_secs_f64()).sum::<f64>()
        );
        if let Some(tests) = self.tests {
            println!("{tests}");
        }
    }
}

impl std::fmt::Display for Done {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let verdict = if self.failure.is_none() { "" } else { ": FAILED" };
        write!(f, "{:>8.1} s  {}{verdict}", self.took.as_secs_f64(), self.name)
    }
}

/// Passes on what the program prints, line by line, so that it stays in step with what cargo prints on stderr.
fn count_tests(command: &mut Command, counted: &mut Tally) -> Result<ExitStatus, Failure> {
    let mut child =
        command.stdout(Stdio::piped()).spawn().map_err(|error| cannot_start(command, &error))?;
    let mut out = std::io::stdout();
    // Bytes, since a test may print anything.
    for line in child.stdout.take().into_iter().flat_map(|out| BufReader::new(out).split(b'\n')) {
        let line = line.map_err(|error| Failure::new(format!("its output broke off: {error}")))?;
        // Nobody may be reading; the tests are run all the same.
        let _ = out.write_all(&line).and_then(|()| out.write_all(b"\n")).and_then(|()| out.flush());
        if let Some(tally) = Tally::of_line(&String::from_utf8_lossy(&line)) {
            *counted += tally;
        }
    }
    child.wait().map_err(|error| Failure::new(format!("it cannot be waited for: {error}")))
}

fn succeeded(name: &str, status: ExitStatus) -> Result<(), Failure> {
    if status.success() { Ok(()) } else { Err(Failure::new(format!("{name} failed: {status}"))) }
}

fn cannot_start(command: &Command, error: &std::io::Error) -> Failure {
    Failure::new(format!("{} cannot be started: {error}", command.get_program().display()))
}
