//! What is broken on a stage, from when to when, and for how long nobody may lead.

use std::time::Duration;

use tenure_testbed::Proxy;
use tenure_tests::Stamp;

use super::Stage;

/// Something is broken.
#[derive(Clone, Debug)]
pub(crate) struct Fault {
    pub(crate) what: String,
    /// For whom; for everybody, if for nobody else.
    pub(crate) on: Option<usize>,
    pub(crate) from: Stamp,
    /// When it was over.
    pub(crate) to: Option<Stamp>,
}

/// For how long the election may be without a leader.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Allowed {
    /// In any case.
    pub(crate) gap: Duration,
    /// Besides, for as long as the longest of the faults lasts that reach everybody.
    pub(crate) outage: bool,
}

/// A fault that has begun.
#[derive(Debug)]
#[must_use = "a fault that has begun is ended"]
pub(crate) struct Begun(usize);

impl Stage {
    /// A fault begins, for one candidate or for all.
    pub(crate) fn begin(&mut self, what: &str, on: Option<usize>) -> Begun {
        let what = what.to_owned();
        self.faults.push(Fault { what, on, from: Stamp::now(), to: None });
        Begun(self.faults.len() - 1)
    }

    /// It is over.
    #[allow(clippy::needless_pass_by_value)] // it is over
    pub(crate) fn end(&mut self, fault: Begun) -> Stamp {
        let now = Stamp::now();
        self.faults[fault.0].to = Some(now);
        now
    }

    /// The election may be without a leader for so long.
    pub(crate) fn allow(&mut self, gap: Duration) {
        self.allowed.gap = gap;
    }

    /// The same, and besides for as long as the longest fault lasts that reaches everybody.
    pub(crate) fn allow_outage(&mut self, gap: Duration) {
        self.allowed = Allowed { gap, outage: true };
    }

    /// The server is stopped, with all connections open, and goes on. As those that follow, it says when it was over.
    pub(crate) fn stop_server(&mut self, lasts: Duration) -> Stamp {
        let fault = self.begin("server stopped", None);
        self.ground.stop();
        self.wait(lasts);
        self.ground.cont();
        self.end(fault)
    }

    /// The server is killed, is away, and starts again.
    pub(crate) fn kill_server(&mut self, lasts: Duration) -> Stamp {
        let fault = self.begin("server killed", None);
        self.ground.kill();
        self.wait(lasts);
        self.ground.restart();
        self.end(fault)
    }

    /// The server is shut down and starts again.
    pub(crate) fn restart_server(&mut self) -> Stamp {
        let fault = self.begin("server restarts", None);
        self.ground.restart();
        self.end(fault)
    }

    /// The server ends all sessions of candidates.
    pub(crate) fn end_sessions(&mut self) -> Stamp {
        let fault = self.begin("sessions ended", None);
        self.ground.end_sessions();
        self.end(fault)
    }

    /// Another session locks the row of this election.
    pub(crate) fn lock_row(&mut self, election: &str, lasts: Duration) -> Stamp {
        let fault = self.begin("row locked", None);
        let locker = self.ground.lock_row(election);
        self.wait(lasts);
        drop(locker);
        self.end(fault)
    }

    /// The pooler is killed and starts again.
    pub(crate) fn restart_pooler(&mut self) -> Stamp {
        let fault = self.begin("pooler restarts", None);
        self.ground.restart_pooler();
        self.end(fault)
    }

    /// The paths of one candidate are broken like this.
    pub(crate) fn break_paths(
        &mut self,
        replica: usize,
        what: &str,
        lasts: Duration,
        breaks: impl Fn(&Proxy),
    ) -> Stamp {
        let fault = self.begin(what, Some(replica));
        self.paths(replica).iter().for_each(breaks);
        self.wait(lasts);
        self.paths(replica).iter().for_each(Proxy::heal);
        self.end(fault)
    }
}
