//! What colours and shapes mean: those that are in the picture.

use super::{
    EDGE, calls,
    frame::WIDTH,
    style::{MUTED, Style, label},
};
use crate::{
    palette::TERMS,
    picture::{CallOutcome, Picture},
    text,
    xml::{Element, Px},
};

const ITEM: Style = Style { size: 11.0, ..MUTED };
const ROW: f64 = 18.0;
const SAMPLE: f64 = 22.0;

/// Something that is explained: how it looks at a place, and what it is.
struct Item {
    sample: Box<dyn Fn(f64, f64) -> Element>,
    what: String,
}

/// The legend, and where it ends.
pub(super) fn draw(picture: &Picture, top: f64) -> (Element, f64) {
    let mut drawn = Element::new("g");
    let (mut x, mut y) = (EDGE, top);
    for item in items(picture) {
        let width = SAMPLE + 6.0 + text::width(&item.what, ITEM.size) + 14.0;
        if x + width > WIDTH - EDGE && x > EDGE {
            (x, y) = (EDGE, y + ROW);
        }
        drawn = drawn.child((item.sample)(x, y + ROW / 2.0)).child(label(
            ITEM,
            x + SAMPLE + 6.0,
            y + ROW / 2.0 + 4.0,
            &item.what,
        ));
        x += width;
    }
    (drawn, y + ROW)
}

fn items(picture: &Picture) -> Vec<Item> {
    let lanes = &picture.lanes;
    let mut items = Vec::new();
    let mut item = |is_there: bool, what: &str, sample: Box<dyn Fn(f64, f64) -> Element>| {
        if is_there {
            items.push(Item { sample, what: what.to_owned() });
        }
    };
    let has_terms = lanes.iter().any(|lane| !lane.terms.is_empty());
    item(
        has_terms,
        "term: its number by fence, the end of its fence, why it ended",
        Box::new(terms),
    );
    let runs = lanes.iter().any(|lane| !lane.alive.is_empty());
    item(runs, "process runs", boxed("alive"));
    item(!lanes.is_empty(), "does not run", Box::new(asleep));
    item(!picture.faults.is_empty(), "fault", Box::new(fault));
    item(!picture.gaps.is_empty(), "nobody led", bar("gap"));
    let is_bad = picture.gaps.iter().any(|gap| gap.is_too_long());
    item(is_bad, "nobody led for longer than is allowed", bar("bad"));
    for outcome in CallOutcome::ALL {
        let mut calls = lanes.iter().flat_map(|lane| &lane.calls);
        let came = calls.any(|call| call.outcome == outcome);
        item(came, &format!("call: {outcome}"), Box::new(move |x, y| mark(outcome, x, y)));
    }
    items
}

fn terms(x: f64, y: f64) -> Element {
    let width = SAMPLE / TERMS as f64;
    let one = |number: usize| {
        Element::new("rect")
            .with("class", format!("term-{number}"))
            .with("x", Px(x + number as f64 * width))
            .with("y", Px(y - 5.0))
            .with("width", Px(width))
            .with("height", 10)
    };
    Element::new("g").children((0..TERMS).map(one))
}

fn boxed(class: &'static str) -> Box<dyn Fn(f64, f64) -> Element> {
    Box::new(move |x, y| rect(class, x, y - 5.0, 10.0))
}

fn bar(class: &'static str) -> Box<dyn Fn(f64, f64) -> Element> {
    Box::new(move |x, y| rect(class, x, y - 1.5, 3.0))
}

fn asleep(x: f64, y: f64) -> Element {
    Element::new("path").with("class", "asleep").with("d", format!("M{} {}h{SAMPLE}", Px(x), Px(y)))
}

fn fault(x: f64, y: f64) -> Element {
    let band = rect("fault-band", x, y - 5.0, 12.0);
    Element::new("g").child(band).child(rect("fault", x, y - 7.0, 3.0))
}

fn mark(outcome: CallOutcome, x: f64, y: f64) -> Element {
    let (from, to) = (x + 4.0, x + SAMPLE - 6.0);
    let path = format!("M{} {}H{}{}", Px(from), Px(y), Px(to), calls::shape(outcome, to, to, y));
    Element::new("path").with("class", outcome).with("d", path)
}

fn rect(class: &'static str, x: f64, y: f64, height: f64) -> Element {
    Element::new("rect")
        .with("class", class)
        .with("x", Px(x))
        .with("y", Px(y))
        .with("width", SAMPLE)
        .with("height", Px(height))
}
