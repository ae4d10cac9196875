//! Bars with labels, in as many rows as it takes to read them all.

use super::{
    frame::Frame,
    style::{OF_BAR, label},
    tooltip,
};
use crate::{
    text,
    xml::{Element, Px},
};

const ROW: f64 = 18.0;
const LONGEST_LABEL: f64 = 300.0;
/// Between a label and what comes next in its row.
const APART: f64 = 6.0;
/// What lasts no time can be seen as well.
const SHORTEST: f64 = 3.0;

/// Something that lasts for a while.
#[derive(Clone, Debug)]
pub(super) struct Bar {
    pub(super) from: f64,
    pub(super) to: f64,
    pub(super) label: String,
    pub(super) class: &'static str,
    pub(super) tooltip: String,
}

/// Where a bar has found room.
#[derive(Clone, Debug, PartialEq)]
struct Spot {
    row: usize,
    /// Where its label begins, and as much of it as has room.
    label: Option<(f64, String)>,
}

/// Bars in rows.
#[derive(Clone, Debug)]
pub(super) struct Strip {
    bars: Vec<(Bar, Spot)>,
    rows: usize,
}

impl Strip {
    /// Gives each bar a row in which neither it nor its label meets another one; the first ones have the first choice. What
    /// finds no room in so many rows goes into the last one, without a label.
    pub(super) fn pack(bars: Vec<Bar>, frame: &Frame, most: usize) -> Self {
        let mut rows: Vec<Vec<(f64, f64)>> = Vec::new();
        let mut packed = Vec::new();
        for mut bar in bars {
            bar.from = bar.from.min(frame.right - SHORTEST);
            bar.to = bar.to.max(bar.from + SHORTEST);
            let room = LONGEST_LABEL.min(frame.right - frame.left);
            let label = text::fit(&bar.label, OF_BAR.size, room);
            let width = text::width(&label, OF_BAR.size);
            let begins = bar.from.min(frame.right - width);
            let taken = (begins, bar.to.max(begins + width));
            let is_free = |row: &Vec<(f64, f64)>| {
                row.iter().all(|(from, to)| taken.1 + APART <= *from || to + APART <= taken.0)
            };
            let free = rows.iter().position(is_free).unwrap_or(rows.len());
            let spot = if free < most {
                rows.resize(rows.len().max(free + 1), Vec::new());
                rows[free].push(taken);
                Spot { row: free, label: Some((begins, label)) }
            } else {
                Spot { row: most - 1, label: None }
            };
            packed.push((bar, spot));
        }
        Self { bars: packed, rows: rows.len() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.bars.is_empty()
    }

    pub(super) fn height(&self) -> f64 {
        self.rows as f64 * ROW
    }

    pub(super) fn draw(&self, top: f64, frame: &Frame) -> Element {
        let bars = self.bars.iter().map(|(bar, spot)| {
            let bottom = top + (spot.row + 1) as f64 * ROW;
            let line = Element::new("rect")
                .with("x", Px(bar.from))
                .with("y", Px(bottom - 4.0))
                .with("width", Px(bar.to.min(frame.right) - bar.from))
                .with("height", 3)
                .with("rx", 1);
            let drawn = Element::new("g").with("class", bar.class).child(tooltip(&bar.tooltip));
            let text = spot.label.iter().map(|(x, text)| label(OF_BAR, *x, bottom - 6.5, text));
            drawn.child(line).children(text)
        });
        Element::new("g").children(bars)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const FRAME: Frame = Frame { left: 100.0, right: 1100.0, length: Duration::from_secs(1) };

    fn bar(from: f64, to: f64, label: &str) -> Bar {
        Bar { from, to, label: label.to_owned(), class: "fault", tooltip: String::new() }
    }

    /// What each bar and its label take.
    fn rectangles(strip: &Strip) -> Vec<(usize, f64, f64)> {
        let taken = strip.bars.iter().filter_map(|(bar, spot)| {
            let (x, label) = spot.label.as_ref()?;
            let end = x + text::width(label, OF_BAR.size);
            Some((spot.row, bar.from.min(*x), bar.to.max(end)))
        });
        taken.collect()
    }

    #[test]
    fn no_label_meets_another_bar_or_label() {
        let bars = (0..200).map(|number| {
            let from = 100.0 + f64::from(number * 37 % 1_000);
            let label = "a fault ".repeat(1 + number as usize % 9);
            bar(from, from + f64::from(number * 13 % 200), &label)
        });
        let strip = Strip::pack(bars.collect(), &FRAME, 80);
        let taken = rectangles(&strip);
        assert!(taken.len() > 150, "only {} have labels", taken.len());
        for (number, one) in taken.iter().enumerate() {
            assert!(one.1 >= 0.0 && one.2 <= FRAME.right + 200.0, "{one:?}");
            for other in &taken[..number] {
                let apart = one.0 != other.0 || one.2 < other.1 || other.2 < one.1;
                assert!(apart, "{one:?} meets {other:?}");
            }
        }
        assert!(strip.bars.iter().all(|(_, spot)| spot.row < 80));
    }

    #[test]
    fn a_label_at_the_end_goes_to_the_left() {
        let strip = Strip::pack(vec![bar(1_095.0, 1_100.0, "the last one")], &FRAME, 1);
        let (x, label) = strip.bars[0].1.label.clone().unwrap();
        assert!(x + text::width(&label, OF_BAR.size) <= FRAME.right);
    }

    #[test]
    fn what_finds_no_room_has_no_label_and_is_drawn() {
        let strip =
            Strip::pack(vec![bar(200.0, 900.0, "one"), bar(300.0, 400.0, "two")], &FRAME, 1);
        assert_eq!(strip.bars[1].1, Spot { row: 0, label: None });
        assert_eq!(strip.draw(0.0, &FRAME).to_string().matches("<rect").count(), 2);
    }
}
