//! The axis of time.

use super::{
    frame::Frame,
    style::{MUTED, Style, label},
};
use crate::{
    duration::ticks,
    text,
    xml::{Element, Px},
};

pub(super) const HEIGHT: f64 = 20.0;
const MARK: Style = Style { size: 11.0, ..MUTED };
const MOST: u32 = 12;

/// What is written along the axis.
pub(super) fn marks(frame: &Frame, y: f64) -> Element {
    let mut drawn = Element::new("g");
    for (at, mark) in ticks(frame.length, MOST) {
        let width = text::width(&mark, MARK.size);
        let middle = frame.x(at);
        // The last one may not reach beyond the picture.
        let x = (middle - width / 2.0).min(frame.right + 8.0 - width);
        let mark = label(MARK, x + width / 2.0, y, &mark).with("text-anchor", "middle");
        drawn = drawn.child(mark);
    }
    drawn
}

/// Lines through all lanes.
pub(super) fn grid(frame: &Frame, top: f64, bottom: f64) -> Element {
    let lines = ticks(frame.length, MOST).into_iter().map(|(at, _)| frame.x(at));
    let path: String =
        lines.map(|x| format!("M{} {}V{}", Px(x), Px(top - 3.0), Px(bottom + 3.0))).collect();
    Element::new("path").with("class", "line").with("d", path)
}
