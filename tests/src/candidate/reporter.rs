//! Says what happens.

use std::{io, sync::mpsc, thread};

use crate::{Event, Message, Stamp};

/// Says what happens, in the order in which it is told. Never waits, so that whoever speaks is not held up.
#[derive(Clone, Debug)]
pub struct Reporter(mpsc::Sender<Said>);

#[derive(Debug)]
enum Said {
    Message(Message),
    /// Answer here, once everything before it was passed on.
    Flush(mpsc::Sender<()>),
}

impl Reporter {
    /// Passes everything on to `hear`, on a thread of its own.
    ///
    /// # Errors
    /// If there is no thread.
    pub fn start(mut hear: impl FnMut(Message) + Send + 'static) -> io::Result<Self> {
        let (sender, receiver) = mpsc::channel();
        thread::Builder::new().name("reporter".into()).spawn(move || {
            for said in receiver {
                match said {
                    Said::Message(message) => hear(message),
                    Said::Flush(done) => drop(done),
                }
            }
        })?;
        Ok(Self(sender))
    }

    /// Something happens now.
    pub fn say(&self, event: Event) {
        let message = Message { at: Stamp::now(), event };
        // The thread that passes it on ends with the last reporter.
        let _ = self.0.send(Said::Message(message));
    }

    /// Waits until everything was passed on.
    pub fn flush(&self) {
        let (done, passed_on) = mpsc::channel();
        let _ = self.0.send(Said::Flush(done));
        // It is never sent to, only dropped.
        let _ = passed_on.recv();
    }
}
