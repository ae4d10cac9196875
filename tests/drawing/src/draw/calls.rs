//! Calls to the store: a mark where each was answered, of a shape that tells what came of it.

use std::time::Duration;

use super::{frame::Frame, tooltip};
use crate::{
    duration::{exact, show},
    picture::{Call, CallKind, CallOutcome},
    xml::{Element, Px},
};

/// Answers that lie closer together share a mark.
const CLOSE: f64 = 2.0;
/// What takes less is no longer than its mark.
const VISIBLY: f64 = 3.0;

/// One call, or several of a kind with the same outcome that lie within a mark.
#[derive(Clone, Debug)]
struct Mark {
    calls: usize,
    from: Duration,
    first: Duration,
    last: Duration,
    longest: Duration,
}

/// The calls of one kind, in a row around `y`.
pub(super) fn draw(calls: &[Call], kind: CallKind, frame: &Frame, y: f64) -> Element {
    let groups = CallOutcome::ALL.into_iter().filter_map(|outcome| {
        let same = |call: &&Call| {
            call.kind == kind && call.outcome == outcome && call.from <= frame.length
        };
        let marks = merge(calls.iter().filter(same), frame);
        let drawn = marks.iter().map(|mark| mark.draw(kind, outcome, frame, y));
        let group = Element::new("g").with("class", outcome).children(drawn);
        (!marks.is_empty()).then_some(group)
    });
    Element::new("g").children(groups)
}

fn merge<'c>(calls: impl Iterator<Item = &'c Call>, frame: &Frame) -> Vec<Mark> {
    let mut calls: Vec<&Call> = calls.collect();
    calls.sort_by_key(|call| call.to);
    let mut marks: Vec<Mark> = Vec::new();
    for call in calls {
        let took = call.to.saturating_sub(call.from);
        match marks.last_mut() {
            Some(mark) if frame.x(call.to) - frame.x(mark.last) < CLOSE => {
                mark.calls += 1;
                mark.from = mark.from.min(call.from);
                mark.last = call.to;
                mark.longest = mark.longest.max(took);
            }
            _ => marks.push(Mark {
                calls: 1,
                from: call.from,
                first: call.to,
                last: call.to,
                longest: took,
            }),
        }
    }
    marks
}

impl Mark {
    fn draw(&self, kind: CallKind, outcome: CallOutcome, frame: &Frame, y: f64) -> Element {
        let [from, first, last] = [self.from, self.first, self.last].map(|at| frame.x(at));
        let mut path = String::new();
        if first - from >= VISIBLY {
            path = format!("M{} {}H{}", Px(from), Px(y), Px(first));
        }
        path.push_str(&shape(outcome, first, last, y));
        let tooltip = tooltip(&self.tell(kind, outcome));
        Element::new("path").with("d", path).child(tooltip)
    }

    fn tell(&self, kind: CallKind, outcome: CallOutcome) -> String {
        let Self { calls, from, last, longest, .. } = self;
        let (from, last, longest) = (exact(*from), exact(*last), show(*longest));
        match calls {
            1 => format!("{kind}, {outcome}: at {from}, took {longest}"),
            _ => format!(
                "{kind}, {outcome}: {calls} from {from} to {last}, each took at most {longest}"
            ),
        }
    }
}

/// What an outcome looks like, from the first answer to the last one.
pub(super) fn shape(outcome: CallOutcome, first: f64, last: f64, y: f64) -> String {
    let (x, end) = (Px(first), Px(last));
    match outcome {
        // A high stroke.
        CallOutcome::Won if last - first < 1.0 => format!("M{x} {}v7", Px(y - 3.5)),
        CallOutcome::Won => format!("M{x} {0}v7H{end}v-7z", Px(y - 3.5)),
        // A low one.
        CallOutcome::Seen if last - first < 1.0 => format!("M{x} {}v4", Px(y - 2.0)),
        CallOutcome::Seen => format!("M{x} {}v4H{end}v-4z", Px(y - 2.0)),
        // A triangle.
        CallOutcome::Lost => {
            format!(
                "M{} {}h5L{end} {}L{x} {}z",
                Px(first - 2.5),
                Px(y - 2.5),
                Px(y + 2.5),
                Px(y + 2.5)
            )
        }
        // A cross, on a line.
        CallOutcome::Failed => {
            let (up, down) = (Px(y - 2.8), Px(y + 2.8));
            let (left, right) = (Px(last - 2.8), Px(last + 2.8));
            format!("M{x} {0}H{end}M{left} {up}L{right} {down}M{left} {down}L{right} {up}", Px(y))
        }
        // A box.
        CallOutcome::Dropped => {
            format!("M{} {}H{}v5H{0}z", Px(first - 2.5), Px(y - 2.5), Px(last + 2.5))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FRAME: Frame = Frame { left: 0.0, right: 1000.0, length: Duration::from_secs(1000) };

    fn call(at: u64, outcome: CallOutcome) -> Call {
        let from = Duration::from_millis(at);
        Call { kind: CallKind::Renew, from, to: from + Duration::from_millis(5), outcome }
    }

    #[test]
    fn what_lies_within_a_mark_is_one() {
        let calls = [1_000, 2_000, 2_500, 9_000, 9_001].map(|at| call(at, CallOutcome::Won));
        let marks = merge(calls.iter(), &FRAME);
        assert_eq!(marks.iter().map(|mark| mark.calls).collect::<Vec<_>>(), [3, 2]);
        let told = marks[0].tell(CallKind::Renew, CallOutcome::Won);
        assert_eq!(told, "renew, won: 3 from 1.000 s to 2.505 s, each took at most 5 ms");
        let one = merge(calls[..1].iter(), &FRAME);
        assert_eq!(
            one[0].tell(CallKind::Renew, CallOutcome::Won),
            "renew, won: at 1.000 s, took 5 ms"
        );
    }

    #[test]
    fn no_call_is_left_out_and_no_outcome_hides_another() {
        let calls: Vec<Call> = (0..10_000)
            .map(|number| call(number * 100, CallOutcome::ALL[number as usize % 5]))
            .collect();
        let all: usize = CallOutcome::ALL
            .iter()
            .flat_map(|outcome| merge(calls.iter().filter(|c| c.outcome == *outcome), &FRAME))
            .map(|mark| mark.calls)
            .sum();
        assert_eq!(all, calls.len());
        let drawn = draw(&calls, CallKind::Renew, &FRAME, 10.0).to_string();
        for outcome in CallOutcome::ALL {
            assert!(drawn.contains(&format!("class=\"{outcome}\"")), "{outcome} is missing");
        }
    }

    #[test]
    fn a_hundred_thousand_calls_make_no_larger_picture_than_there_is_room_for() {
        let calls: Vec<Call> =
            (0..100_000).map(|number| call(number * 10, CallOutcome::Seen)).collect();
        let dense = draw(&calls, CallKind::Renew, &FRAME, 10.0).to_string();
        assert!(dense.len() < 1_000, "{}", dense.len());
        let calls: Vec<Call> = (0..100_000)
            .map(|number| call(number * 2_100 % 1_000_000, CallOutcome::Seen))
            .collect();
        let sparse = draw(&calls, CallKind::Renew, &FRAME, 10.0).to_string();
        assert!(sparse.len() < 100_000, "{}", sparse.len());
    }

    #[test]
    fn a_call_that_takes_long_has_a_line_from_where_it_was_made() {
        let mut long = call(1_000, CallOutcome::Failed);
        long.to = Duration::from_secs(31);
        let drawn = draw(&[long], CallKind::Renew, &FRAME, 10.0).to_string();
        assert!(drawn.contains("M1 10H31"), "{drawn}");
    }
}
