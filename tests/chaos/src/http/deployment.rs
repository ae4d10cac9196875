//! Replicas of a service, their clients, and how that went.

use std::{fmt, path::PathBuf, process::ExitStatus, time::Duration};

use tenure_testbed::Proxy;
use tenure_tests::{Stamp, oracle, wait_until};

use super::{
    clients::Clients,
    judge::{self, Author, Call, Outcome},
    ledger,
    replica::Replica,
};
use crate::{
    ground::{Server, USER},
    stage::{BUSY, Mode, Stage, View},
    verdict::Gap,
};

/// The program of which replicas are made.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Framework {
    Axum,
    ActixWeb,
}

/// A service on a stage: its replicas take the place of the stage's candidates.
pub(crate) struct Deployment<'a> {
    pub(crate) stage: &'a mut Stage,
    program: PathBuf,
    replicas: Vec<Replica>,
    clients: Clients,
}

/// Somebody has done a job: so far as clients know, it leads.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Leads {
    pub(crate) replica: usize,
    pub(crate) fence: i64,
    /// When the first client knew of this fence.
    pub(crate) since: Stamp,
}

/// Fewer jobs than this prove nothing.
const FEW: usize = 20;
/// A time without a job that is done, as is shown in pictures.
const SHOWN: Duration = Duration::from_millis(300);
/// So many violations are told.
const TOLD: usize = 10;

impl<'a> Deployment<'a> {
    pub(crate) fn new(stage: &'a mut Stage, framework: Framework) -> Self {
        let Mode::Processes(participant) = stage.mode() else { panic!("replicas are processes") };
        let program = participant.with_file_name("examples").join(framework.program());
        // The first replica creates the ledger.
        stage.ground.execute(&format!("GRANT CREATE ON SCHEMA public TO {USER}"));
        stage.ground.execute("ALTER SYSTEM SET track_commit_timestamp = on");
        stage.ground.restart();
        Self { stage, program, replicas: Vec::new(), clients: Clients::new() }
    }

    /// That many replicas, of which one leads, under load for a while.
    pub(crate) fn start(&mut self, replicas: usize) -> Leads {
        for _ in 0..replicas {
            self.join();
        }
        self.leader();
        self.stage.wait(Duration::from_secs(1));
        self.leader()
    }

    /// One more replica, which all clients ask from now on. Returns its number.
    pub(crate) fn join(&mut self) -> usize {
        let number = self.replicas.len();
        let way = self.stage.ground.way(USER);
        let mut replica = Replica::start(&self.program, way, self.stage.settings())
            .unwrap_or_else(|error| panic!("a replica does not start: {error}"));
        replica.calling = Some(self.clients.call(number, replica.example.url()));
        self.replicas.push(replica);
        number
    }

    /// Those that are there.
    pub(crate) fn present(&self) -> Vec<usize> {
        let numbered = self.replicas.iter().enumerate();
        numbered.filter(|(_, replica)| replica.to.is_none()).map(|(number, _)| number).collect()
    }

    /// Waits until somebody leads, and says who.
    pub(crate) fn leader(&self) -> Leads {
        self.wait_for("somebody leads", |calls| {
            let (_, call, received, author) =
                judge::accepted(calls).max_by_key(|&(_, _, received, _)| received)?;
            let is_fresh = received.age() < Duration::from_millis(200);
            is_fresh.then_some((call.replica, author.fence))
        })
    }

    /// Waits until somebody does a job under a higher fence than this one.
    pub(crate) fn next_after(&self, leads: Leads) -> Leads {
        self.wait_for(&format!("somebody leads after fence {}", leads.fence), |calls| {
            let mut accepted = judge::accepted(calls);
            let found = accepted.find(|(.., author)| author.fence > leads.fence);
            found.map(|(_, call, _, author)| (call.replica, author.fence))
        })
    }

    fn wait_for(&self, what: &str, mut find: impl FnMut(&[Call]) -> Option<(usize, i64)>) -> Leads {
        let mut found = None;
        wait_until(what, || {
            found = self.clients.see(|calls| {
                let (replica, fence) = find(calls)?;
                let theirs = judge::accepted(calls).filter(|(.., author)| author.fence == fence);
                let since = theirs.map(|(_, _, received, _)| received).min()?;
                Some(Leads { replica, fence, since })
            });
            found.is_some()
        });
        found.expect("it was waited for")
    }

    /// All faults were over at `healed`: waits until somebody does a job that was asked for afterwards, and holds that to
    /// the worst case.
    pub(crate) fn recovers(&mut self, healed: Stamp) {
        let mut done = None;
        wait_until("a job is done again", || {
            done = self.clients.see(|calls| {
                let later = judge::accepted(calls).filter(|(_, call, ..)| call.sent > healed);
                later.map(|(_, _, received, _)| received).min()
            });
            done.is_some()
        });
        let took = done.expect("it was waited for") - healed;
        let limit = self.stage.recovery();
        if took > limit + BUSY {
            self.stage.problem(format!("a job was done after {took:.1?}, of at most {limit:.1?}"));
        }
    }

    /// Waits until this replica, which does not lead, has refused something that it was asked after `instant`.
    pub(crate) fn refuses_after(&self, replica: usize, instant: Stamp) {
        let is_refusal = |call: &Call| {
            let answer = call.answer.as_ref();
            let is_later = call.replica == replica && call.sent > instant;
            is_later && answer.is_some_and(|answer| answer.outcome == Outcome::Refused)
        };
        wait_until("the replica refuses", || {
            self.clients.see(|calls| calls.iter().any(is_refusal))
        });
    }

    /// The network paths between this replica and its database.
    pub(crate) fn paths(&self, replica: usize) -> &[Proxy] {
        &self.replicas[replica].way.paths
    }

    pub(crate) fn freeze(&self, replica: usize) {
        self.replicas[replica].example.process().freeze();
    }

    pub(crate) fn thaw(&self, replica: usize) {
        self.replicas[replica].example.process().thaw();
    }

    /// The replica is gone from one instant to the next.
    pub(crate) fn kill(&mut self, replica: usize) {
        let fault = self.stage.begin("killed", Some(replica));
        self.replicas[replica].kill();
        self.stage.end(fault);
        self.stop_asking(replica);
    }

    /// The replica is told to stop, as by whoever deploys a new version: it hands over, if it leads, and ends.
    pub(crate) fn terminate(&mut self, replica: usize) {
        self.replicas[replica].example.process().terminate();
        let status = self.replicas[replica].exited();
        self.stop_asking(replica);
        if !ExitStatus::success(&status) {
            self.stage.problem(format!("replica {replica} ended with {status}"));
        }
    }

    fn stop_asking(&mut self, replica: usize) {
        if let Some(calling) = self.replicas[replica].calling.take() {
            self.clients.finish(calling);
        }
    }

    /// The service has had this many terms so far, no more and no fewer.
    pub(crate) fn expect_terms(&mut self, expected: usize) {
        let terms = self.clients.see(|calls| terms(calls).len());
        if terms != expected {
            self.stage.problem(format!("{terms} terms instead of {expected}"));
        }
    }

    /// The play is over: nobody asks any more, everybody goes home, and everything is judged.
    pub(crate) fn close(mut self) {
        let ended = Stamp::now();
        self.replicas
            .iter()
            .filter_map(|replica| replica.calling.as_ref())
            .for_each(|it| it.stop());
        for replica in self.present() {
            // All of them have something to say; what is cut off here is unknown, and may be written or not.
            self.replicas[replica].kill();
            self.replicas[replica].to = None;
            self.stop_asking(replica);
        }
        let Server::Postgres(server) = &self.stage.ground.server else {
            panic!("the ledger is PostgreSQL's")
        };
        let written = ledger::read(&server.url());
        let (view, problems) = self.clients.see(|calls| {
            let view = View {
                replicas: self.replicas.iter().map(|replica| (replica.from, replica.to)).collect(),
                terms: terms(calls),
                gaps: gaps(calls, ended),
            };
            (view, problems(calls, written))
        });
        self.stage.view = Some(view);
        problems.into_iter().for_each(|problem| self.stage.problem(problem));
    }
}

fn problems(calls: &[Call], written: Result<Vec<judge::Record>, String>) -> Vec<String> {
    let written = match written {
        Ok(written) => written,
        Err(error) => return vec![error],
    };
    let violations = judge::judge(calls, &written);
    let mut problems: Vec<String> = violations.iter().take(TOLD).map(ToString::to_string).collect();
    if violations.len() > TOLD {
        problems.push(format!("and {} more of that kind", violations.len() - TOLD));
    }
    let done = judge::accepted(calls).count();
    if done < FEW {
        problems.push(format!("of {} jobs only {done} were done", calls.len()));
    }
    problems
}

/// From the first that was heard of each to the last.
fn terms(calls: &[Call]) -> Vec<oracle::Claim> {
    let claims = judge::accepted(calls).map(|(_, call, received, &Author { fence, .. })| {
        oracle::Claim { participant: call.replica, fence, from: received, to: received }
    });
    oracle::terms(claims).into_values().collect()
}

/// When nobody was told that a job is done, after somebody had been.
fn gaps(calls: &[Call], ended: Stamp) -> Vec<Gap> {
    let mut received: Vec<Stamp> = judge::accepted(calls).map(|(_, _, at, _)| at).collect();
    received.sort_unstable();
    received.extend((!received.is_empty()).then_some(ended));
    let gaps = received.windows(2).map(|pair| Gap { from: pair[0], to: pair[1] });
    gaps.filter(|gap| gap.length() > SHOWN).collect()
}

impl Framework {
    /// As the example is called.
    const fn program(self) -> &'static str {
        match self {
            Self::Axum => "axum",
            Self::ActixWeb => "actix",
        }
    }
}

impl fmt::Display for Leads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "replica {} under fence {}", self.replica, self.fence)
    }
}
