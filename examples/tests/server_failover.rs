//! The `failover` example on PostgreSQL, run as a program.
#![cfg(unix)]

mod support;

use tenure_testbed::Postgres;

#[test]
fn everything_promised_is_observed_on_postgresql() {
    let postgres = Postgres::start().unwrap();
    support::failover::run(&["--store", &postgres.url()]).check();
}
