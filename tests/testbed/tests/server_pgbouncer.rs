//! What the private pooler promises, and that each version of the server starts.

mod support;

use std::{thread, time::Duration};

use tenure_testbed::{PgBouncer, Postgres, Proxy};

use crate::support::{LONG, ask};

#[test]
fn a_pooler_passes_on_what_it_is_asked_unless_it_is_frozen_paused_or_dead() {
    let server = Postgres::start().unwrap();
    let mut pooler = PgBouncer::start(&server).unwrap();
    let addr = pooler.addr();
    let answer = |patience| ask(addr, "SELECT 'it is ' || 'there'", patience);
    assert!(answer(LONG).unwrap().contains("it is there"));

    pooler.stop();
    answer(Duration::from_millis(100)).unwrap_err();
    pooler.cont();
    assert!(answer(LONG).unwrap().contains("it is there"));

    pooler.pause().unwrap();
    let waiting = thread::spawn(move || ask(addr, "SELECT 'it was ' || 'there'", LONG));
    answer(Duration::from_millis(100)).unwrap_err();
    pooler.resume().unwrap();
    assert!(waiting.join().unwrap().unwrap().contains("it was there"));
    assert!(pooler.command("NO SUCH COMMAND").is_err());

    pooler.kill().unwrap();
    answer(LONG).unwrap_err();
    pooler.restart().unwrap();
    assert!(answer(LONG).unwrap().contains("it is there"));
    assert_eq!(pooler.addr(), addr);
}

#[test]
fn each_version_of_the_server_is_the_one_that_it_says() {
    for (server, version) in
        [(Postgres::start().unwrap(), ""), (Postgres::start_18().unwrap(), "18.")]
    {
        let said = ask(server.addr(), "SELECT version()", LONG).unwrap();
        assert!(said.contains(&format!("PostgreSQL {version}")), "{said}");
    }
}

#[test]
fn a_pooler_can_stand_behind_a_path() {
    let server = Postgres::start().unwrap();
    let path = Proxy::start(server.addr()).unwrap();
    let pooler = PgBouncer::start_at(path.addr()).unwrap();
    let answer = |patience| ask(pooler.addr(), "SELECT 'it is ' || 'there'", patience);
    assert!(answer(LONG).unwrap().contains("it is there"));
    path.black_hole();
    answer(Duration::from_millis(100)).unwrap_err();
    path.heal();
    assert!(answer(LONG).unwrap().contains("it is there"));
}

#[test]
fn each_version_of_the_server_takes_settings() {
    let settings = [("max_connections", "17")];
    for server in
        [Postgres::start_with(&settings).unwrap(), Postgres::start_18_with(&settings).unwrap()]
    {
        let said = ask(server.addr(), "SHOW max_connections", LONG).unwrap();
        assert!(said.contains("17"), "{said}");
    }
    let error = Postgres::start_with(&[("no_such_setting", "1")]).unwrap_err();
    assert!(error.to_string().contains("no_such_setting"), "{error}");
}
