//! Looks at the candidate from threads of its own, which nothing that the application does holds up.

use std::{
    error::Error,
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use futures::executor::block_on;
use tenure::{LastError, Leadership, Term, Transition};

use super::Reporter;
use crate::{Event, Refusal, Stamp};

/// How often it is asked whether the term is over.
const LOOK: Duration = Duration::from_millis(2);
/// How often it is said that it is not.
const SAY: Duration = Duration::from_millis(20);
/// Nobody is kept from looking for so long, not even on a busy machine, unless the process is frozen.
const FROZEN: Duration = Duration::from_millis(500);

/// Those who have something to say of a candidate until it has stopped.
pub(super) struct Observer {
    /// Nobody needs to look any more.
    has_stopped: Arc<AtomicBool>,
    threads: [JoinHandle<()>; 3],
}

impl Observer {
    pub(super) fn start(leadership: &Leadership, reporter: &Reporter) -> io::Result<Self> {
        let spawn = |name: &str, work: fn(&Leadership, &Reporter)| {
            let (leadership, reporter) = (leadership.clone(), reporter.clone());
            thread::Builder::new().name(name.into()).spawn(move || work(&leadership, &reporter))
        };
        let has_stopped = Arc::<AtomicBool>::default();
        let looks = {
            let (leadership, reporter) = (leadership.clone(), reporter.clone());
            let has_stopped = has_stopped.clone();
            let looks = thread::Builder::new().name("looks".into());
            looks.spawn(move || look(&leadership, &reporter, &has_stopped))?
        };
        let threads =
            [looks, spawn("transitions", report_transitions)?, spawn("errors", report_errors)?];
        Ok(Self { has_stopped, threads })
    }

    /// Waits until they have said all of a candidate that has stopped.
    pub(super) fn finish(self) {
        self.has_stopped.store(true, Ordering::Relaxed);
        for thread in self.threads {
            // That it panicked, if it did, was printed.
            let _ = thread.join();
        }
    }
}

/// The term that was found last, and what is to be said of it.
struct Found {
    term: Term,
    from: Stamp,
    to: Stamp,
    /// When it will be over, or was to be when it was last found not to be.
    until: Stamp,
    said: Stamp,
}

fn look(leadership: &Leadership, reporter: &Reporter, has_stopped: &AtomicBool) {
    let mut found: Option<Found> = None;
    let mut last = Stamp::now();
    loop {
        // Read first: what was not over when it is asked was not over then, if it was known by then.
        let at = Stamp::now();
        if at - last > FROZEN {
            let refusal = found.as_ref().map(|found| ask(leadership, &found.term));
            let slept_ms = u64::try_from((at - last).as_millis()).unwrap_or(u64::MAX);
            reporter.say(Event::Woke { slept_ms, refusal });
        }
        last = at;
        if let Some(known) = &mut found {
            let until = Stamp::now() + known.term.remaining();
            let is_over = !known.term.may_finish();
            if !is_over {
                (known.to, known.until) = (at, until);
            }
            if is_over || at - known.said >= SAY {
                known.said = at;
                let &mut Found { from, to, until, .. } = known;
                let fence = known.term.fence().into();
                reporter.say(Event::Live { fence, from, to, until });
            }
            if is_over {
                found = None;
            }
        }
        if found.is_none()
            && let Some(term) = leadership.term()
        {
            let at = Stamp::now();
            if term.may_finish() {
                found = Some(Found { term, from: at, to: at, until: at, said: at });
            }
        }
        if found.is_none() && has_stopped.load(Ordering::Relaxed) {
            return;
        }
        thread::sleep(LOOK);
    }
}

fn ask(leadership: &Leadership, term: &Term) -> Refusal {
    Refusal {
        is_leader: leadership.is_leader(),
        may_finish: term.may_finish(),
        admits: term.admit().is_some(),
        guards: term.guard().is_some(),
    }
}

fn report_transitions(leadership: &Leadership, reporter: &Reporter) {
    let mut transitions = leadership.transitions();
    block_on(async {
        while let Some(transition) = transitions.next().await {
            match transition {
                Transition::Started(term) => {
                    reporter.say(Event::Elected { fence: term.fence().into() });
                }
                Transition::Ended { term, reason } => {
                    let (fence, reason) = (term.fence().into(), reason.to_string());
                    reporter.say(Event::Ended { fence, reason });
                }
                _ => {}
            }
        }
    });
}

fn report_errors(leadership: &Leadership, reporter: &Reporter) {
    let mut status = leadership.watch();
    let mut said: Option<String> = None;
    block_on(async {
        loop {
            let error = status.borrow_and_update().last_error().cloned();
            let text = error.as_ref().map(describe);
            if text != said {
                reporter.say(match (&text, error) {
                    (Some(text), Some(error)) => {
                        Event::Failed { error: text.clone(), fatal: error.is_fatal() }
                    }
                    _ => Event::Recovered,
                });
                said = text;
            }
            if status.changed().await.is_err() {
                return;
            }
        }
    });
}

/// The error with all its causes.
fn describe(error: &LastError) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}
