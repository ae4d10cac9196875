//! Reads pictures back: whatever is drawn, every text can be read.

use std::time::Duration;

use roxmltree::{Document, Node};

use crate::{
    picture::{Call, CallKind, CallOutcome, Fault, Gap, Lane, Picture, Term},
    text,
};

/// Numbers by chance, always the same ones.
struct Chance(u64);

impl Chance {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963);
        (self.0 >> 33) % limit
    }

    fn millis(&mut self, limit: u64) -> Duration {
        Duration::from_millis(self.below(limit))
    }

    fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len() as u64) as usize]
    }
}

/// A picture with much in it.
fn crowded(seed: u64) -> Picture {
    let mut chance = Chance(seed);
    let length = Duration::from_millis(1 + chance.below(700_000));
    let whole = length.as_millis() as u64;
    let names = ["a", "candidate 1", "ein Kandidat mit einem sehr langen Namen", "<&\"'>", "選挙"];
    let faults = ["paused", "the path of the leader swallows all answers", "reset & <cut>", "断"];
    let mut picture = Picture {
        title: "Everything at once, ".repeat(chance.below(12) as usize),
        about: "what was tried and what came of it ".repeat(chance.below(20) as usize),
        length,
        ..Picture::default()
    };
    for _ in 0..chance.below(8) {
        let mut lane = Lane { name: (*chance.pick(&names)).to_owned(), ..Lane::default() };
        for _ in 0..chance.below(30) {
            let from = chance.millis(whole + 10);
            let to = from + chance.millis(whole / 5 + 1);
            let fence = 1_764_480_000_000 + chance.below(1_000_000) as i64;
            lane.terms.push(Term { fence, from, to, end: "resigned".to_owned() });
        }
        // Of one candidate they come one after another.
        lane.terms.sort_by_key(|term| term.from);
        for number in 1..lane.terms.len() {
            let next = lane.terms[number].from;
            lane.terms[number - 1].to = lane.terms[number - 1].to.min(next);
        }
        for _ in 0..chance.below(600) {
            let from = chance.millis(whole + 10);
            let to = from + chance.millis(3_000);
            let kind = *chance.pick(&CallKind::ALL);
            let outcome = *chance.pick(&CallOutcome::ALL);
            lane.calls.push(Call { kind, from, to, outcome });
        }
        lane.alive.push((chance.millis(whole), length * 2));
        picture.lanes.push(lane);
    }
    for _ in 0..chance.below(60) {
        let from = chance.millis(whole + 10);
        let lane = [None, Some(chance.below(9) as usize)][chance.below(2) as usize];
        let what = (*chance.pick(&faults)).to_owned();
        picture.faults.push(Fault { what, lane, from, to: from + chance.millis(whole / 3 + 1) });
    }
    for _ in 0..chance.below(40) {
        let from = chance.millis(whole + 10);
        let allowed = [None, Some(chance.millis(10_000))][chance.below(2) as usize];
        picture.gaps.push(Gap { from, to: from + chance.millis(whole / 9 + 1), allowed });
    }
    picture
}

/// A text, and what it takes.
#[derive(Debug)]
struct Rectangle {
    text: String,
    left: f64,
    right: f64,
    top: f64,
    bottom: f64,
}

fn number(node: &Node<'_, '_>, name: &str) -> f64 {
    node.attribute(name).unwrap().parse().unwrap()
}

fn rectangles(svg: &Document<'_>) -> Vec<Rectangle> {
    let texts = svg.descendants().filter(|node| node.tag_name().name() == "text");
    let rectangle = |node: Node<'_, '_>| {
        let text = node.text().unwrap_or_default().to_owned();
        let (x, y, size) = (number(&node, "x"), number(&node, "y"), number(&node, "font-size"));
        let width = text::width(&text, size);
        let left = match node.attribute("text-anchor") {
            Some("middle") => x - width / 2.0,
            Some("end") => x - width,
            _ => x,
        };
        let (top, bottom) = (y - 0.8 * size, y + 0.2 * size);
        Rectangle { text, left, right: left + width, top, bottom }
    };
    texts.map(rectangle).collect()
}

#[test]
fn in_whatever_picture_no_text_is_cut_and_none_meets_another() {
    let mut read = 0;
    for seed in 0..50 {
        let drawn = crowded(seed).to_svg();
        let svg = Document::parse(&drawn).unwrap();
        let view: Vec<f64> = svg
            .root_element()
            .attribute("viewBox")
            .unwrap()
            .split(' ')
            .map(|part| part.parse().unwrap())
            .collect();
        let texts = rectangles(&svg);
        read += texts.len();
        for (at, one) in texts.iter().enumerate() {
            let is_inside = one.left >= 0.0 && one.right <= view[2] && one.bottom <= view[3];
            assert!(is_inside && one.top >= 0.0, "picture {seed}: {one:?} is cut");
            for other in &texts[..at] {
                let apart = one.right <= other.left
                    || other.right <= one.left
                    || one.bottom <= other.top
                    || other.bottom <= one.top;
                assert!(apart, "picture {seed}: {one:?} meets {other:?}");
            }
        }
    }
    assert!(read > 2_000, "only {read} texts");
}

#[test]
fn no_shape_lies_outside_of_the_picture() {
    for seed in 0..50 {
        let picture = crowded(seed);
        let drawn = picture.to_svg();
        let svg = Document::parse(&drawn).unwrap();
        let height = number(&svg.root_element(), "height");
        for node in svg.descendants().filter(|node| node.tag_name().name() == "rect") {
            let or_zero = |name| node.attribute(name).map_or(0.0, |n: &str| n.parse().unwrap());
            let (right, bottom): (f64, f64) =
                (or_zero("x") + or_zero("width"), or_zero("y") + or_zero("height"));
            assert!(or_zero("width") >= 0.0 && right <= 1_200.0, "picture {seed}: {node:?}");
            assert!(bottom <= height, "picture {seed}: {node:?}");
        }
    }
}

#[test]
fn a_picture_tells_everything_in_tooltips_and_needs_no_script() {
    let term = Term {
        fence: 1_764_480_012_345,
        from: Duration::from_secs(1),
        to: Duration::from_secs(2),
        end: "lost".to_owned(),
    };
    let name = "a name that is far too long for the room beside a lane";
    let fault = "a fault with a name that is far too long for any label in any picture at all";
    let picture = Picture {
        title: "title".to_owned(),
        length: Duration::from_secs(1_000),
        lanes: vec![Lane { name: name.to_owned(), terms: vec![term], ..Lane::default() }],
        faults: vec![Fault { what: fault.to_owned(), ..Fault::default() }],
        gaps: vec![Gap {
            allowed: Some(Duration::ZERO),
            to: Duration::from_secs(1),
            ..Gap::default()
        }],
        ..Picture::default()
    };
    let drawn = picture.to_svg();
    let svg = Document::parse(&drawn).unwrap();
    let tooltips: Vec<&str> = svg
        .descendants()
        .filter(|node| node.tag_name().name() == "title")
        .filter_map(|node| node.text())
        .collect();
    for told in [name, fault, "fence 1764480012345", "lost", "nobody led for 1 s"] {
        assert!(tooltips.iter().any(|text| text.contains(told)), "{told}: {tooltips:#?}");
    }
    let texts = rectangles(&svg);
    let is_cut = |whole: &str| {
        texts
            .iter()
            .any(|t| t.text.ends_with('…') && whole.starts_with(t.text.trim_end_matches('…')))
    };
    assert!(is_cut(name) && is_cut(fault), "{texts:#?}");
    assert!(texts.iter().any(|t| t.text == "1 s, allowed 0 s"), "{texts:#?}");
    assert!(drawn.contains("prefers-color-scheme:dark") && !drawn.contains("<script"));
}

#[test]
fn who_is_dead_while_something_is_broken_is_seen_to_be() {
    let seconds = Duration::from_secs;
    let alive = vec![(seconds(0), seconds(3)), (seconds(6), seconds(20))];
    let fault = Fault { from: seconds(2), to: seconds(8), ..Fault::default() };
    let picture = Picture {
        length: seconds(10),
        lanes: vec![Lane { alive, ..Lane::default() }],
        faults: vec![fault],
        ..Picture::default()
    };
    let drawn = picture.to_svg();
    let svg = Document::parse(&drawn).unwrap();
    let place = |class: &str| {
        svg.descendants().position(|node| node.attribute("class") == Some(class)).unwrap()
    };
    assert!(place("fault-band") < place("asleep"), "the band lies over it");
    let path = svg.descendants().nth(place("asleep")).unwrap().attribute("d").unwrap();
    assert_eq!(path.matches('M').count(), 1, "{path}: from 3 to 6 s, and at no other time");
}

#[test]
fn a_fault_of_a_lane_that_is_not_there_strikes_all_of_them() {
    let fault = Fault { what: "somewhere".to_owned(), lane: Some(7), ..Fault::default() };
    let picture = Picture { faults: vec![fault], ..Picture::default() };
    assert!(picture.to_svg().contains("somewhere"));
}

#[test]
fn an_empty_picture_is_a_picture() {
    let drawn = Picture::default().to_svg();
    assert!(Document::parse(&drawn).is_ok(), "{drawn}");
}
