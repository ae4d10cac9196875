//! What lies behind lanes while something lasts.

use super::frame::Frame;
use crate::{
    picture::Picture,
    xml::{Element, Px},
};

/// What is narrower is no band.
const VISIBLY: f64 = 1.5;

/// Faults over all lanes, or those of one. Where several last, there is one band: their bars tell them apart.
pub(super) fn of_faults(
    picture: &Picture,
    lane: Option<usize>,
    frame: &Frame,
    top: f64,
    bottom: f64,
) -> Element {
    let faults = picture.faults.iter().filter(|fault| picture.place(fault) == lane);
    let spans = faults.map(|fault| (frame.x(fault.from), frame.x(fault.to)));
    draw("fault-band", &union(spans.collect()), top, bottom)
}

/// Where nobody led for too long.
pub(super) fn of_gaps(picture: &Picture, frame: &Frame, top: f64, bottom: f64) -> Element {
    let gaps = picture.gaps.iter().filter(|gap| gap.is_too_long());
    let spans = gaps.map(|gap| (frame.x(gap.from), frame.x(gap.to)));
    draw("bad-band", &union(spans.collect()), top, bottom)
}

/// Where they begin and end: faults may lie over them.
pub(super) fn edges(picture: &Picture, frame: &Frame, top: f64, bottom: f64) -> Element {
    let gaps = picture.gaps.iter().filter(|gap| gap.is_too_long());
    let edges = gaps.flat_map(|gap| [gap.from, gap.to]).map(|at| frame.x(at));
    lines("bad-edge", edges, top, bottom)
}

/// Where something befell all lanes and lasted no time, or none that can be seen.
pub(super) fn moments(picture: &Picture, frame: &Frame, top: f64, bottom: f64) -> Element {
    let faults = picture.faults.iter().filter(|fault| picture.place(fault).is_none());
    let mut moments: Vec<f64> = faults
        .filter(|fault| fault.from <= frame.length)
        .map(|fault| (frame.x(fault.from), frame.x(fault.to)))
        .filter(|(from, to)| to - from < VISIBLY)
        .map(|(from, _)| from)
        .collect();
    moments.sort_by(f64::total_cmp);
    moments.dedup_by(|later, earlier| *later - *earlier < VISIBLY);
    lines("moment", moments.into_iter(), top, bottom)
}

fn lines(class: &'static str, places: impl Iterator<Item = f64>, top: f64, bottom: f64) -> Element {
    let path: String = places.map(|x| format!("M{} {}V{}", Px(x), Px(top), Px(bottom))).collect();
    Element::new("path").with("class", class).with("d", path)
}

fn draw(class: &'static str, spans: &[(f64, f64)], top: f64, bottom: f64) -> Element {
    let path: String = spans
        .iter()
        .map(|(from, to)| {
            format!("M{} {}H{}V{}H{}z", Px(*from), Px(top), Px(*to), Px(bottom), Px(*from))
        })
        .collect();
    Element::new("path").with("class", class).with("d", path)
}

/// The same places, none of them twice.
pub(super) fn union(mut spans: Vec<(f64, f64)>) -> Vec<(f64, f64)> {
    spans.sort_by(|one, other| one.0.total_cmp(&other.0));
    let mut united: Vec<(f64, f64)> = Vec::new();
    for (from, to) in spans {
        match united.last_mut() {
            Some(last) if from <= last.1 => last.1 = last.1.max(to),
            _ => united.push((from, to)),
        }
    }
    united
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bands_that_meet_become_one() {
        let spans = vec![(8.0, 9.0), (1.0, 5.0), (2.0, 3.0), (5.0, 6.0), (4.0, 5.5)];
        assert_eq!(union(spans), [(1.0, 6.0), (8.0, 9.0)]);
    }
}
