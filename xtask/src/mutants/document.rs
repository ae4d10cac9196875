//! `tests/README.md`, which keeps what is known of seeded bugs and of changes that a program makes up.

use std::fs;

use crate::{Failure, cargo};

pub(super) const FILE: &str = "tests/README.md";

/// What stands between the lines `<!-- NAME -->` and `<!-- end of NAME -->`.
pub(super) fn section(name: &str) -> Result<String, Failure> {
    let text = fs::read_to_string(cargo::root().join(FILE))
        .map_err(|error| Failure::new(format!("{FILE} cannot be read: {error}")))?;
    let found = between(&text, name).map(str::to_owned);
    found.ok_or_else(|| Failure::new(format!("{FILE} has no place for {name}")))
}

fn between<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = text.split_once(&format!("<!-- {name} -->\n"))?;
    let (section, _) = rest.split_once(&format!("<!-- end of {name} -->\n"))?;
    Some(section)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_section_lies_between_its_two_marks() {
        let text = "a\n<!-- bugs -->\nb\nc\n<!-- end of bugs -->\nd\n";
        assert_eq!(between(text, "bugs"), Some("b\nc\n"));
        assert_eq!(between(text, "changes"), None);
    }
}
