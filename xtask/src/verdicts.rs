//! What the stores' acceptance tests came to, as a table: obligations by store and path.

use std::{collections::BTreeMap, fmt, iter};

/// What came of one obligation on one path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Kept,
    Broken,
    /// It could not be tried, for this reason.
    Unsupported(String),
}

/// All obligations on one path to one store.
#[derive(Debug)]
struct Column {
    path: String,
    verdicts: BTreeMap<String, Verdict>,
}

/// All obligations on all paths.
#[derive(Debug)]
pub(crate) struct Table {
    obligations: Vec<&'static str>,
    columns: Vec<Column>,
}

impl Table {
    pub(crate) fn new(obligations: Vec<&'static str>) -> Self {
        Self { obligations, columns: Vec::new() }
    }

    /// Adds what a test program has printed with `--show-output`. A test's name is that of an obligation, in a module for the
    /// path if the package has several.
    pub(crate) fn add(&mut self, package: &str, printed: &str) {
        let store = package.trim_start_matches("tenure-");
        for (test, verdict) in verdicts(printed) {
            let found =
                self.obligations.iter().find_map(|name| Some((*name, test.strip_suffix(name)?)));
            let Some((obligation, module)) = found else { continue };
            let path = match module.trim_end_matches("::") {
                "" => store.to_owned(),
                // The suite's own package tries stores of other names.
                module if module.starts_with(store) || store == "conformance" => module.to_owned(),
                module => format!("{store}/{module}"),
            };
            self.column(path).verdicts.insert(obligation.to_owned(), verdict);
        }
    }

    fn column(&mut self, path: String) -> &mut Column {
        let found = self.columns.iter().position(|column| column.path == path);
        let index = found.unwrap_or_else(|| {
            self.columns.push(Column { path, verdicts: BTreeMap::new() });
            self.columns.len() - 1
        });
        &mut self.columns[index]
    }

    pub(crate) fn paths(&self) -> usize {
        self.columns.len()
    }

    /// Those that are broken, and those of which nothing was heard: path and obligation.
    pub(crate) fn failures(&self) -> Vec<(&str, &str)> {
        let failed = |column: &Column, name: &str| {
            matches!(column.verdicts.get(name), None | Some(Verdict::Broken))
        };
        self.cells()
            .filter(|(column, name)| failed(column, name))
            .map(|(column, name)| (column.path.as_str(), name))
            .collect()
    }

    fn cells(&self) -> impl Iterator<Item = (&Column, &'static str)> {
        self.columns
            .iter()
            .flat_map(|column| iter::repeat(column).zip(self.obligations.iter().copied()))
    }

    /// By reason and obligations: the paths on which they are not tried.
    fn unsupported(&self) -> BTreeMap<(&str, Vec<&str>), Vec<&str>> {
        let mut grouped: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for column in &self.columns {
            let mut by_reason: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
            for name in &self.obligations {
                if let Some(Verdict::Unsupported(reason)) = column.verdicts.get(*name) {
                    by_reason.entry(reason).or_default().push(name);
                }
            }
            for by_reason in by_reason {
                grouped.entry(by_reason).or_default().push(column.path.as_str());
            }
        }
        grouped
    }

    /// Names, with whole themes as one.
    fn summary(&self, names: &[&str]) -> Vec<String> {
        let mut summary = Vec::new();
        let mut rest = names;
        while let Some(first) = rest.first() {
            let theme = theme(first);
            let same = rest.iter().take_while(|name| self::theme(name) == theme).count();
            let all = self.obligations.iter().filter(|name| self::theme(name) == theme).count();
            if same == all {
                summary.push(format!("{theme}::*"));
            } else {
                summary.extend(rest[..same].iter().map(|name| (*name).to_owned()));
            }
            rest = &rest[same..];
        }
        summary
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width = self.obligations.iter().map(|name| name.len()).max().unwrap_or(0);
        for (number, column) in iter::zip(1.., &self.columns) {
            let count = |which: fn(&Verdict) -> bool| {
                column.verdicts.values().filter(|verdict| which(verdict)).count()
            };
            let kept = count(|verdict| *verdict == Verdict::Kept);
            let unsupported = count(|verdict| matches!(verdict, Verdict::Unsupported(_)));
            let missing = self.obligations.len() - column.verdicts.len();
            write!(f, "{number:>4}  {:<30} {kept:>3} kept", column.path)?;
            for (count, what) in [
                (unsupported, "not supported"),
                (column.verdicts.len() - kept - unsupported, "BROKEN"),
                (missing, "MISSING"),
            ] {
                if count > 0 {
                    write!(f, ", {count} {what}")?;
                }
            }
            writeln!(f)?;
        }
        let mut last_theme = "";
        for name in &self.obligations {
            if theme(name) != last_theme {
                last_theme = theme(name);
                write!(f, "\n{last_theme:<width$}    ")?;
                for number in 1..=self.columns.len() {
                    write!(f, "{number:>4}")?;
                }
                writeln!(f)?;
            }
            write!(f, "{name:<width$}    ")?;
            for column in &self.columns {
                f.write_str(match column.verdicts.get(*name) {
                    Some(Verdict::Kept) => "  ok",
                    Some(Verdict::Unsupported(_)) => "   -",
                    Some(Verdict::Broken) => " BAD",
                    None => "   ?",
                })?;
            }
            writeln!(f)?;
        }
        writeln!(
            f,
            "\nok: kept; BAD: broken; ?: not among the tests; -: not supported, as the store declares:"
        )?;
        for ((reason, names), paths) in self.unsupported() {
            writeln!(f, "\n  {reason}\n    on {}", paths.join(", "))?;
            for name in self.summary(&names) {
                writeln!(f, "      {name}")?;
            }
        }
        Ok(())
    }
}

/// The name of each test, and what came of it.
fn verdicts(printed: &str) -> BTreeMap<&str, Verdict> {
    let mut verdicts = BTreeMap::new();
    let mut shown = None;
    for line in printed.lines() {
        let result = line.strip_prefix("test ").and_then(|test| test.rsplit_once(" ... "));
        match result {
            Some((test, "ok")) => drop(verdicts.insert(test, Verdict::Kept)),
            Some((test, _)) => drop(verdicts.insert(test, Verdict::Broken)),
            None => {}
        }
        if let Some(test) =
            line.strip_prefix("---- ").and_then(|of| of.strip_suffix(" stdout ----"))
        {
            shown = Some(test);
        }
        let reason = line.split_once(" was not tried: ");
        if let (Some((_, reason)), Some(test)) = (reason, shown)
            && verdicts.get(test) == Some(&Verdict::Kept)
        {
            verdicts.insert(test, Verdict::Unsupported(reason.to_owned()));
        }
    }
    verdicts
}

fn theme(obligation: &str) -> &str {
    obligation.split_once("::").map_or("", |(theme, _)| theme)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PRINTED: &str = "
running 5 tests
test pooled::fences::they_rise ... ok
test pooled::hold::it_holds ... ok
test pooled::hold::it_waits ... ok
test fences::they_rise ... FAILED
test something_else ... ok

successes:

---- pooled::hold::it_holds stdout ----
hold::it_holds was not tried: no transactions

---- pooled::hold::it_waits stdout ----
hold::it_waits was not tried: no transactions

failures:

---- fences::they_rise stdout ----
thread panicked: fences::they_rise was not tried: this is no declaration

test result: FAILED. 4 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 1.20s
";

    fn table() -> Table {
        let mut table = Table::new(vec!["fences::they_rise", "hold::it_holds", "hold::it_waits"]);
        table.add("tenure-example", PRINTED);
        table
    }

    #[test]
    fn what_is_broken_or_was_not_heard_of_is_a_failure_and_what_is_declared_is_none() {
        let table = table();
        assert_eq!(table.paths(), 2);
        assert_eq!(
            table.failures(),
            [
                ("example", "fences::they_rise"),
                ("example", "hold::it_holds"),
                ("example", "hold::it_waits")
            ]
        );
    }

    #[test]
    fn each_path_is_a_column_and_reasons_are_given_once() {
        let printed = table().to_string();
        let row = |name| printed.lines().find(|line| line.starts_with(name)).unwrap();
        assert!(row("fences::they_rise").ends_with(" BAD  ok"), "{printed}");
        assert!(row("hold::it_holds").ends_with("   ?   -"), "{printed}");
        assert!(printed.contains("   2  example/pooled "), "{printed}");
        let reasons = "  no transactions\n    on example/pooled\n      hold::*\n";
        assert!(printed.ends_with(reasons), "{printed}");
    }
}
