//! The `failover` example on each database server, run as a program.
#![cfg(unix)]

mod support;

use tenure_testbed::{Mariadb, Nats, PgBouncer, Postgres};

fn check(store: &str) {
    support::failover::run(&["--store", store]).check();
}

#[test]
fn everything_promised_is_observed_on_postgresql() {
    let postgres = Postgres::start().unwrap();
    check(&postgres.url());
}

#[test]
fn everything_promised_is_observed_on_postgresql_behind_a_pooler() {
    let postgres = Postgres::start().unwrap();
    let pooler = PgBouncer::start(&postgres).unwrap();
    check(&pooler.url());
}

#[test]
fn everything_promised_is_observed_on_mariadb() {
    let mariadb = Mariadb::start().unwrap();
    check(&mariadb.url());
}

#[test]
fn everything_promised_is_observed_on_nats() {
    for nats in [Nats::start(), Nats::start_current()] {
        check(&nats.unwrap().url());
    }
}
