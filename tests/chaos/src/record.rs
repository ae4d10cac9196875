//! Results that are kept in a document.

use std::{fs, io, path::Path};

/// Puts `text` between the lines `<!-- NAME -->` and `<!-- end of NAME -->` of the document, in place of what is there.
pub(crate) fn keep(document: &Path, name: &str, text: &str) -> io::Result<()> {
    let old = fs::read_to_string(document)?;
    let new = replaced(&old, name, text).ok_or_else(|| {
        let what = format!("{} has no place for {name}", document.display());
        io::Error::other(what)
    })?;
    fs::write(document, new)
}

fn replaced(document: &str, name: &str, text: &str) -> Option<String> {
    let (begin, end) = (format!("<!-- {name} -->\n"), format!("<!-- end of {name} -->\n"));
    let (before, rest) = document.split_once(&begin)?;
    let (_, after) = rest.split_once(&end)?;
    Some(format!("{before}{begin}{}\n{end}{after}", text.trim_end()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{kind::Kind, scenarios};

    #[test]
    fn what_was_there_is_replaced_and_the_rest_stays() {
        let document = "a\n<!-- t -->\nold\n<!-- end of t -->\nb\n";
        let once = replaced(document, "t", "new\n").unwrap();
        assert_eq!(once, "a\n<!-- t -->\nnew\n<!-- end of t -->\nb\n");
        assert_eq!(replaced(&once, "t", "new").unwrap(), once);
        assert_eq!(replaced(document, "u", "new"), None);
    }

    /// A scenario that is added is played everywhere before it is relied on.
    #[test]
    fn the_last_full_result_has_every_scenario_on_every_store_that_it_fits() {
        let document = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/chaos.md");
        let document = fs::read_to_string(document).unwrap();
        let is_there = |name: &str, kind: Kind| {
            document.lines().any(|line| {
                let cells: Vec<&str> = line.split('|').map(str::trim).collect();
                cells.get(1) == Some(&name) && cells.get(2) == Some(&kind.name())
            })
        };
        for scenario in scenarios::all() {
            for kind in Kind::ALL.into_iter().filter(|&kind| scenario.fits(kind)) {
                assert!(is_there(scenario.name, kind), "{} on {kind}", scenario.name);
            }
        }
    }
}
