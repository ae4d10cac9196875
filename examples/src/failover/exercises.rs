//! What is done to the leaders, one exercise after the other.

use std::{
    hash::{BuildHasher, RandomState},
    sync::Arc,
    time::Duration,
};

use http::Method;
use rustix::process::Signal;
use tenure::protocol::Timing;
use tokio::{task::JoinHandle, time};

use super::{
    FailoverError,
    account::{Account, Claim, Event, Exercise, SeenTerm, Summary},
    callers::{CALL_INTERVAL, Caller, Leads, Outcome, Record},
    clock::Clock,
    process::{Launcher, Replica},
};

const REPLICAS: usize = 3;
/// How long the request takes that is in flight during the hand-over.
const SLOW: Duration = Duration::from_millis(500);
/// For how long things are left as they are, at least.
const CALM: Duration = Duration::from_millis(500);
/// What watching adds to the derived worst case: callers ask at intervals, and all processes share the machine.
const WATCHING: Duration = Duration::from_millis(500);
/// How much longer than the worst case is waited before the run is given up.
const PATIENCE: Duration = Duration::from_secs(10);

/// A run in progress.
#[derive(Debug)]
pub(super) struct Run {
    launcher: Launcher,
    timing: Timing,
    account: Account,
    record: Arc<Record>,
    members: Vec<Member>,
    started: usize,
    exercises: Vec<Exercise>,
    claims: Vec<Claim>,
}

/// A replica and who calls it.
#[derive(Debug)]
struct Member {
    replica: Replica,
    caller: Caller,
    calls: JoinHandle<()>,
}

impl Drop for Member {
    fn drop(&mut self) {
        self.calls.abort();
    }
}

impl Run {
    pub(super) fn new(launcher: Launcher, timing: Timing, json: bool, clock: Clock) -> Self {
        Self {
            launcher,
            timing,
            account: Account { json, clock },
            record: Record::new(clock),
            members: Vec::new(),
            started: 0,
            exercises: Vec::new(),
            claims: Vec::new(),
        }
    }

    pub(super) async fn complete(mut self) -> Result<Summary, FailoverError> {
        for _ in 0..REPLICAS {
            self.start_replica().await?;
        }
        let leads = self.next_leader(None, "the start", self.timing.worst_case().recovery).await?;
        let leads = self.kill(leads).await?;
        let leads = self.hand_over(leads).await?;
        self.freeze(leads).await?;
        self.stop_everybody().await?;

        let summary = self.summary();
        self.account.close(&summary);
        Ok(summary)
    }

    async fn kill(&mut self, leads: Leads) -> Result<Leads, FailoverError> {
        let mut killed = self.take(leads.replica);
        let at = self.signal(&killed.replica, Signal::KILL)?;
        self.ended(&mut killed).await?;
        let worst_case = self.timing.worst_case().fail_over;
        let next = self.next_leader(Some(&leads), "SIGKILL", worst_case).await?;
        self.note("kill (SIGKILL)", next.since.saturating_sub(at), worst_case);
        self.start_replica().await?;
        Ok(next)
    }

    async fn hand_over(&mut self, leads: Leads) -> Result<Leads, FailoverError> {
        let mut leaving = self.take(leads.replica);
        let in_flight = {
            let caller = leaving.caller.clone();
            let path = format!("/slow?ms={}", SLOW.as_millis());
            tokio::spawn(async move { caller.call(Method::GET, &path).await })
        };
        // Half of its time, so that the request is being worked on when the signal comes.
        time::sleep(SLOW / 2).await;
        let asked = self.signal(&leaving.replica, Signal::TERM)?;

        let answered = tokio::select! {
            answered = in_flight => answered.ok(),
            () = time::sleep(SLOW + PATIENCE) => None,
        };
        let served = answered
            .as_ref()
            .is_some_and(|call| call.outcome == Outcome::Served(leads.answer.clone()));
        self.account.tell(&Event::Finished { replica: leads.replica, served });
        let finished = answered.map_or(asked, |call| call.received).max(asked);

        let worst_case = self.timing.worst_case().hand_over;
        let next = self.next_leader(Some(&leads), "SIGTERM", worst_case).await?;
        self.note("hand-over (SIGTERM)", next.since.saturating_sub(finished), worst_case);
        self.claim("a request in flight at the hand-over was finished by the old leader", served);
        self.claim("the next leader answered only after that", finished < next.since);

        let clean = self.ended(&mut leaving).await?;
        self.claim("the replica that handed over exited with 0", clean);
        self.start_replica().await?;
        Ok(next)
    }

    async fn freeze(&mut self, leads: Leads) -> Result<(), FailoverError> {
        let frozen = self.take(leads.replica);
        let replica = frozen.replica.number;
        let at = self.signal(&frozen.replica, Signal::STOP)?;
        let worst_case = self.timing.worst_case().fail_over;
        let next = self.next_leader(Some(&leads), "SIGSTOP", worst_case).await?;
        self.note("freeze (SIGSTOP)", next.since.saturating_sub(at), worst_case);

        // Sent when its successor is known to clients, and read by it when it wakes.
        let late = {
            let caller = frozen.caller.clone();
            tokio::spawn(async move { caller.call(Method::POST, "/jobs").await })
        };
        time::sleep(CALM).await;
        let (before, waiting) =
            (self.record.requests_to(replica), self.record.waiting_for(replica));
        self.signal(&frozen.replica, Signal::CONT)?;
        let caught_up = async {
            while self.record.requests_to(replica).total() < before.total() + waiting {
                time::sleep(CALL_INTERVAL).await;
            }
            late.await
        };
        let late = tokio::select! {
            late = caught_up => late,
            () = time::sleep(PATIENCE) => {
                return Err(FailoverError::StillRunning { replica, after: PATIENCE });
            }
        };
        let refused = self.record.requests_to(replica).refused - before.refused;
        self.account.tell(&Event::CaughtUp { replica, refused });
        self.claim(
            "the leader that was frozen past its lease refused what it read when it woke",
            late.is_ok_and(|call| call.outcome == Outcome::Refused),
        );
        self.members.push(frozen);
        Ok(())
    }

    async fn stop_everybody(&mut self) -> Result<(), FailoverError> {
        let mut members = std::mem::take(&mut self.members);
        for member in &members {
            self.signal(&member.replica, Signal::TERM)?;
        }
        let mut all_clean = true;
        for member in &mut members {
            all_clean &= self.ended(member).await?;
        }
        self.claim("all replicas exited with 0 when asked to stop", all_clean);
        Ok(())
    }

    async fn start_replica(&mut self) -> Result<(), FailoverError> {
        self.started += 1;
        let replica = self.launcher.start(self.started).await?;
        self.account.tell(&Event::Started {
            replica: replica.number,
            pid: replica.pid.as_raw_nonzero().get(),
            url: replica.url.clone(),
        });
        let caller = Caller::new(replica.number, replica.url.clone(), self.record.clone());
        let calls = tokio::spawn(caller.clone().call_all_the_time());
        self.members.push(Member { replica, caller, calls });
        Ok(())
    }

    /// Waits for an answer in a newer term, and then leaves its leader alone until some moment between two renewals, so that
    /// not every run finds the same part of the lease left.
    async fn next_leader(
        &self,
        last: Option<&Leads>,
        what: &'static str,
        worst_case: Duration,
    ) -> Result<Leads, FailoverError> {
        let after = worst_case + PATIENCE;
        let next = tokio::select! {
            next = self.record.leader_above(last.map(|last| last.answer.fence)) => next,
            () = time::sleep(after) => return Err(FailoverError::NoLeader { what, after }),
        };
        self.account.tell(&Event::Leads {
            replica: next.replica,
            identity: next.answer.identity.clone(),
            fence: next.answer.fence,
        });
        time::sleep(CALM + random_part_of(self.timing.renew_interval())).await;
        Ok(next)
    }

    /// Takes a member out: what happens to it is the exercise's business from now on. It is called all the same.
    fn take(&mut self, number: usize) -> Member {
        let index = self.members.iter().position(|member| member.replica.number == number);
        self.members.swap_remove(index.expect("only members are called, so only members lead"))
    }

    fn signal(&self, replica: &Replica, signal: Signal) -> Result<Duration, FailoverError> {
        let name = match signal {
            Signal::KILL => "SIGKILL",
            Signal::TERM => "SIGTERM",
            Signal::STOP => "SIGSTOP",
            _ => "SIGCONT",
        };
        let at = self.account.clock.now();
        replica.signal(signal)?;
        self.account.tell(&Event::Signalled { replica: replica.number, signal: name });
        Ok(at)
    }

    /// Waits for the end of a process; whether it exited with 0.
    async fn ended(&self, member: &mut Member) -> Result<bool, FailoverError> {
        let limit = self.timing.shutdown_bound().saturating_add(PATIENCE);
        let status = member.replica.exited(limit).await?;
        let replica = member.replica.number;
        self.account.tell(&Event::Exited { replica, status: status.to_string() });
        Ok(status.success())
    }

    fn note(&mut self, name: &'static str, took: Duration, worst_case: Duration) {
        self.exercises.push(Exercise { name, took, worst_case });
        let in_time = took <= worst_case + WATCHING;
        self.claim(&format!("{name}: the next leader answered in time"), in_time);
    }

    fn claim(&mut self, claim: &str, observed: bool) {
        self.claims.push(Claim { claim: claim.to_owned(), observed });
    }

    fn summary(&mut self) -> Summary {
        let requests = self.record.requests();
        let violations = self.record.judge(|oracle| oracle.violations().to_vec());
        let terms = self.record.judge(|oracle| {
            let terms = oracle.terms().iter();
            terms.map(|(&fence, owner)| SeenTerm { fence, owner: owner.clone() }).collect()
        });
        let old = |violation: &_| matches!(violation, super::Violation::OldTerm { .. });
        let shared = |violation: &_| matches!(violation, super::Violation::SharedFence { .. });
        self.claim(
            "nobody answered in an old term to a request sent after a newer term was known",
            !violations.iter().any(old),
        );
        self.claim("no fence belongs to two replicas", !violations.iter().any(shared));
        self.claim(
            "every request was served, refused, or lost with its process",
            requests.unexpected == 0 && requests.served > 0,
        );
        Summary {
            took: self.account.clock.now(),
            exercises: std::mem::take(&mut self.exercises),
            requests,
            terms,
            claims: std::mem::take(&mut self.claims),
            violations,
        }
    }
}

fn random_part_of(duration: Duration) -> Duration {
    // Each of these is seeded by the operating system; nothing else here needs random numbers.
    let random = RandomState::new().hash_one(()) >> 32;
    duration.mul_f64(random as f64 / f64::from(u32::MAX))
}
