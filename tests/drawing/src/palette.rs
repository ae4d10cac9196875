//! The colours, for light and for dark screens.

/// A colour by its name, and what it is on a light and on a dark screen.
type Colour = (&'static str, &'static str, &'static str);

const COLOURS: &[Colour] = &[
    ("page", "#ffffff", "#0d1117"),
    ("alive", "#f0f3f6", "#1b222c"),
    ("line", "#d5dbe1", "#343c47"),
    ("text", "#1f2328", "#e6edf3"),
    ("muted", "#535b64", "#a3adb8"),
    // What is written on a term.
    ("on-term", "#ffffff", "#0d1117"),
    ("term-0", "#1d5fbf", "#79b0ff"),
    ("term-1", "#b0246f", "#f58cc0"),
    ("term-2", "#0c7068", "#4fd1b5"),
    ("term-3", "#6d3fd1", "#bda4ff"),
    ("term-4", "#596d0e", "#bdd25e"),
    ("fault", "#8a4b00", "#f0b45a"),
    ("fault-band", "#fbe6c2", "#43341a"),
    ("gap", "#535b64", "#a3adb8"),
    ("bad", "#b3141a", "#ff8a80"),
    ("bad-band", "#f9d0d0", "#54262a"),
    ("good", "#116329", "#56d364"),
    ("won", "#1a7f37", "#3fb950"),
    ("seen", "#6b747d", "#8d96a0"),
    ("lost", "#9a6700", "#d9a22b"),
    ("failed", "#cf222e", "#ff6a63"),
    ("dropped", "#7d4ad1", "#bc8cff"),
];

/// How many terms one after another have colours of their own.
pub(crate) const TERMS: usize = 5;

/// The letters of pictures and pages.
pub(crate) const FONT: &str =
    "system-ui,-apple-system,'Segoe UI',Roboto,'Helvetica Neue',Arial,sans-serif";

/// The colours as variables of whatever the selector selects.
pub(crate) fn variables(selector: &str) -> String {
    let list = |shown: fn(&Colour) -> &'static str| -> String {
        COLOURS.iter().map(|colour| format!("--{}:{};", colour.0, shown(colour))).collect()
    };
    let (light, dark) = (list(|colour| colour.1), list(|colour| colour.2));
    format!(
        "{selector}{{color-scheme:light dark;{light}}}\n\
         @media (prefers-color-scheme:dark){{{selector}{{{dark}}}}}\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How bright a colour is, as WCAG 2 has it.
    fn luminance(colour: &str) -> f64 {
        let part = |at: usize| {
            let value = f64::from(u8::from_str_radix(&colour[at..at + 2], 16).unwrap()) / 255.0;
            if value <= 0.04045 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) }
        };
        0.2126 * part(1) + 0.7152 * part(3) + 0.0722 * part(5)
    }

    fn contrast(one: &str, other: &str) -> f64 {
        let (one, other) = (luminance(one), luminance(other));
        (one.max(other) + 0.05) / (one.min(other) + 0.05)
    }

    fn find(name: &str) -> &'static Colour {
        COLOURS.iter().find(|colour| colour.0 == name).unwrap()
    }

    fn all_contrast(fronts: &[&str], backs: &[&str], least: f64) {
        for (front, back) in fronts.iter().flat_map(|f| backs.iter().map(move |b| (f, b))) {
            let (colour, on) = (find(front), find(back));
            for (mode, found) in
                [("light", contrast(colour.1, on.1)), ("dark", contrast(colour.2, on.2))]
            {
                assert!(found >= least, "{front} on {back}, {mode}: {found:.2}");
            }
        }
    }

    const BACKS: [&str; 4] = ["page", "alive", "fault-band", "bad-band"];
    const TERM: [&str; TERMS] = ["term-0", "term-1", "term-2", "term-3", "term-4"];

    #[test]
    fn every_text_can_be_read_on_whatever_it_stands() {
        all_contrast(&["text", "muted", "fault", "gap", "bad"], &BACKS, 4.5);
        all_contrast(&["good", "bad"], &["page", "alive"], 4.5);
        all_contrast(&["on-term"], &TERM, 4.5);
    }

    #[test]
    fn every_mark_can_be_seen_on_whatever_it_stands() {
        all_contrast(&["won", "seen", "lost", "failed", "dropped"], &BACKS, 3.0);
        all_contrast(&TERM, &BACKS, 3.0);
    }
}
