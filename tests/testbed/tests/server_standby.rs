//! What a standby and a backup promise, seen from outside.

#![allow(clippy::unwrap_used)] // helpers of tests are tests

mod support;

use std::{net::SocketAddr, time::Duration};

use tenure_testbed::Postgres;

use crate::support::{LONG, ask};

const SOON: Duration = Duration::from_millis(300);

fn say(addr: SocketAddr, query: &str) -> String {
    let said = ask(addr, query, LONG).unwrap();
    assert!(!said.contains("ERROR"), "{query}: {said}");
    said
}

#[test]
fn a_promoted_standby_has_everything_that_its_primary_confirmed_and_takes_writes() {
    for mut primary in [Postgres::start().unwrap(), Postgres::start_18().unwrap()] {
        say(primary.addr(), "CREATE TABLE log (line text)");
        let standby = Postgres::standby_of(&primary).unwrap();
        say(primary.addr(), "INSERT INTO log VALUES ('confirmed')");
        let refused = ask(standby.addr(), "INSERT INTO log VALUES ('too early')", LONG).unwrap();
        assert!(refused.contains("read-only"), "{refused}");

        primary.kill().unwrap();
        standby.promote().unwrap();
        say(standby.addr(), "INSERT INTO log VALUES ('taken')");
        let lines = say(standby.addr(), "SELECT string_agg(line, ' and ') FROM log");
        assert!(lines.contains("confirmed and taken"), "{lines}");
        // It can have a standby in turn.
        let next = Postgres::standby_of(&standby).unwrap();
        say(standby.addr(), "INSERT INTO log VALUES ('again')");
        drop(standby);
        next.promote().unwrap();
        assert!(say(next.addr(), "SELECT count(*) FROM log").contains('3'));
    }
}

#[test]
fn a_primary_confirms_nothing_that_its_standby_does_not_have() {
    let primary = Postgres::start().unwrap();
    let standby = Postgres::standby_of(&primary).unwrap();
    say(primary.addr(), "CREATE TABLE log (line text)");
    standby.stop();
    ask(primary.addr(), "INSERT INTO log VALUES ('unconfirmed')", SOON).unwrap_err();
    standby.cont();
    say(primary.addr(), "INSERT INTO log VALUES ('confirmed')");
}

#[test]
fn a_restored_server_has_what_it_had_and_is_where_it_was() {
    let mut server = Postgres::start().unwrap();
    let addr = server.addr();
    say(addr, "CREATE TABLE log AS SELECT 'before' AS line");
    let backup = server.back_up().unwrap();
    assert!(server.is_running());
    say(addr, "INSERT INTO log VALUES ('after')");
    for _ in 0..2 {
        server.restore(&backup).unwrap();
        assert_eq!(server.addr(), addr);
        let lines = say(addr, "SELECT string_agg(line, ',') || '.' FROM log");
        assert!(lines.contains("before."), "{lines}");
        say(addr, "INSERT INTO log VALUES ('after again')");
    }
}
