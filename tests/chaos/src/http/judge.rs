//! Judges what clients were answered, and what the ledger has: it knows nothing about how an election works.
//!
//! Clients know when they sent a request and when they received its answer, and what it means. The ledger has the records of
//! accepted jobs in the order in which they were written, and the server knows in which order these were committed.

use std::{collections::BTreeMap, fmt};

use tenure_tests::Stamp;

/// A request; its number among all of them is the job's name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Call {
    /// Who was asked.
    pub(crate) replica: usize,
    /// Read before anything was sent.
    pub(crate) sent: Stamp,
    /// `None` if nothing came, not even that the connection is broken.
    pub(crate) answer: Option<Answer>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    /// Read after all of it had come.
    pub(crate) received: Stamp,
    pub(crate) outcome: Outcome,
}

/// What an answer means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The job is done.
    Accepted(Author),
    /// It is not, and never will be.
    Refused,
    /// It is or it is not.
    Unknown,
    /// No replica should say such a thing.
    Unexpected(String),
}

/// Who did a job, and in which term.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Author {
    pub(crate) fence: i64,
    pub(crate) identity: String,
}

/// A line of the ledger.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Record {
    /// The job's.
    pub(crate) id: String,
    pub(crate) author: Author,
    /// When the server committed it, in microseconds by its clock.
    pub(crate) committed: i64,
}

/// What must not be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Violation {
    /// An older term did a job that was asked for when a job of a newer one was known to be done.
    OldTerm { id: usize, fence: i64, newer: usize, newer_fence: i64 },
    /// Two replicas have used one fence.
    SharedFence { fence: i64, identities: [String; 2] },
    /// A job was done, as its client was told, and is not there.
    Lost { id: usize, answered: Author },
    /// It is there, and not as its client was told.
    Different { id: usize, answered: Author, written: Author },
    /// A job is there that was refused.
    Refused { id: usize, written: Author },
    /// A job is there that nobody has asked for, or twice.
    Unasked(Record),
    /// A job of an older term was written, or committed, after one of a newer term.
    FallingFence { earlier: Record, later: Record },
    /// An answer that no replica should give.
    Unexpected { id: usize, answer: String },
}

/// All violations in what was answered, and in what was written, in this order, in one election.
pub(crate) fn judge(calls: &[Call], ledger: &[Record]) -> Vec<Violation> {
    let mut violations = old_terms(calls);
    violations.extend(shared_fences(calls, ledger));
    violations.extend(jobs(calls, ledger));
    violations.extend(falling_fences(ledger.iter()));
    let mut by_commit: Vec<_> = ledger.iter().collect();
    by_commit.sort_by_key(|record| record.committed);
    violations.extend(falling_fences(by_commit.into_iter()));
    violations
}

/// The jobs that are done, as far as their clients know.
pub(crate) fn accepted(calls: &[Call]) -> impl Iterator<Item = (usize, &Call, Stamp, &Author)> {
    calls.iter().enumerate().filter_map(|(id, call)| match &call.answer {
        Some(Answer { received, outcome: Outcome::Accepted(author) }) => {
            Some((id, call, *received, author))
        }
        _ => None,
    })
}

fn old_terms(calls: &[Call]) -> Vec<Violation> {
    let mut by_sending: Vec<_> = accepted(calls).collect();
    let mut by_receipt = by_sending.clone();
    by_sending.sort_by_key(|(_, call, ..)| call.sent);
    by_receipt.sort_by_key(|&(_, _, received, _)| received);
    let mut received = by_receipt.into_iter().peekable();
    let mut highest: Option<(usize, i64)> = None;
    let mut violations = Vec::new();
    for (id, call, _, author) in by_sending {
        while let Some((known, .., theirs)) = received.next_if(|&(_, _, at, _)| at < call.sent) {
            if highest.is_none_or(|(_, fence)| fence < theirs.fence) {
                highest = Some((known, theirs.fence));
            }
        }
        if let Some((newer, newer_fence)) = highest.filter(|&(_, fence)| fence > author.fence) {
            violations.push(Violation::OldTerm { id, fence: author.fence, newer, newer_fence });
        }
    }
    violations
}

fn shared_fences(calls: &[Call], ledger: &[Record]) -> Vec<Violation> {
    let answered = accepted(calls).map(|(.., author)| author);
    let written = ledger.iter().map(|record| &record.author);
    let mut owners = BTreeMap::new();
    let mut violations = Vec::new();
    for Author { fence, identity } in answered.chain(written) {
        let owner = owners.entry(*fence).or_insert(identity);
        if *owner != identity {
            let identities = [owner.clone(), identity.clone()];
            violations.push(Violation::SharedFence { fence: *fence, identities });
        }
    }
    violations
}

/// Each by itself: what its client was told, and what is there.
fn jobs(calls: &[Call], ledger: &[Record]) -> Vec<Violation> {
    let mut violations = Vec::new();
    let mut written = BTreeMap::new();
    for record in ledger {
        let asked = record.id.parse().ok().filter(|&id: &usize| id < calls.len());
        match asked {
            Some(id) if !written.contains_key(&id) => drop(written.insert(id, &record.author)),
            _ => violations.push(Violation::Unasked(record.clone())),
        }
    }
    for (id, call) in calls.iter().enumerate() {
        let Some(answer) = &call.answer else { continue };
        violations.extend(match (&answer.outcome, written.get(&id)) {
            (Outcome::Accepted(answered), None) => {
                Some(Violation::Lost { id, answered: answered.clone() })
            }
            (Outcome::Accepted(answered), Some(&written)) if answered != written => {
                let (answered, written) = (answered.clone(), written.clone());
                Some(Violation::Different { id, answered, written })
            }
            (Outcome::Refused, Some(&written)) => {
                Some(Violation::Refused { id, written: written.clone() })
            }
            (Outcome::Unexpected(answer), _) => {
                Some(Violation::Unexpected { id, answer: answer.clone() })
            }
            _ => None,
        });
    }
    violations
}

fn falling_fences<'a>(ledger: impl Iterator<Item = &'a Record>) -> Vec<Violation> {
    let mut highest: Option<&Record> = None;
    let mut violations = Vec::new();
    for record in ledger {
        match highest {
            Some(earlier) if earlier.author.fence > record.author.fence => {
                let (earlier, later) = (earlier.clone(), record.clone());
                violations.push(Violation::FallingFence { earlier, later });
            }
            _ => highest = Some(record),
        }
    }
    violations
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OldTerm { id, fence, newer, newer_fence } => write!(
                f,
                "job {id} was asked for after job {newer} of fence {newer_fence} was known to be done, and was done \
                 under fence {fence}"
            ),
            Self::SharedFence { fence, identities: [one, other] } => {
                write!(f, "fence {fence} belongs to {one} and to {other}")
            }
            Self::Lost { id, answered } => {
                write!(f, "job {id}, done by {answered}, is not in the ledger")
            }
            Self::Different { id, answered, written } => {
                write!(f, "job {id}, done by {answered}, was written by {written}")
            }
            Self::Refused { id, written } => {
                write!(f, "job {id} was refused, and was written by {written}")
            }
            Self::Unasked(record) => write!(f, "nobody has asked for {record}, or not twice"),
            Self::FallingFence { earlier, later } => {
                write!(f, "{later} was written or committed after {earlier}")
            }
            Self::Unexpected { id, answer } => write!(f, "job {id} was answered with {answer}"),
        }
    }
}

impl fmt::Display for Author {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} under fence {}", self.identity, self.fence)
    }
}

impl fmt::Display for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "job {} of {}", self.id, self.author)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn at(ms: u64) -> Stamp {
        Stamp::from_micros(1_000_000) + Duration::from_millis(ms)
    }

    /// Of the replica that has led under these fences: 10 and 30 are the one's, 20 the other's.
    fn author(fence: i64) -> Author {
        let identity = if fence == 20 { "b" } else { "a" };
        Author { fence, identity: identity.to_owned() }
    }

    fn call(sent: u64, received: u64, outcome: Outcome) -> Call {
        let answer = Answer { received: at(received), outcome };
        Call { replica: 0, sent: at(sent), answer: Some(answer) }
    }

    fn done(fence: i64, sent: u64, received: u64) -> Call {
        call(sent, received, Outcome::Accepted(author(fence)))
    }

    fn record(id: &str, fence: i64) -> Record {
        Record { id: id.to_owned(), author: author(fence), committed: 0 }
    }

    /// A ledger in which everything stands that was done, in the order in which it was asked for.
    fn ledger(calls: &[Call]) -> Vec<Record> {
        accepted(calls)
            .map(|(id, .., author)| Record {
                id: id.to_string(),
                author: author.clone(),
                committed: 0,
            })
            .collect()
    }

    #[test]
    fn terms_that_follow_each_other_are_fine() {
        let calls = [
            done(10, 0, 1),
            done(10, 2, 30),
            call(3, 9, Outcome::Refused),
            Call { replica: 1, sent: at(4), answer: None },
            done(20, 10, 11),
            done(30, 12, 13),
        ];
        assert_eq!(judge(&calls, &ledger(&calls)), []);
        assert_eq!(judge(&[], &[]), []);
    }

    #[test]
    fn an_old_answer_is_fine_if_its_request_was_sent_before_the_new_term_was_known() {
        let calls = [done(10, 10, 60), done(20, 2, 10), done(20, 3, 11)];
        assert_eq!(judge(&calls, &ledger(&calls)), []);
    }

    #[test]
    fn an_old_answer_to_a_request_that_was_sent_later_is_seen() {
        let calls = [done(10, 0, 1), done(10, 11, 12), done(20, 2, 10), done(30, 12, 13)];
        let old = Violation::OldTerm { id: 1, fence: 10, newer: 2, newer_fence: 20 };
        assert_eq!(old_terms(&calls), [old]);
    }

    #[test]
    fn the_highest_fence_counts_and_not_the_latest() {
        let calls = [done(30, 0, 1), done(20, 0, 2), done(20, 3, 4)];
        let old = Violation::OldTerm { id: 2, fence: 20, newer: 0, newer_fence: 30 };
        assert_eq!(old_terms(&calls), [old]);
    }

    #[test]
    fn a_fence_that_two_replicas_use_is_seen_in_answers_and_in_the_ledger() {
        let other = Author { fence: 20, identity: "c".to_owned() };
        let identities = ["b".to_owned(), "c".to_owned()];
        let shared = Violation::SharedFence { fence: 20, identities };
        let answered = [done(20, 0, 1), call(2, 3, Outcome::Accepted(other.clone()))];
        assert_eq!(judge(&answered, &ledger(&answered)), [shared.clone(), shared.clone()]);

        let asked = [done(20, 0, 1), Call { replica: 1, sent: at(2), answer: None }];
        let late = Record { id: "1".to_owned(), author: other, committed: 0 };
        assert_eq!(judge(&asked, &[record("0", 20), late]), [shared]);
    }

    #[test]
    fn what_was_acknowledged_must_be_there_as_it_was_acknowledged() {
        let calls = [done(10, 0, 1), done(20, 2, 3)];
        let lost = Violation::Lost { id: 1, answered: author(20) };
        assert_eq!(judge(&calls, &[record("0", 10)]), [lost]);
        let different = Violation::Different { id: 1, answered: author(20), written: author(30) };
        assert_eq!(judge(&calls, &[record("0", 10), record("1", 30)]), [different]);
    }

    #[test]
    fn what_was_refused_must_not_be_there_and_what_is_unknown_may() {
        let calls = [
            call(0, 1, Outcome::Refused),
            call(2, 3, Outcome::Unknown),
            call(4, 5, Outcome::Unknown),
            Call { replica: 0, sent: at(6), answer: None },
        ];
        assert_eq!(judge(&calls, &[record("1", 10), record("3", 10)]), []);
        let refused = Violation::Refused { id: 0, written: author(10) };
        assert_eq!(judge(&calls, &[record("0", 10)]), [refused]);
    }

    #[test]
    fn what_nobody_asked_for_must_not_be_there_and_nothing_twice() {
        let calls = [done(10, 0, 1)];
        for id in ["0", "1", "-1", "x"] {
            let unasked = Violation::Unasked(record(id, 10));
            assert_eq!(judge(&calls, &[record("0", 10), record(id, 10)]), [unasked]);
        }
    }

    #[test]
    fn a_fence_that_falls_in_the_ledger_is_seen_each_time() {
        let written = ["0", "1", "2", "3"].map(|id| record(id, 10));
        assert_eq!(falling_fences(written.iter()), []);
        let written = [record("0", 10), record("1", 30), record("2", 10), record("3", 20)];
        let falls = |later: &Record| Violation::FallingFence {
            earlier: written[1].clone(),
            later: later.clone(),
        };
        assert_eq!(falling_fences(written.iter()), [falls(&written[2]), falls(&written[3])]);
    }

    #[test]
    fn a_record_that_was_written_in_time_and_committed_late_is_seen() {
        let calls = [(); 3].map(|()| call(0, 9, Outcome::Unknown));
        let committed = |at, record| Record { committed: at, ..record };
        let [a, b, c] = [
            committed(1, record("0", 10)),
            committed(5, record("1", 10)),
            committed(3, record("2", 20)),
        ];
        let late = Violation::FallingFence { earlier: c.clone(), later: b.clone() };
        assert_eq!(judge(&calls, &[a.clone(), b, c.clone()]), [late]);
        let in_time = committed(2, record("1", 10));
        assert_eq!(judge(&calls, &[a, in_time, c]), []);
    }

    #[test]
    fn an_answer_that_no_replica_should_give_is_seen() {
        let calls = [call(0, 1, Outcome::Unexpected("418".to_owned()))];
        let unexpected = Violation::Unexpected { id: 0, answer: "418".to_owned() };
        assert_eq!(judge(&calls, &[]), [unexpected]);
    }
}
