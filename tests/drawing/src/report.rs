//! A table of what was tried: for terminals, for documents, and as a page with pictures.

mod html;

use std::iter;

use crate::picture::Picture;

/// A table, with a picture for each line of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// What it is called.
    pub title: String,
    /// What was run, and on what: date, versions, seed. Name and value.
    pub about: Vec<(String, String)>,
    /// The heads of the table. The last column is the verdict's.
    pub columns: Vec<String>,
    /// The lines of the table.
    pub rows: Vec<Row>,
}

/// A line of a report.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Row {
    /// One text for each column; the last one is the verdict.
    pub cells: Vec<String>,
    /// Whether all was as it should be: gives the verdict its colour.
    pub passed: bool,
    /// Why it was not, or whatever else there is to say; may be empty, and may have several lines.
    pub details: String,
    /// What happened.
    pub picture: Option<Picture>,
}

impl Report {
    /// A page that needs nothing beside it: the table, and below it a section for each line.
    #[must_use]
    pub fn to_html(&self) -> String {
        html::page(self)
    }

    /// The table for a terminal; columns of figures are aligned at their right.
    #[must_use]
    pub fn to_table(&self) -> String {
        let lines: Vec<Vec<String>> =
            self.lines().map(|line| line.map(one_line).collect()).collect();
        let widths: Vec<usize> = (0..self.width())
            .map(|column| lines.iter().map(|line| length(&line[column])).max().unwrap_or_default())
            .collect();
        let right: Vec<bool> = (0..self.width()).map(|column| self.is_figures(column)).collect();
        let mut table = String::new();
        for line in &lines {
            let mut text = String::new();
            for ((cell, width), right) in line.iter().zip(&widths).zip(&right) {
                let space = " ".repeat(width - length(cell));
                let (before, after) = if *right { (&*space, "") } else { ("", &*space) };
                text.push_str(&format!("{before}{cell}{after}  "));
            }
            table.push_str(text.trim_end());
            table.push('\n');
        }
        table
    }

    /// What was run, and the table, in Markdown.
    #[must_use]
    pub fn to_markdown(&self) -> String {
        let about = self
            .about
            .iter()
            .map(|(name, value)| format!("- {}: {}\n", in_markdown(name), in_markdown(value)));
        // A table does not go on from a list without an empty line.
        let apart = (!self.about.is_empty()).then(|| "\n".to_owned());
        about.chain(apart).chain([self.markdown_table()]).collect()
    }

    fn markdown_table(&self) -> String {
        let mut lines = self.lines().map(|line| {
            let cells: Vec<String> = line.map(in_markdown).collect();
            format!("| {} |\n", cells.join(" | "))
        });
        let head = lines.next().unwrap_or_default();
        let rules: Vec<&str> = (0..self.width())
            .map(|column| if self.is_figures(column) { "---:" } else { "---" })
            .collect();
        iter::once(head).chain([format!("| {} |\n", rules.join(" | "))]).chain(lines).collect()
    }

    /// The heads, and then the cells of each row: one for each column.
    fn lines(&self) -> impl Iterator<Item = impl Iterator<Item = &str>> {
        let all = iter::once(&self.columns).chain(self.rows.iter().map(|row| &row.cells));
        all.map(|cells| cells.iter().map(String::as_str).chain(iter::repeat("")).take(self.width()))
    }

    fn width(&self) -> usize {
        let cells = self.rows.iter().map(|row| row.cells.len());
        cells.chain([self.columns.len()]).max().unwrap_or_default()
    }

    /// Whether all cells of a column begin with a digit.
    fn is_figures(&self, column: usize) -> bool {
        let mut cells = self.rows.iter().map(|row| row.cells.get(column));
        let is_figure = |cell: Option<&String>| {
            cell.is_some_and(|cell| cell.starts_with(|first: char| first.is_ascii_digit()))
        };
        !self.rows.is_empty() && cells.all(is_figure)
    }
}

fn length(text: &str) -> usize {
    text.chars().count()
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A cell with nothing in it that Markdown takes for its own.
fn in_markdown(text: &str) -> String {
    let mut escaped = String::new();
    for character in one_line(text).chars() {
        match character {
            '<' => escaped.push_str("&lt;"),
            '&' => escaped.push_str("&amp;"),
            '|' | '\\' | '`' | '*' | '_' | '[' | ']' => escaped.extend(['\\', character]),
            _ => escaped.push(character),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::picture::{Lane, Term};

    fn row(cells: [&str; 4], passed: bool) -> Row {
        Row { cells: cells.map(str::to_owned).to_vec(), passed, ..Row::default() }
    }

    fn report() -> Report {
        let mut failed = row(["a|b <i>", "nats", "2", "FAILED"], false);
        failed.details = "two leaders:\n  <1> & <2>".to_owned();
        let to = Duration::from_secs(3);
        let lane = Lane { terms: vec![Term { to, ..Term::default() }], ..Lane::default() };
        failed.picture = Some(Picture { lanes: vec![lane], length: to, ..Picture::default() });
        Report {
            title: "Chaos & order".to_owned(),
            about: vec![("seed".to_owned(), "42".to_owned())],
            columns: ["scenario", "path", "terms", "verdict"].map(str::to_owned).to_vec(),
            rows: vec![row(["steady", "postgres", "12", "ok"], true), failed],
        }
    }

    #[test]
    fn a_terminal_shows_columns() {
        let table = report().to_table();
        let expected = "scenario  path      terms  verdict\n\
                        steady    postgres     12  ok\n\
                        a|b <i>   nats          2  FAILED\n";
        assert_eq!(table, expected);
    }

    #[test]
    fn markdown_takes_nothing_in_a_cell_for_its_own() {
        let expected = "- seed: 42\n\n\
                        | scenario | path | terms | verdict |\n\
                        | --- | --- | ---: | --- |\n\
                        | steady | postgres | 12 | ok |\n\
                        | a\\|b &lt;i> | nats | 2 | FAILED |\n";
        assert_eq!(report().to_markdown(), expected);
    }

    #[test]
    fn rows_that_are_too_short_or_too_long_are_shown_as_they_are() {
        let mut report = report();
        report.rows[0].cells.push("more".to_owned());
        report.rows[1].cells.truncate(1);
        assert!(report.to_table().lines().nth(1).unwrap().ends_with("ok       more"));
        assert_eq!(report.to_markdown().lines().nth(5), Some("| a\\|b &lt;i> |  |  |  |  |"));
        assert_eq!(Report::default().to_table(), "\n");
    }

    #[test]
    fn a_page_is_well_formed_and_its_links_lead_somewhere() {
        let page = report().to_html();
        let options = roxmltree::ParsingOptions { allow_dtd: true, ..Default::default() };
        let page = roxmltree::Document::parse_with_options(&page, options).unwrap();
        let links = page.descendants().filter_map(|node| node.attribute("href"));
        let targets: Vec<&str> =
            page.descendants().filter_map(|node| node.attribute("id")).collect();
        let links: Vec<&str> = links.collect();
        assert!(links.len() > 2, "{links:?}");
        for link in links {
            assert!(targets.contains(&link.trim_start_matches('#')), "{link}");
        }
        let mut unique = targets.clone();
        unique.sort_unstable();
        unique.dedup();
        assert_eq!(unique.len(), targets.len());
        let texts: String = page.descendants().filter_map(|node| node.text()).collect();
        assert!(texts.contains("two leaders:\n  <1> & <2>") && texts.contains("FAILED"));
        let count = |name: &str| page.descendants().filter(|n| n.has_tag_name(name)).count();
        assert_eq!((count("script"), count("tr")), (0, 3));
        let is_picture = |node: &roxmltree::Node<'_, '_>| node.tag_name().name() == "svg";
        assert_eq!(page.descendants().filter(is_picture).count(), 1);
    }
}
