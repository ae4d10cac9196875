//! What a hundred terms leave behind, on SQLite.

mod scenarios;

use scenarios::{grounds::SqliteFile, leaks};

#[test]
fn a_hundred_terms_leave_nothing_behind() {
    leaks::a_hundred_terms_leave_nothing_behind(&SqliteFile::new());
}
