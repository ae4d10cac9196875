//! Decides whether answers contradict the election's promises. It sees what clients see, and nothing else.

use std::{collections::BTreeMap, time::Duration};

use serde::Serialize;

use crate::replica::Answer;

/// Judges every 200 from a leader-only route, in the order in which they were received.
#[derive(Debug, Default)]
pub(super) struct Oracle {
    /// The highest fence so far, each time it rose.
    rises: Vec<Rise>,
    /// Whose term each fence belongs to.
    terms: BTreeMap<i64, Owner>,
    violations: Vec<Violation>,
}

#[derive(Debug)]
struct Rise {
    fence: i64,
    received: Duration,
}

/// One process and the candidate in it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Owner {
    /// The process.
    pub replica: usize,
    /// Its candidate.
    pub identity: String,
}

/// Two answers that cannot both be right.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, thiserror::Error)]
#[serde(rename_all = "snake_case", tag = "violation")]
#[non_exhaustive]
pub enum Violation {
    /// An old term answered to a request that was sent when a newer one was known.
    #[error(
        "replica {replica} answered with fence {fence} to a request sent at {sent:?}, after fence {newer} was received at \
         {received:?}"
    )]
    OldTerm {
        /// Who answered.
        replica: usize,
        /// The lower fence.
        fence: i64,
        /// When its request was sent.
        sent: Duration,
        /// The higher fence.
        newer: i64,
        /// When the answer with it was received.
        received: Duration,
    },
    /// One fence was used twice.
    #[error("fence {fence} belongs to replica {} and to replica {}", first.replica, second.replica)]
    SharedFence {
        /// The fence.
        fence: i64,
        /// Who answered with it first.
        first: Owner,
        /// Who answered with it, too.
        second: Owner,
    },
}

impl Oracle {
    /// An answer that was just received. Times are of one clock, and `received` never falls from call to call.
    pub(super) fn served(
        &mut self,
        replica: usize,
        answer: &Answer,
        sent: Duration,
        received: Duration,
    ) {
        let known = self.rises.iter().rfind(|rise| rise.received < sent);
        if let Some(newer) = known.filter(|known| known.fence > answer.fence) {
            self.violations.push(Violation::OldTerm {
                replica,
                fence: answer.fence,
                sent,
                newer: newer.fence,
                received: newer.received,
            });
        }
        if self.rises.last().is_none_or(|highest| highest.fence < answer.fence) {
            self.rises.push(Rise { fence: answer.fence, received });
        }

        let owner = Owner { replica, identity: answer.identity.clone() };
        let first = self.terms.entry(answer.fence).or_insert_with(|| owner.clone());
        if *first != owner {
            let first = first.clone();
            self.violations.push(Violation::SharedFence {
                fence: answer.fence,
                first,
                second: owner,
            });
        }
    }

    /// Every fence that was seen, and whose term it belongs to.
    pub(super) fn terms(&self) -> &BTreeMap<i64, Owner> {
        &self.terms
    }

    pub(super) fn violations(&self) -> &[Violation] {
        &self.violations
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    fn answer(identity: &str, fence: i64) -> Answer {
        Answer { identity: identity.to_owned(), fence }
    }

    #[test]
    fn terms_that_follow_each_other_are_fine() {
        let mut oracle = Oracle::default();
        oracle.served(1, &answer("a", 7), ms(0), ms(1));
        oracle.served(1, &answer("a", 7), ms(2), ms(3));
        oracle.served(2, &answer("b", 9), ms(4), ms(5));
        oracle.served(1, &answer("a", 12), ms(6), ms(7));
        assert_eq!(oracle.violations(), []);
        assert_eq!(oracle.terms().len(), 3);
    }

    #[test]
    fn an_old_answer_is_fine_if_its_request_was_sent_before_the_new_term_was_known() {
        let mut oracle = Oracle::default();
        oracle.served(2, &answer("b", 9), ms(2), ms(10));
        oracle.served(1, &answer("a", 7), ms(3), ms(20));
        oracle.served(1, &answer("a", 7), ms(10), ms(21));
        assert_eq!(oracle.violations(), []);
    }

    #[test]
    fn an_old_answer_to_a_new_request_is_a_violation() {
        let mut oracle = Oracle::default();
        oracle.served(2, &answer("b", 9), ms(2), ms(10));
        oracle.served(3, &answer("c", 10), ms(11), ms(30));
        oracle.served(1, &answer("a", 7), ms(11), ms(31));
        let stale =
            Violation::OldTerm { replica: 1, fence: 7, sent: ms(11), newer: 9, received: ms(10) };
        assert_eq!(oracle.violations(), [stale]);
    }

    #[test]
    fn a_fence_of_two_candidates_is_a_violation() {
        let mut oracle = Oracle::default();
        oracle.served(1, &answer("a", 7), ms(0), ms(1));
        oracle.served(2, &answer("b", 7), ms(2), ms(3));
        let [Violation::SharedFence { fence: 7, first, second }] = oracle.violations() else {
            panic!("{:?}", oracle.violations())
        };
        assert_eq!((first.replica, second.replica), (1, 2));
    }
}
