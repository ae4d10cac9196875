//! What to make of a play: terms, the times without one, and whether all that is as it should be.

use std::time::Duration;

use tenure_tests::{Stamp, oracle};

use crate::stage::{Allowed, BUSY, Fault, Play};

/// How a play went.
#[derive(Debug)]
pub(crate) struct Verdict {
    /// In the order of their fences.
    pub(crate) terms: Vec<oracle::Claim>,
    pub(crate) gaps: Vec<Gap>,
    /// How long a gap may be.
    pub(crate) allowed: Duration,
    /// What is not as it should be.
    pub(crate) problems: Vec<String>,
}

/// A time in which nobody led, after somebody had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Gap {
    pub(crate) from: Stamp,
    pub(crate) to: Stamp,
}

impl Gap {
    pub(crate) fn length(self) -> Duration {
        self.to - self.from
    }
}

impl Verdict {
    pub(crate) fn of(play: &Play) -> Self {
        let claims = play.fleet.timeline().claims();
        let mut problems = play.problems.clone();
        problems.extend(oracle::judge(claims.iter().copied()).iter().map(ToString::to_string));
        let (terms, gaps) = match &play.view {
            Some(view) => (view.terms.clone(), view.gaps.clone()),
            None => {
                let terms: Vec<_> = oracle::terms(claims).into_values().collect();
                let gaps = gaps(&terms);
                (terms, gaps)
            }
        };
        let allowed = allowed(play.allowed, &play.faults, play.ended);
        for gap in gaps.iter().filter(|gap| gap.length() > allowed + BUSY) {
            let length = gap.length();
            problems.push(format!("nobody led for {length:.1?}, of at most {allowed:.1?}"));
        }
        Self { terms, gaps, allowed, problems }
    }

    pub(crate) fn longest_gap(&self) -> Duration {
        self.gaps.iter().map(|gap| gap.length()).max().unwrap_or_default()
    }
}

fn gaps(terms: &[oracle::Claim]) -> Vec<Gap> {
    let mut terms = terms.to_vec();
    terms.sort_by_key(|term| term.from);
    let Some(first) = terms.first() else { return Vec::new() };
    let mut led_until = first.to;
    let mut gaps = Vec::new();
    for term in &terms[1..] {
        if term.from > led_until {
            gaps.push(Gap { from: led_until, to: term.from });
        }
        led_until = led_until.max(term.to);
    }
    gaps
}

fn allowed(allowed: Allowed, faults: &[Fault], ended: Stamp) -> Duration {
    let reaches_all = |fault: &&Fault| fault.on.is_none();
    let lengths = faults.iter().filter(reaches_all);
    let longest = lengths.map(|fault| fault.to.unwrap_or(ended) - fault.from).max();
    allowed.gap + longest.filter(|_| allowed.outage).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Stamp {
        Stamp::from_micros(1_000_000) + Duration::from_millis(ms)
    }

    fn claim(participant: usize, fence: i64, from: u64, to: u64) -> oracle::Claim {
        oracle::Claim { participant, fence, from: at(from), to: at(to) }
    }

    #[test]
    fn a_gap_is_where_no_term_is() {
        let terms = oracle::terms([
            claim(0, 10, 0, 1),
            claim(0, 10, 5, 9),
            claim(1, 12, 20, 30),
            claim(0, 13, 25, 28),
            claim(1, 14, 30, 31),
            claim(1, 15, 40, 41),
        ]);
        let terms: Vec<_> = terms.into_values().collect();
        let gap = |from, to| Gap { from: at(from), to: at(to) };
        assert_eq!(gaps(&terms), [gap(9, 20), gap(31, 40)]);
        assert_eq!(gaps(&[]), []);
    }

    #[test]
    fn an_outage_is_allowed_for_as_long_as_it_lasts_if_it_reaches_everybody() {
        let fault = |on, from, to: Option<u64>| Fault {
            what: "a fault".to_owned(),
            on,
            from: at(from),
            to: to.map(at),
        };
        let faults = [fault(None, 0, Some(10)), fault(None, 80, None), fault(Some(1), 0, Some(90))];
        let gap = Duration::from_millis(5);
        let outage = Allowed { gap, outage: true };
        assert_eq!(allowed(outage, &faults, at(100)), Duration::from_millis(25));
        assert_eq!(allowed(Allowed { gap, outage: false }, &faults, at(100)), gap);
    }
}
