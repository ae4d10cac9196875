//! Guarded work that goes on although the lease is over.

use std::{fmt, sync::Arc, sync::mpsc, thread, time::Duration};

use super::Term;
use crate::{
    lease::{ElectionName, Fence, Identity},
    telemetry::Telemetry,
};

/// How long the log may take before the last act; whoever writes it may be what hangs.
const LOG_LIMIT: Duration = Duration::from_millis(200);

/// What to do when a guard is still held although the lease itself, safety margin included, is over: another candidate may
/// lead by now, while here blocking code, which nobody can stop, goes on working for the old term.
///
/// It is decided on the watchdog's own thread, so that it also happens while the application has blocked its runtime.
#[derive(Clone, Default)]
#[non_exhaustive]
pub enum Overrun {
    /// Report it: an event of level *error*, [`LastError::Overrun`](crate::LastError::Overrun), a metric.
    #[default]
    Report,
    /// Report it, and abort the process. Nothing else stops code that blocks.
    Abort,
    /// Report it, and call this on the watchdog's thread: a last act of one's own. It must not block, and should not
    /// allocate much. A panic in it is contained.
    Call(Arc<dyn Fn(&Overran) + Send + Sync>),
}

impl Overrun {
    /// [`Overrun::Call`] of this.
    #[must_use]
    pub fn call(act: impl Fn(&Overran) + Send + Sync + 'static) -> Self {
        Self::Call(Arc::new(act))
    }

    /// Does what is to be done; `abort` ends the process.
    pub(super) fn happen(&self, term: &Term, overran: &Overran, abort: impl FnOnce()) {
        report(term.telemetry().clone(), overran.clone());
        match self {
            Self::Report => {}
            Self::Abort => abort(),
            Self::Call(act) => act(overran),
        }
    }
}

impl fmt::Debug for Overrun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Report => "Report",
            Self::Abort => "Abort",
            Self::Call(_) => "Call",
        })
    }
}

/// Which work goes on although its lease is over.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Overran {
    /// The election.
    pub election: ElectionName,
    /// This candidate.
    pub identity: Identity,
    /// The fence of the term that is over.
    pub fence: Fence,
    /// How many guards are held.
    pub guards: usize,
}

impl Overran {
    pub(super) fn of(term: &Term, guards: usize) -> Self {
        Self {
            election: term.election().clone(),
            identity: term.identity().clone(),
            fence: term.fence(),
            guards,
        }
    }
}

/// On a thread of its own: the application's subscriber may block, and the watchdog must not.
fn report(telemetry: Telemetry, overran: Overran) {
    let (done, reported) = mpsc::sync_channel(1);
    let log = move || {
        telemetry.overran(&overran);
        // Nobody waits any more if that took too long.
        let _ = done.send(());
    };
    if thread::Builder::new().name("tenure-report".into()).spawn(log).is_ok() {
        let _ = reported.recv_timeout(LOG_LIMIT);
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;
    use crate::term::tests::term;

    #[test]
    fn the_process_is_aborted_if_that_was_chosen_and_not_otherwise() {
        let (term, _, _) = term();
        let overran = Overran::of(&term, 1);
        let aborted = |overrun: Overrun| {
            let aborted = Cell::new(false);
            overrun.happen(&term, &overran, || aborted.set(true));
            aborted.get()
        };
        assert!(aborted(Overrun::Abort));
        assert!(!aborted(Overrun::Report));
        assert!(!aborted(Overrun::call(|overran| assert_eq!(overran.guards, 1))));
    }
}
