//! Says what happens, on standard output.

use std::{
    io::{self, Write},
    process,
    sync::mpsc,
    thread,
};

use tenure_tests::{Event, Message, Stamp};

/// Says what happens, in the order in which it is told. Never waits, so that whoever speaks is not held up.
#[derive(Clone)]
pub(crate) struct Reporter(mpsc::Sender<Said>);

enum Said {
    Message(Message),
    /// Answer here, once everything before it was written.
    Flush(mpsc::Sender<()>),
}

impl Reporter {
    pub(crate) fn start() -> io::Result<Self> {
        let (sender, receiver) = mpsc::channel();
        thread::Builder::new().name("reporter".into()).spawn(move || {
            let mut out = io::stdout();
            for said in receiver {
                match said {
                    Said::Message(message) => {
                        let written = serde_json::to_string(&message)
                            .map_err(io::Error::from)
                            .and_then(|line| writeln!(out, "{line}"));
                        if written.is_err() {
                            // Nobody listens: the test is gone.
                            process::exit(1);
                        }
                    }
                    Said::Flush(done) => drop(done),
                }
            }
        })?;
        Ok(Self(sender))
    }

    pub(crate) fn say(&self, event: Event) {
        let message = Message { at: Stamp::now(), event };
        // The thread that writes ends with the process only.
        let _ = self.0.send(Said::Message(message));
    }

    /// Waits until everything is written.
    pub(crate) fn flush(&self) {
        let (done, written) = mpsc::channel();
        let _ = self.0.send(Said::Flush(done));
        // It is never sent to, only dropped.
        let _ = written.recv();
    }
}
