//! Names and contents of every kind on real servers: what the fuzzer has found worth keeping, and a few drawn anew.

mod support;

/// Beside the corpus.
const CASES: u32 = 40;

fn quoting(name: &str) {
    support::replay(name);
    support::try_anything(CASES, 400, support::target(name).run);
}

#[test]
fn what_goes_into_mariadb_comes_out_and_nothing_else_happens() {
    quoting("quoting_mysql");
}

#[test]
fn what_goes_into_postgresql_comes_out_and_nothing_else_happens() {
    quoting("quoting_postgres");
}
