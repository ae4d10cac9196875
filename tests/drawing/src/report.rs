//! A page with a table, and a picture for each line of it.

use crate::Picture;

/// A table of what was tried, with pictures.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[allow(clippy::exhaustive_structs)]
pub struct Report {
    /// Above everything.
    pub title: String,
    /// Date, versions, seed and such.
    pub about: Vec<(String, String)>,
    /// Heads of the table.
    pub columns: Vec<String>,
    /// Its lines.
    pub rows: Vec<Row>,
}

/// A line of the table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[allow(clippy::exhaustive_structs)]
pub struct Row {
    /// What stands in it.
    pub cells: Vec<String>,
    /// Whether all was as it should be.
    pub passed: bool,
    /// Why not.
    pub details: String,
    /// What it looked like.
    pub picture: Option<Picture>,
}

impl Report {
    /// A page.
    #[must_use]
    pub fn to_html(&self) -> String {
        String::new()
    }

    /// A table for a terminal.
    #[must_use]
    pub fn to_table(&self) -> String {
        self.rows.iter().map(|row| row.cells.join("  ") + "\n").collect()
    }

    /// A table in Markdown.
    #[must_use]
    pub fn to_markdown(&self) -> String {
        String::new()
    }
}
