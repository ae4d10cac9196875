//! The lane of one candidate: what befell it, its terms, its calls.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    EDGE, band, calls,
    frame::Frame,
    strip::Strip,
    style::{ON_TERM, SMALL, STRONG, label},
    tooltip,
};
use crate::{
    duration::{exact, show},
    palette::TERMS,
    picture::{self, CallKind, Picture, Term},
    text,
    xml::{Element, Px},
};

const TERM: f64 = 20.0;
const CALLS: f64 = 10.0;
const PADDING: f64 = 5.0;
/// A term is at least so wide.
const NARROWEST: f64 = 1.5;

/// All fences of a picture, by their order.
#[derive(Clone, Debug)]
pub(super) struct Fences(BTreeMap<i64, usize>);

impl Fences {
    pub(super) fn of(picture: &Picture) -> Self {
        let terms = picture.lanes.iter().flat_map(|lane| &lane.terms);
        let fences: BTreeSet<i64> = terms.map(|term| term.fence).collect();
        Self(fences.into_iter().zip(0..).collect())
    }

    fn number(&self, fence: i64) -> usize {
        self.0.get(&fence).copied().unwrap_or_default()
    }
}

/// A lane that has found its place.
#[derive(Clone, Debug)]
pub(super) struct Lane<'p> {
    lane: &'p picture::Lane,
    faults: Strip,
    rows: usize,
    top: f64,
}

impl<'p> Lane<'p> {
    pub(super) fn new(
        lane: &'p picture::Lane,
        faults: Strip,
        kinds: &[CallKind],
        top: f64,
    ) -> Self {
        Self { lane, faults, rows: kinds.len(), top }
    }

    pub(super) fn top(&self) -> f64 {
        self.top
    }

    pub(super) fn bottom(&self) -> f64 {
        self.calls() + self.rows as f64 * CALLS + PADDING
    }

    fn terms(&self) -> f64 {
        self.top + PADDING + self.faults.height()
    }

    fn calls(&self) -> f64 {
        self.terms() + TERM + 3.0
    }

    /// Where the process runs.
    pub(super) fn ground(&self, frame: &Frame) -> Element {
        let alive = self.alive(frame).map(|(from, to)| {
            Element::new("rect")
                .with("class", "alive")
                .with("x", Px(from))
                .with("y", Px(self.top))
                .with("width", Px(to - from))
                .with("height", Px(self.bottom() - self.top))
        });
        Element::new("g").children(alive)
    }

    /// Where it does not: above all bands, for whoever is dead while something is broken is seen to be.
    pub(super) fn asleep(&self, frame: &Frame) -> Element {
        let middle = Px(self.terms() + TERM / 2.0);
        let mut path = String::new();
        let mut from = frame.left;
        for (begun, over) in band::union(self.alive(frame).collect()) {
            if begun > from {
                path.push_str(&format!("M{} {middle}H{}", Px(from), Px(begun)));
            }
            from = over;
        }
        if from < frame.right {
            path.push_str(&format!("M{} {middle}H{}", Px(from), Px(frame.right)));
        }
        Element::new("path").with("class", "asleep").with("d", path)
    }

    fn alive(&self, frame: &Frame) -> impl Iterator<Item = (f64, f64)> {
        let alive = self.lane.alive.iter().filter(|(from, _)| *from <= frame.length);
        alive.map(|(from, to)| {
            let from = frame.x(*from).min(frame.right - NARROWEST);
            (from, frame.x(*to).max(from + NARROWEST))
        })
    }

    pub(super) fn separator(&self, frame: &Frame) -> Element {
        let path = [self.top, self.bottom()]
            .map(|y| format!("M{} {}H{}", Px(EDGE), Px(y), Px(frame.right)))
            .concat();
        Element::new("path").with("class", "line").with("d", path)
    }

    pub(super) fn draw(&self, frame: &Frame, fences: &Fences, kinds: &[CallKind]) -> Element {
        let name = text::fit(&self.lane.name, STRONG.size, frame.names());
        let name = label(STRONG, EDGE, self.terms() + 14.0, &name);
        let terms = self.lane.terms.iter().filter(|term| term.from <= frame.length);
        let mut drawn = Element::new("g")
            .child(name.child(tooltip(&self.lane.name)))
            .child(self.faults.draw(self.top + PADDING - 2.0, frame))
            .children(terms.map(|term| self.term(term, fences.number(term.fence), frame)));
        for (number, kind) in kinds.iter().enumerate() {
            let y = self.calls() + (number as f64 + 0.5) * CALLS;
            let name = label(SMALL, frame.left - 10.0, y + 3.0, &kind.to_string());
            drawn = drawn.child(name.with("text-anchor", "end")).child(calls::draw(
                &self.lane.calls,
                *kind,
                frame,
                y,
            ));
        }
        drawn
    }

    fn term(&self, term: &Term, number: usize, frame: &Frame) -> Element {
        let (from, to) = (frame.x(term.from), frame.x(term.to));
        let width = (to - from).max(NARROWEST);
        let y = self.terms();
        let bar = Element::new("rect")
            .with("class", format!("term-{}", number % TERMS))
            .with("x", Px(from.min(frame.right - NARROWEST)))
            .with("y", Px(y))
            .with("width", Px(width))
            .with("height", TERM)
            .with("rx", Px((width / 4.0).min(3.0)));
        let text = labels(term, number + 1)
            .into_iter()
            .find(|text| text::width(text, ON_TERM.size) + 10.0 <= width)
            .map(|text| label(ON_TERM, from + 5.0, y + 14.0, &text));
        Element::new("g")
            .child(tooltip(&tell(term, number + 1, &self.lane.name)))
            .child(bar)
            .children(text)
    }
}

/// What may stand on a term, the longest first.
fn labels(term: &Term, ordinal: usize) -> Vec<String> {
    let (fence, end) = (short(term.fence), &term.end);
    let number = format!("#{ordinal}");
    let with_fence =
        if fence == ordinal.to_string() { number.clone() } else { format!("{number} · {fence}") };
    let mut labels = vec![with_fence, number];
    if !end.is_empty() {
        labels.insert(0, format!("{} · {end}", labels[0]));
    }
    labels
}

/// A fence counts milliseconds where a store has a clock: its last digits tell it from others.
fn short(fence: i64) -> String {
    let digits = fence.to_string();
    match digits.len() {
        0..=6 => digits,
        length => format!("…{}", &digits[length - 5..]),
    }
}

fn tell(term: &Term, ordinal: usize, lane: &str) -> String {
    let Term { fence, from, to, end } = term;
    let lasts = show(to.saturating_sub(*from));
    let end = if end.is_empty() { String::new() } else { format!("; {end}") };
    format!(
        "term {ordinal} of {lane}, fence {fence}: {} to {}, for {lasts}{end}",
        exact(*from),
        exact(*to)
    )
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_term_says_as_much_as_it_has_room_for() {
        let mut term = Term { fence: 1_764_480_012_345, end: "resigned".into(), ..Term::default() };
        assert_eq!(labels(&term, 3), ["#3 · …12345 · resigned", "#3 · …12345", "#3"]);
        term.fence = 3;
        term.end.clear();
        assert_eq!(labels(&term, 3), ["#3", "#3"]);
    }

    #[test]
    fn terms_one_after_another_have_different_colours_wherever_they_are() {
        let lane = |fences: &[i64]| picture::Lane {
            terms: fences.iter().map(|fence| Term { fence: *fence, ..Term::default() }).collect(),
            ..picture::Lane::default()
        };
        let lanes = vec![lane(&[10, 700, 701]), lane(&[20, 90])];
        let fences = Fences::of(&Picture { lanes, ..Picture::default() });
        let numbers = [10, 20, 90, 700, 701].map(|fence| fences.number(fence));
        assert_eq!(numbers, [0, 1, 2, 3, 4]);
    }

    #[test]
    fn a_tooltip_has_everything() {
        let (from, to) = (Duration::from_millis(1_234), Duration::from_millis(13_734));
        let term = Term { fence: 1_764_480_012_345, from, to, end: "the lease was lost".into() };
        assert_eq!(
            tell(&term, 2, "candidate 1"),
            "term 2 of candidate 1, fence 1764480012345: 1.234 s to 13.734 s, for 12.5 s; the lease was lost"
        );
    }
}
