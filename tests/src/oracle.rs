//! Judges what participants have claimed, by the rules alone: it knows nothing about how an election works.
//!
//! Whenever a participant finds its term not over, or does work under it, it claims that instant for the term's fence. A
//! term is unbroken, so it claims everything between its first instant and its last. Then the rules S1 and S5 are one: put
//! in the order of their fences, terms follow each other in time, and each belongs to one participant.

use std::{collections::BTreeMap, fmt};

use crate::Stamp;

/// One participant's claim that the term of this fence was not over from one instant to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_structs)]
pub struct Claim {
    /// Who claims it.
    pub participant: usize,
    /// Under which fence.
    pub fence: i64,
    /// From here on.
    pub from: Stamp,
    /// Until here, at least.
    pub to: Stamp,
}

/// What contradicts the rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums)]
pub enum Violation {
    /// Two participants have used one fence.
    SharedFence(Claim, Claim),
    /// The term of the higher fence, which comes second, began before that of the lower one was over.
    Overlap(Claim, Claim),
    /// The term of the higher fence, which comes second, was over before that of the lower one began.
    FallingFence(Claim, Claim),
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (what, lower, higher) = match self {
            Self::SharedFence(one, other) => ("one fence, two owners", one, other),
            Self::Overlap(lower, higher) => ("two terms at once", lower, higher),
            Self::FallingFence(lower, higher) => ("a fence fell", lower, higher),
        };
        write!(f, "{what}: {lower}; {higher}")
    }
}

impl fmt::Display for Claim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { participant, fence, from, to } = self;
        write!(f, "participant {participant} claims {from} to {to} under fence {fence}")
    }
}

/// What was claimed for each fence, all together, by the fence. One that several have used is its first claimant's.
#[must_use]
pub fn terms(claims: impl IntoIterator<Item = Claim>) -> BTreeMap<i64, Claim> {
    let mut terms = BTreeMap::new();
    for claim in claims {
        add(&mut terms, claim);
    }
    terms
}

/// Adds what was claimed to its term, and returns that.
fn add(terms: &mut BTreeMap<i64, Claim>, claim: Claim) -> Claim {
    let term = terms.entry(claim.fence).or_insert(claim);
    if term.participant == claim.participant {
        term.from = term.from.min(claim.from);
        term.to = term.to.max(claim.to);
    }
    *term
}

/// All violations in what was claimed, in any order, about one election.
#[must_use]
pub fn judge(claims: impl IntoIterator<Item = Claim>) -> Vec<Violation> {
    let mut violations = Vec::new();
    let mut terms = BTreeMap::new();
    for claim in claims {
        let term = add(&mut terms, claim);
        if term.participant != claim.participant {
            violations.push(Violation::SharedFence(term, claim));
        }
    }
    // A term may outlast several of its successors, so the latest end so far counts, not only that of the neighbour.
    let mut latest: Option<Claim> = None;
    for term in terms.into_values() {
        if let Some(lower) = latest.filter(|lower| lower.to >= term.from) {
            violations.push(if term.to < lower.from {
                Violation::FallingFence(lower, term)
            } else {
                Violation::Overlap(lower, term)
            });
        }
        latest = Some(latest.filter(|lower| lower.to > term.to).unwrap_or(term));
    }
    violations
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn claim(participant: usize, fence: i64, from: u64, to: u64) -> Claim {
        let origin = serde_json::from_str::<Stamp>("0").unwrap();
        let at = |ms| origin + Duration::from_millis(ms);
        Claim { participant, fence, from: at(from), to: at(to) }
    }

    #[test]
    fn terms_that_follow_each_other_are_fine() {
        let claims = [
            claim(0, 10, 0, 1),
            claim(0, 10, 5, 9),
            claim(1, 12, 10, 10),
            claim(1, 12, 11, 30),
            claim(0, 13, 31, 40),
        ];
        assert_eq!(judge(claims), []);
        assert_eq!(judge([]), []);
    }

    #[test]
    fn work_after_the_successor_has_begun_is_seen() {
        let claims = [claim(0, 10, 0, 1), claim(1, 12, 10, 20), claim(0, 10, 15, 15)];
        assert_eq!(judge(claims), [Violation::Overlap(claim(0, 10, 0, 15), claim(1, 12, 10, 20))]);
    }

    #[test]
    fn work_between_two_pieces_of_the_successors_work_is_seen() {
        let claims = [claim(0, 10, 5, 5), claim(1, 12, 0, 1), claim(1, 12, 8, 9)];
        assert!(matches!(judge(claims)[..], [Violation::Overlap(..)]));
    }

    #[test]
    fn one_participant_may_not_have_two_terms_at_once_either() {
        let claims = [claim(0, 10, 0, 10), claim(0, 12, 10, 20)];
        assert!(matches!(judge(claims)[..], [Violation::Overlap(..)]));
    }

    #[test]
    fn a_lower_fence_after_a_higher_one_is_seen() {
        let claims = [claim(0, 12, 0, 10), claim(1, 10, 20, 30)];
        assert_eq!(
            judge(claims),
            [Violation::FallingFence(claim(1, 10, 20, 30), claim(0, 12, 0, 10))]
        );
    }

    #[test]
    fn a_fence_that_was_used_twice_is_seen() {
        let claims = [claim(0, 10, 0, 10), claim(1, 10, 20, 30)];
        assert_eq!(
            judge(claims),
            [Violation::SharedFence(claim(0, 10, 0, 10), claim(1, 10, 20, 30))]
        );
    }

    #[test]
    fn a_term_that_outlasts_several_successors_is_seen_each_time() {
        let claims = [claim(0, 10, 0, 100), claim(1, 11, 10, 20), claim(2, 12, 30, 40)];
        assert!(matches!(judge(claims)[..], [Violation::Overlap(..), Violation::Overlap(..)]));
    }
}
