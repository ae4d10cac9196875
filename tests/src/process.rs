//! A process that a test has started.

use std::{
    process::{Child, ExitStatus},
    sync::{Mutex, MutexGuard, PoisonError},
};

use rustix::process::{Pid, Signal, kill_process};

use crate::{Stamp, wait_until};

/// A process. Dropping it kills it.
#[derive(Debug)]
pub struct Process {
    child: Mutex<Child>,
    pid: Pid,
}

impl Process {
    pub(crate) fn new(child: Child) -> Self {
        let pid = Pid::from_child(&child);
        Self { child: Mutex::new(child), pid }
    }

    /// Its id.
    #[must_use]
    pub fn pid(&self) -> i32 {
        self.pid.as_raw_nonzero().get()
    }

    /// Kills it with SIGKILL, and says when: it has done nothing any more after that.
    ///
    /// # Panics
    /// If it lives on.
    pub fn kill(&self) -> Stamp {
        self.signal(Signal::KILL);
        self.exited();
        Stamp::now()
    }

    /// Stops it with SIGSTOP.
    ///
    /// # Panics
    /// If that is not allowed.
    pub fn freeze(&self) {
        self.signal(Signal::STOP);
    }

    /// Lets it go on with SIGCONT.
    ///
    /// # Panics
    /// If that is not allowed.
    pub fn thaw(&self) {
        self.signal(Signal::CONT);
    }

    /// Asks it to end with SIGTERM.
    ///
    /// # Panics
    /// If that is not allowed.
    pub fn terminate(&self) {
        self.signal(Signal::TERM);
    }

    /// How it has ended, if it has.
    ///
    /// # Panics
    /// If somebody else has waited for it.
    pub fn status(&self) -> Option<ExitStatus> {
        self.lock().try_wait().expect("it can be waited for")
    }

    /// Waits until it has ended.
    ///
    /// # Panics
    /// If it does not.
    #[track_caller]
    pub fn exited(&self) -> ExitStatus {
        let mut status = None;
        wait_until("the process ends", || {
            status = self.status();
            status.is_some()
        });
        status.expect("it has ended")
    }

    /// Sees to it that it has ended: by itself, or killed, also if it is frozen.
    pub(crate) fn end(&self) {
        let mut child = self.lock();
        // It may have ended already.
        let _ = child.kill();
        let _ = child.wait();
    }

    fn signal(&self, signal: Signal) {
        let mut child = self.lock();
        // Nobody else has its id until it is waited for, which nobody does meanwhile.
        if child.try_wait().expect("it can be waited for").is_none() {
            kill_process(self.pid, signal).expect("a signal can be sent");
        }
    }

    fn lock(&self) -> MutexGuard<'_, Child> {
        self.child.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.end();
    }
}
