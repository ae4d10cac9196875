//! Draws a picture: from top to bottom its title, the faults, a lane for each candidate, when nobody led, and a legend.

mod axis;
mod band;
mod calls;
mod frame;
mod lane;
mod legend;
mod strip;
mod style;

#[cfg(test)]
mod tests;

use self::{
    frame::{Frame, WIDTH},
    lane::{Fences, Lane},
    strip::{Bar, Strip},
    style::{MUTED, STRONG, TITLE, label},
};
use crate::{
    duration::{exact, show},
    picture::{CallKind, Fault, Gap, Picture},
    text,
    xml::{Element, Px},
};

/// Around everything.
const EDGE: f64 = 16.0;
/// Rows of faults over all lanes, of those of one lane, and of gaps: more of them have no labels.
const MOST_ROWS: (usize, usize, usize) = (10, 5, 4);

/// A picture that stands by itself.
pub(crate) fn alone(picture: &Picture) -> Element {
    svg(picture, Some(Element::new("style").text(style())))
}

/// A picture in a page that has the [`style`] of pictures.
pub(crate) fn in_page(picture: &Picture) -> Element {
    svg(picture, None)
}

fn svg(picture: &Picture, style: Option<Element>) -> Element {
    let frame = Frame::of(picture);
    let fences = Fences::of(picture);
    let kinds = kinds(picture);

    let (head, y) = head(picture);
    let faults = faults(picture, &frame, None);
    let (faults, y) = side_strip("faults", &faults, &frame, y);
    let (marks, y) = (axis::marks(&frame, y + axis::HEIGHT - 5.0), y + axis::HEIGHT);

    let top = y;
    let mut lanes = Vec::new();
    let mut bottom = top;
    for (number, lane) in picture.lanes.iter().enumerate() {
        let faults = self::faults(picture, &frame, Some(number));
        let lane = Lane::new(lane, faults, &kinds, bottom);
        bottom = lane.bottom();
        lanes.push(lane);
    }

    let mut behind = Element::new("g");
    behind = behind.children(lanes.iter().map(|lane| lane.ground(&frame)));
    behind = behind.child(band::of_gaps(picture, &frame, top, bottom));
    behind = behind.child(band::of_faults(picture, None, &frame, top, bottom));
    for (number, lane) in lanes.iter().enumerate() {
        let (top, bottom) = (lane.top(), lane.bottom());
        behind = behind.child(band::of_faults(picture, Some(number), &frame, top, bottom));
    }
    behind = behind.child(axis::grid(&frame, top, bottom));
    behind = behind.children(lanes.iter().map(|lane| lane.asleep(&frame)));
    behind = behind.child(band::moments(picture, &frame, top, bottom));
    behind = behind.child(band::edges(picture, &frame, top, bottom));
    behind = behind.children(lanes.iter().map(|lane| lane.separator(&frame)));
    let front = lanes.iter().map(|lane| lane.draw(&frame, &fences, &kinds));

    let (gaps, y) = side_strip("no leader", &gaps(picture, &frame), &frame, bottom + 4.0);
    let below = axis::marks(&frame, y + 12.0);
    let (legend, y) = legend::draw(picture, y + 12.0 + EDGE);

    let height = Px(y + EDGE / 2.0);
    let ground = Element::new("rect").with("class", "page").with("width", WIDTH);
    Element::new("svg")
        .with("xmlns", "http://www.w3.org/2000/svg")
        .with("class", "timeline")
        .with("viewBox", format!("0 0 {WIDTH} {height}"))
        .with("width", WIDTH)
        .with("height", height)
        .with("role", "img")
        .with("aria-label", &picture.title)
        .children(style)
        .child(ground.with("height", height))
        .child(head)
        .child(behind)
        .child(faults)
        .child(marks)
        .children(front)
        .child(gaps)
        .child(below)
        .child(legend)
}

/// The style sheet of pictures.
pub(crate) fn style() -> String {
    style::sheet()
}

/// The kinds of calls that anybody has made.
fn kinds(picture: &Picture) -> Vec<CallKind> {
    let was_made = |kind: &CallKind| {
        picture.lanes.iter().any(|lane| lane.calls.iter().any(|call| call.kind == *kind))
    };
    CallKind::ALL.into_iter().filter(was_made).collect()
}

fn head(picture: &Picture) -> (Element, f64) {
    let room = WIDTH - 2.0 * EDGE;
    let mut head = Element::new("g");
    let mut y = EDGE;
    if !picture.title.is_empty() {
        y += TITLE.size;
        let title = text::fit(&picture.title, TITLE.size, room);
        head = head.child(label(TITLE, EDGE, y, &title).child(tooltip(&picture.title)));
        y += 4.0;
    }
    for line in text::wrap(&picture.about, MUTED.size, room) {
        y += MUTED.size + 4.0;
        head = head.child(label(MUTED, EDGE, y, &line));
    }
    (head, y + 10.0)
}

/// A strip with a name beside it, and where it ends; nothing if it is empty.
fn side_strip(name: &str, strip: &Strip, frame: &Frame, y: f64) -> (Element, f64) {
    let mut drawn = Element::new("g");
    if strip.is_empty() {
        return (drawn, y);
    }
    drawn = drawn.child(label(STRONG, EDGE, y + 12.0, name)).child(strip.draw(y, frame));
    (drawn, y + strip.height() + 4.0)
}

/// The faults of one lane, or of all of them.
fn faults(picture: &Picture, frame: &Frame, lane: Option<usize>) -> Strip {
    let (most, of_lane, _) = MOST_ROWS;
    let strikes = |fault: &&Fault| picture.place(fault) == lane && fault.from <= picture.length;
    let bars = picture.faults.iter().filter(strikes).map(|fault| {
        let lasts = fault.to.saturating_sub(fault.from);
        let when = if lasts.is_zero() {
            format!("at {}", exact(fault.from))
        } else {
            format!("{} to {}, for {}", exact(fault.from), exact(fault.to), show(lasts))
        };
        Bar {
            from: frame.x(fault.from),
            to: frame.x(fault.to),
            label: fault.what.clone(),
            class: "fault",
            tooltip: format!("{}: {when}", fault.what),
        }
    });
    let mut bars: Vec<Bar> = bars.collect();
    bars.sort_by(|one, other| one.from.total_cmp(&other.from));
    Strip::pack(bars, frame, if lane.is_none() { most } else { of_lane })
}

/// Those that are too long come first, then the longest ones: they have labels if not all can have some.
fn gaps(picture: &Picture, frame: &Frame) -> Strip {
    let mut gaps: Vec<&Gap> =
        picture.gaps.iter().filter(|gap| gap.from <= picture.length).collect();
    gaps.sort_by_key(|gap| std::cmp::Reverse((gap.is_too_long(), gap.length())));
    let bars = gaps.into_iter().map(|gap| {
        let length = show(gap.length());
        let allowed = gap.allowed.map(show);
        let promise = match &allowed {
            Some(allowed) => format!("at most {allowed} allowed"),
            None => "nothing is promised for it".to_owned(),
        };
        let bounds = format!("{} to {}", exact(gap.from), exact(gap.to));
        Bar {
            from: frame.x(gap.from),
            to: frame.x(gap.to),
            class: if gap.is_too_long() { "bad" } else { "gap" },
            label: match allowed.filter(|_| gap.is_too_long()) {
                Some(allowed) => format!("{length}, allowed {allowed}"),
                None => length.clone(),
            },
            tooltip: format!("nobody led for {length}: {bounds}; {promise}"),
        }
    });
    Strip::pack(bars.collect(), frame, MOST_ROWS.2)
}

fn tooltip(text: &str) -> Element {
    Element::new("title").text(text)
}
