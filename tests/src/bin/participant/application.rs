//! What the candidate is elected for: an application on a runtime of its own.

use std::{
    io,
    sync::{Arc, Barrier, Mutex, MutexGuard, PoisonError},
    thread,
    time::Duration,
};

use futures::{executor::block_on, future::join_all};
use tenure::{Candidacy, Elector, Leadership, Term};
use tenure_tests::{Event, Stamp};
use tokio::{
    runtime::{Builder, Runtime},
    task::JoinHandle,
};

use crate::reporter::Reporter;

/// All of them can be blocked.
const THREADS: usize = 2;
/// How often work is done.
const STEP: Duration = Duration::from_millis(10);

pub(crate) struct Application {
    runtime: Runtime,
    leadership: Leadership,
    reporter: Reporter,
    requests: Mutex<Vec<JoinHandle<()>>>,
}

impl Application {
    /// Does a little work all the time, in each term that comes.
    pub(crate) fn start(leadership: Leadership, reporter: Reporter) -> io::Result<Self> {
        let runtime = Builder::new_multi_thread().worker_threads(THREADS).enable_all().build()?;
        let (mut terms, reporting) = (leadership.terms(), reporter.clone());
        runtime.spawn(async move {
            while let Some(term) = terms.next().await {
                // That the term is over is no failure.
                let _ = term.leader_only(work(&term, &reporting, Duration::MAX)).await;
            }
        });
        Ok(Self { runtime, leadership, reporter, requests: Mutex::default() })
    }

    /// Has the candidate take part.
    pub(crate) fn spawn(&self, elector: Elector) -> Candidacy {
        let _entered = self.runtime.enter();
        elector.spawn()
    }

    /// Does work that was admitted like a request.
    pub(crate) fn serve(&self, ms: u64) {
        let reporter = self.reporter.clone();
        let Some(term) = self.leadership.term() else {
            return reporter.say(Event::NotAdmitted);
        };
        let request = self.runtime.spawn(async move {
            let fence = term.fence().into();
            let request = async {
                reporter.say(Event::Serving { fence });
                work(&term, &reporter, Duration::from_millis(ms)).await;
            };
            reporter.say(match term.until_ended(request).await {
                Ok(()) => Event::Served { fence },
                Err(ended) => Event::Cut { fence, reason: format!("{:?}", ended.reason()) },
            });
        });
        self.requests().push(request);
    }

    /// Waits for what was served to say how it ended. All of it ends with its term.
    pub(crate) fn finish(&self) {
        // That one panicked, if it did, was printed.
        let _ = block_on(join_all(self.requests().drain(..)));
    }

    fn requests(&self) -> MutexGuard<'_, Vec<JoinHandle<()>>> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs blocking code under a guard, as code that does not look around.
    pub(crate) fn guard(&self, ms: u64) {
        let reporter = self.reporter.clone();
        let guard = self.leadership.term().and_then(|term| term.guard());
        thread::spawn(move || {
            let Some(guard) = guard else { return reporter.say(Event::NotAdmitted) };
            let fence = guard.term().fence().into();
            reporter.say(Event::Guarding { fence });
            thread::sleep(Duration::from_millis(ms));
            reporter.say(Event::Unguarded { fence });
        });
    }

    /// Blocks every thread that polls the application's tasks.
    pub(crate) fn block(&self, ms: u64) {
        // One task for each thread, and none of them gets off its thread before all have one.
        let everywhere = Arc::new(Barrier::new(THREADS));
        for _ in 0..THREADS {
            let (everywhere, reporter) = (everywhere.clone(), self.reporter.clone());
            self.runtime.spawn(async move {
                let speaks = everywhere.wait().is_leader();
                if speaks {
                    reporter.say(Event::Blocked);
                }
                thread::sleep(Duration::from_millis(ms));
                if speaks {
                    // While the others still wait: none of them works before this is said.
                    reporter.say(Event::Unblocked);
                }
                everywhere.wait();
            });
        }
    }
}

/// A bit of work at a time, for this long.
async fn work(term: &Term, reporter: &Reporter, duration: Duration) {
    let fence = term.fence().into();
    let started = Stamp::now();
    loop {
        let at = Stamp::now();
        reporter.say(Event::Worked { fence, at });
        if at - started >= duration {
            return;
        }
        tokio::time::sleep(STEP).await;
    }
}
