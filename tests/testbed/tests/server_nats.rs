//! What the private NATS server promises, seen from outside.

#![allow(clippy::unwrap_used)] // helpers of tests are tests

use std::{
    io::{BufRead, BufReader, Write},
    net::{SocketAddr, TcpStream},
    path::PathBuf,
    time::Duration,
};

use tenure_testbed::{Nats, programs};

const LONG: Duration = Duration::from_secs(30);

/// Logs in as `options` say, and gives the server's introduction and its answer to a ping.
fn talk(addr: SocketAddr, options: &str, patience: Duration) -> std::io::Result<[String; 2]> {
    let stream = TcpStream::connect(addr)?;
    stream.set_read_timeout(Some(patience))?;
    let mut lines = BufReader::new(stream.try_clone()?).lines();
    let mut line = || lines.next().unwrap_or_else(|| Err(std::io::ErrorKind::UnexpectedEof.into()));
    let introduction = line()?;
    (&stream).write_all(format!("CONNECT {options}\r\nPING\r\n").as_bytes())?;
    Ok([introduction, line()?])
}

fn greet(addr: SocketAddr) -> [String; 2] {
    talk(addr, r#"{"verbose":false}"#, LONG).unwrap()
}

#[test]
fn both_versions_have_jetstream_and_say_which_they_are() {
    let old = greet(Nats::start().unwrap().addr());
    assert!(old[0].contains(r#""version":"2.9."#), "{old:?}");
    assert!(old[0].contains(r#""jetstream":true"#), "{old:?}");
    assert_eq!(old[1], "PONG");
    let current = greet(Nats::start_current().unwrap().addr());
    assert!(current[0].contains(r#""version":"2.15."#), "{current:?}");
    assert!(current[0].contains(r#""jetstream":true"#), "{current:?}");
}

#[test]
fn a_frozen_server_is_silent_and_goes_on_and_a_killed_one_comes_back_where_it_was() {
    let mut server = Nats::start().unwrap();
    let addr = server.addr();
    assert!(addr.ip().is_loopback());
    server.stop();
    talk(addr, "{}", Duration::from_millis(100)).unwrap_err();
    server.cont();
    assert_eq!(greet(addr)[1], "PONG");
    server.kill().unwrap();
    talk(addr, "{}", LONG).unwrap_err();
    server.restart().unwrap();
    assert_eq!((&*greet(addr)[1], server.addr()), ("PONG", addr));
    let data: PathBuf = server.data().into();
    assert!(data.exists());
    drop(server);
    assert!(!data.exists());
}

#[test]
fn its_settings_decide_who_may_do_what() {
    let server = Nats::start_with(&programs::NATS, "authorization { token: secret }").unwrap();
    let refused = talk(server.addr(), r#"{"verbose":false}"#, LONG).unwrap();
    assert!(refused[1].contains("Authorization Violation"), "{refused:?}");
    let token = r#"{"verbose":false,"auth_token":"secret"}"#;
    let taken = talk(server.addr(), token, LONG).unwrap();
    assert_eq!(taken[1], "PONG");
    assert!(!taken[0].contains(r#""jetstream":true"#), "{taken:?}");
}

#[test]
fn a_restored_server_has_the_files_that_it_had() {
    let mut server = Nats::start().unwrap();
    let backup = server.back_up().unwrap();
    assert!(server.is_running());
    let since = server.data().join("since");
    std::fs::write(&since, "then").unwrap();
    server.restore(&backup).unwrap();
    assert!(!since.exists());
    assert_eq!(greet(server.addr())[1], "PONG");
}
