//! Letters, and the style sheet.

use crate::{
    palette::{FONT, TERMS, variables},
    xml::{Element, Px},
};

/// What a text looks like.
#[derive(Clone, Copy, Debug)]
pub(super) struct Style {
    pub(super) class: &'static str,
    pub(super) size: f64,
}

pub(super) const TITLE: Style = Style { class: "title", size: 17.0 };
pub(super) const STRONG: Style = Style { class: "strong", size: 12.0 };
pub(super) const MUTED: Style = Style { class: "muted", size: 12.0 };
pub(super) const SMALL: Style = Style { class: "muted", size: 9.0 };
pub(super) const ON_TERM: Style = Style { class: "on-term", size: 11.0 };
/// In the colour of what it belongs to.
pub(super) const OF_BAR: Style = Style { class: "of-bar", size: 11.0 };

/// A line of text that begins here.
pub(super) fn label(style: Style, x: f64, y: f64, text: &str) -> Element {
    Element::new("text")
        .with("class", style.class)
        .with("x", Px(x))
        .with("y", Px(y))
        .with("font-size", style.size)
        .text(text)
}

/// All rules are about what is in a picture, since a page may hold it.
pub(super) fn sheet() -> String {
    let mut sheet = variables(".timeline");
    let mut rule = |selector: &str, what: &str| {
        let selectors: Vec<_> =
            selector.split(',').map(|one| format!(".timeline {}", one.trim())).collect();
        sheet.push_str(&format!("{}{{{what}}}\n", selectors.join(",")));
    };
    rule("text", &format!("font-family:{FONT};fill:var(--text)"));
    rule(".page", "fill:var(--page)");
    rule(".title, .strong, .on-term", "font-weight:600");
    rule(".muted", "fill:var(--muted)");
    rule(".on-term", "fill:var(--on-term);pointer-events:none");
    rule(".alive", "fill:var(--alive)");
    rule(".asleep", "stroke:var(--muted);stroke-dasharray:2 5");
    rule(".line", "stroke:var(--line);fill:none");
    for number in 0..TERMS {
        rule(&format!(".term-{number}"), &format!("fill:var(--term-{number})"));
    }
    for name in ["fault", "gap", "bad"] {
        rule(&format!(".{name}, .{name} text"), &format!("fill:var(--{name})"));
    }
    rule(".bad text", "font-weight:600");
    rule(".moment", "stroke:var(--fault);stroke-width:.7;stroke-dasharray:2 3");
    rule(".bad-edge", "stroke:var(--bad);stroke-width:1.2");
    for name in ["fault-band", "bad-band"] {
        rule(&format!(".{name}"), &format!("fill:var(--{name})"));
    }
    for name in ["won", "seen", "lost", "failed", "dropped"] {
        rule(&format!(".{name}"), &format!("stroke:var(--{name});fill:none;stroke-width:1.5"));
    }
    rule(".took", "stroke-width:1;opacity:.75");
    sheet
}
