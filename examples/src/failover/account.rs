//! What a run tells: events while it goes on, and a summary.

use std::{fmt, time::Duration};

use serde::{Serialize, Serializer};

use super::{
    callers::Requests,
    clock::Clock,
    oracle::{Owner, Violation},
};

/// Something that happened, told when it does.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "snake_case", tag = "event")]
#[non_exhaustive]
pub enum Event {
    /// A replica serves.
    Started {
        /// Which.
        replica: usize,
        /// Its process.
        pid: i32,
        /// Where it serves.
        url: String,
    },
    /// A replica answered in a new term.
    Leads {
        /// Which.
        replica: usize,
        /// Its candidate.
        identity: String,
        /// The term.
        fence: i64,
    },
    /// A signal was sent to a replica.
    Signalled {
        /// Which.
        replica: usize,
        /// `SIGKILL`, `SIGTERM`, `SIGSTOP` or `SIGCONT`.
        signal: &'static str,
    },
    /// A request that was in flight during a hand-over was answered.
    Finished {
        /// By which replica.
        replica: usize,
        /// Whether by the leader that it was sent to, in its term.
        served: bool,
    },
    /// A woken replica has answered everything that waited for it.
    CaughtUp {
        /// Which.
        replica: usize,
        /// How much of that it refused.
        refused: u64,
    },
    /// A replica's process has ended.
    Exited {
        /// Which.
        replica: usize,
        /// How.
        status: String,
    },
}

/// One thing that was done to a leader, and how long it took until the next one answered.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Exercise {
    /// What was done.
    pub name: &'static str,
    /// From then (for a hand-over: from the last answer in flight) to the first answer in the next term.
    #[serde(rename = "took_ms", serialize_with = "as_ms")]
    pub took: Duration,
    /// The longest that it may take, derived from the timings alone.
    #[serde(rename = "worst_case_ms", serialize_with = "as_ms")]
    pub worst_case: Duration,
}

/// What tenure promises, and whether this run saw it.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Claim {
    /// The promise.
    pub claim: String,
    /// Whether it was observed.
    pub observed: bool,
}

/// A term that was seen.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct SeenTerm {
    /// Its number.
    pub fence: i64,
    /// Whose it was.
    #[serde(flatten)]
    pub owner: Owner,
}

/// The end of the account.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Summary {
    /// How long the whole run took.
    #[serde(rename = "took_ms", serialize_with = "as_ms")]
    pub took: Duration,
    /// What was done to leaders.
    pub exercises: Vec<Exercise>,
    /// What all requests came to.
    pub requests: Requests,
    /// Every term, in the order of the fences.
    pub terms: Vec<SeenTerm>,
    /// Every promise.
    pub claims: Vec<Claim>,
    /// Answers that contradict each other.
    pub violations: Vec<Violation>,
}

impl Summary {
    /// Whether every promise was observed.
    #[must_use]
    pub fn all_observed(&self) -> bool {
        self.violations.is_empty() && self.claims.iter().all(|claim| claim.observed)
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:<26}{:>10}{:>14}", "", "took", "worst case")?;
        for Exercise { name, took, worst_case } in &self.exercises {
            writeln!(f, "{name:<26}{:>10}{:>14}", seconds(*took), seconds(*worst_case))?;
        }
        let Requests { served, refused, cut, unanswered, unexpected } = self.requests;
        write!(
            f,
            "\nrequests  {served} served, {refused} refused, {cut} cut, {unanswered} unanswered"
        )?;
        writeln!(f, ", {unexpected} unexpected, in {}", seconds(self.took))?;
        for (index, SeenTerm { fence, owner }) in self.terms.iter().enumerate() {
            let heading = if index == 0 { "fences" } else { "" };
            writeln!(f, "{heading:<10}{fence}  replica {}, {}", owner.replica, owner.identity)?;
        }
        writeln!(f)?;
        for Claim { claim, observed } in &self.claims {
            writeln!(f, "{:<14}{claim}", if *observed { "observed" } else { "NOT OBSERVED" })?;
        }
        for violation in &self.violations {
            writeln!(f, "{:<14}{violation}", "VIOLATION")?;
        }
        Ok(())
    }
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Started { replica, pid, url } => {
                write!(f, "replica {replica} serves on {url} (process {pid})")
            }
            Self::Leads { replica, fence, .. } => {
                write!(f, "replica {replica} leads: POST /jobs is answered with fence {fence}")
            }
            Self::Signalled { replica, signal } => {
                let meaning = match *signal {
                    "SIGKILL" => "killed",
                    "SIGTERM" => "asked to stop",
                    "SIGSTOP" => "frozen",
                    _ => "woken",
                };
                write!(f, "replica {replica} is {meaning} ({signal})")
            }
            Self::Finished { replica, served: true } => {
                write!(f, "replica {replica} finished the request that was in flight")
            }
            Self::Finished { replica, served: false } => {
                write!(f, "replica {replica} did NOT finish the request that was in flight")
            }
            Self::CaughtUp { replica, refused } => {
                write!(f, "replica {replica} refused {refused} requests that had waited for it")
            }
            Self::Exited { replica, status } => write!(f, "replica {replica} ended: {status}"),
        }
    }
}

/// Prints the account.
#[derive(Clone, Copy, Debug)]
pub(super) struct Account {
    pub(super) json: bool,
    pub(super) clock: Clock,
}

impl Account {
    pub(super) fn tell(self, event: &Event) {
        let at = self.clock.now();
        if self.json {
            let at_ms = ms(at);
            print_json(&Stamped { at_ms, event });
        } else {
            println!("{:>9}  {event}", seconds(at));
        }
    }

    pub(super) fn close(self, summary: &Summary) {
        if self.json {
            let observed = summary.all_observed();
            print_json(&Closing { event: "summary", observed, summary });
        } else {
            println!("\n{summary}");
        }
    }
}

#[derive(Serialize)]
struct Stamped<'a> {
    at_ms: f64,
    #[serde(flatten)]
    event: &'a Event,
}

#[derive(Serialize)]
struct Closing<'a> {
    event: &'static str,
    observed: bool,
    #[serde(flatten)]
    summary: &'a Summary,
}

fn print_json(object: &impl Serialize) {
    // Only maps with other keys than strings fail, and there are none here.
    println!("{}", serde_json::to_string(object).unwrap_or_default());
}

fn seconds(duration: Duration) -> String {
    format!("{:.3} s", duration.as_secs_f64())
}

fn ms(duration: Duration) -> f64 {
    (duration.as_secs_f64() * 1e6).round() / 1e3
}

fn as_ms<S: Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(ms(*duration))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn summary(observed: bool, violations: Vec<Violation>) -> Summary {
        let claim = Claim { claim: "the moon is round".to_owned(), observed };
        Summary {
            took: Duration::from_millis(1500),
            exercises: Vec::new(),
            requests: Requests::default(),
            terms: Vec::new(),
            claims: vec![claim],
            violations,
        }
    }

    #[test]
    fn one_claim_that_was_not_observed_fails_the_run_and_is_named() {
        assert!(summary(true, Vec::new()).all_observed());
        let failed = summary(false, Vec::new());
        assert!(!failed.all_observed());
        assert!(failed.to_string().contains("NOT OBSERVED  the moon is round"), "{failed}");
    }

    #[test]
    fn a_violation_fails_the_run_whatever_was_claimed() {
        let owner = |replica| Owner { replica, identity: replica.to_string() };
        let shared = Violation::SharedFence { fence: 7, first: owner(1), second: owner(2) };
        let failed = summary(true, vec![shared]);
        assert!(!failed.all_observed());
        assert!(failed.to_string().contains("fence 7 belongs to replica 1"), "{failed}");
    }
}
