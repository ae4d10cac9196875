//! What the answers of an example show of its candidate.

use std::time::Duration;

use serde::Deserialize;

use crate::{Event, Stamp};

/// What an example has answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// To `GET /leadership`.
    Status(Status),
    /// To `POST /jobs`: it was done.
    Done(Job),
    /// To `POST /jobs`: only the leader does that.
    Refused,
}

/// What it knows of its election. All of it was read between request and answer, one after the other.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub(super) struct Status {
    /// Of its own term.
    fence: Option<i64>,
    remaining_ms: Option<u64>,
    last_error: Option<String>,
}

/// Who did it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub(super) struct Job {
    fence: i64,
}

/// What is known from all answers so far.
#[derive(Debug, Default)]
pub(super) struct Shown {
    /// What the last answer proved.
    term: Option<Proof>,
    error: Option<String>,
}

/// A term was not over.
#[derive(Clone, Copy, Debug)]
struct Proof {
    fence: i64,
    /// At some instant before this one.
    before: Stamp,
    /// It will not be over before this one, if everything keeps its word.
    until: Stamp,
}

impl Shown {
    /// What an answer adds that came at `received` to a request that was sent at `sent`. Answers are heard in the order of
    /// their requests, of which each is sent when the one before is answered or given up. Those that are given up are not
    /// heard at all, and show nothing.
    pub(super) fn hear(&mut self, sent: Stamp, received: Stamp, answer: Answer) -> Vec<Event> {
        let mut events = Vec::new();
        let (fence, until) = match answer {
            Answer::Refused => (None, sent),
            Answer::Done(job) => (Some(job.fence), sent),
            Answer::Status(status) => {
                events.extend(self.goes_wrong(status.last_error));
                // Counted from when it was asked for, so that it is not too late.
                let remaining = Duration::from_millis(status.remaining_ms.unwrap_or_default());
                (status.fence, sent + remaining)
            }
        };
        let earlier = self.term.take().filter(|earlier| Some(earlier.fence) == fence);
        let until = earlier.map_or(until, |earlier| earlier.until.max(until));
        self.term = fence.map(|fence| Proof { fence, before: received, until });
        // A term is unbroken, so it was not over between two instants of which one was before the first answer came, and
        // the other after the second request was sent.
        events.extend(earlier.map(|Proof { fence, before: from, .. }| Event::Live {
            fence,
            from,
            to: sent,
            until,
        }));
        events
    }

    fn goes_wrong(&mut self, error: Option<String>) -> Option<Event> {
        if error == self.error {
            return None;
        }
        self.error.clone_from(&error);
        Some(match error {
            // It does not show whether somebody must do something about it.
            Some(error) => Event::Failed { error, fatal: false },
            None => Event::Recovered,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oracle::{self, Claim, Violation};

    fn at(ms: u64) -> Stamp {
        Stamp::from_micros(1_000_000) + Duration::from_millis(ms)
    }

    fn done(fence: i64) -> Answer {
        Answer::Done(Job { fence })
    }

    fn leads(fence: i64, remaining_ms: u64) -> Answer {
        let remaining_ms = Some(remaining_ms);
        Answer::Status(Status { fence: Some(fence), remaining_ms, last_error: None })
    }

    fn fails(error: Option<&str>) -> Answer {
        let last_error = error.map(str::to_owned);
        Answer::Status(Status { last_error, ..Status::default() })
    }

    /// What all of these show, of which each came from when to when.
    fn shown(answers: impl IntoIterator<Item = (u64, u64, Answer)>) -> Vec<Event> {
        let mut shown = Shown::default();
        let hear = |(sent, received, answer)| shown.hear(at(sent), at(received), answer);
        answers.into_iter().flat_map(hear).collect()
    }

    fn live(fence: i64, from: u64, to: u64, until: u64) -> Event {
        Event::Live { fence, from: at(from), to: at(to), until: at(until) }
    }

    #[test]
    fn a_term_is_claimed_from_one_answer_to_the_next_request() {
        let answers = [(0, 5, done(7)), (10, 12, done(7)), (20, 50, done(7)), (60, 61, done(7))];
        assert_eq!(shown(answers), [live(7, 5, 10, 10), live(7, 12, 20, 20), live(7, 50, 60, 60)]);
    }

    #[test]
    fn one_answer_alone_claims_nothing() {
        assert_eq!(shown([(0, 5, done(7)), (10, 12, Answer::Refused)]), []);
    }

    #[test]
    fn no_claim_reaches_over_another_fence_or_a_refusal() {
        for between in [done(8), leads(8, 100), Answer::Refused, fails(None)] {
            assert_eq!(shown([(0, 5, done(7)), (10, 12, between), (20, 21, done(7))]), []);
        }
        let answers = [(0, 1, done(7)), (2, 3, done(8)), (4, 5, done(8)), (6, 7, done(7))];
        assert_eq!(shown(answers), [live(8, 3, 4, 4)]);
    }

    #[test]
    fn what_is_left_of_a_term_counts_from_the_request_and_lasts_beyond_other_answers() {
        let answers = [
            (0, 5, leads(7, 1_000)),
            (10, 12, done(7)),
            (20, 22, leads(7, 980)),
            (30, 32, leads(7, 2_000)),
            (40, 42, done(7)),
        ];
        assert_eq!(
            shown(answers),
            [
                live(7, 5, 10, 1_000),
                live(7, 12, 20, 1_000),
                live(7, 22, 30, 2_030),
                live(7, 32, 40, 2_030)
            ]
        );
    }

    #[test]
    fn an_error_is_told_when_it_comes_and_when_it_is_another_one_and_when_it_is_gone() {
        let answers = [None, Some("a"), Some("a"), Some("b"), None, None];
        let answers = answers.into_iter().zip(0..).map(|(error, place)| {
            let (sent, received) = (place * 10, place * 10 + 1);
            (sent, received, fails(error))
        });
        let failed = |error: &str| Event::Failed { error: error.to_owned(), fatal: false };
        assert_eq!(shown(answers), [failed("a"), failed("b"), Event::Recovered]);
    }

    /// What the oracle makes of two candidates' answers.
    fn judged(first: Vec<(u64, u64, Answer)>, second: Vec<(u64, u64, Answer)>) -> Vec<Violation> {
        let claims = [first, second].into_iter().enumerate().flat_map(|(participant, answers)| {
            shown(answers).into_iter().filter_map(move |event| match event {
                Event::Live { fence, from, to, .. } => Some(Claim { participant, fence, from, to }),
                _ => None,
            })
        });
        oracle::judge(claims)
    }

    #[test]
    fn terms_that_follow_each_other_are_fine_however_late_answers_come() {
        // It was not over when the first request of each came, and is when the second does, whose answer is held up.
        let first = vec![(0, 5, done(7)), (10, 300, done(7)), (310, 311, Answer::Refused)];
        let second = vec![(1, 40, done(8)), (50, 51, done(8))];
        assert_eq!(judged(first, second), []);
    }

    #[test]
    fn terms_that_overlap_are_seen() {
        let first = vec![(0, 5, done(7)), (10, 12, done(7)), (42, 43, done(7))];
        let second = vec![(20, 30, done(8)), (50, 51, done(8))];
        assert!(matches!(judged(first, second)[..], [Violation::Overlap(..)]));
    }

    #[test]
    fn a_leader_that_was_frozen_and_does_a_job_when_it_wakes_is_seen() {
        // Frozen from 11 on: what was sent at 20, 330 and 640 was given up. It wakes at 700, and its successor led at 500.
        let wakes = |answer| vec![(0, 5, done(7)), (10, 11, done(7)), (650, 702, answer)];
        let successor = || vec![(490, 500, done(8)), (510, 511, done(8))];
        assert!(matches!(judged(wakes(done(7)), successor())[..], [Violation::Overlap(..)]));
        assert_eq!(judged(wakes(Answer::Refused), successor()), []);
        // Of a job that was done before it was frozen, and answered when it wakes, nobody can complain.
        let late = vec![(0, 5, done(7)), (10, 702, done(7)), (710, 711, Answer::Refused)];
        assert_eq!(judged(late, successor()), []);
    }
}
