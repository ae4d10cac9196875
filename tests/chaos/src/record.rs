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
    use crate::{kind::Kind, plan, scenarios, stage::Mode};

    #[test]
    fn what_was_there_is_replaced_and_the_rest_stays() {
        let document = "a\n<!-- t -->\nold\n<!-- end of t -->\nb\n";
        let once = replaced(document, "t", "new\n").unwrap();
        assert_eq!(once, "a\n<!-- t -->\nnew\n<!-- end of t -->\nb\n");
        assert_eq!(replaced(&once, "t", "new").unwrap(), once);
        assert_eq!(replaced(document, "u", "new"), None);
    }

    /// A scenario that is added is played everywhere, with candidates of every kind, before it is relied on.
    #[test]
    fn the_last_full_result_has_every_scenario_wherever_it_fits() {
        let document = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/chaos.md");
        let document = fs::read_to_string(document).unwrap();
        let rows = document.lines().map(|line| line.split('|').map(str::trim).collect::<Vec<_>>());
        let rows: Vec<_> = rows.filter(|cells| cells.len() > 4).collect();
        let modes = [Mode::Processes("".into()), Mode::Examples("".into()), Mode::Threads];
        let all: Vec<_> = scenarios::all().collect();
        for item in plan::matrix(&all, &Kind::ALL, &modes) {
            let expected = [item.scenario.name, item.kind.name(), &item.mode.to_string()];
            assert!(rows.iter().any(|cells| cells[1..4] == expected), "{expected:?}");
        }
    }
}
