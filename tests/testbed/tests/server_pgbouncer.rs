//! What the private pooler promises, and that each version of the server starts.

#![allow(clippy::unwrap_used)] // helpers of tests are tests

use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpStream},
    thread,
    time::Duration,
};

use tenure_testbed::{PgBouncer, Postgres};

/// Longer than an answer takes on a busy machine.
const LONG: Duration = Duration::from_secs(30);

/// Logs in as `postgres` and sends a query; answers all that the server says up to where it is ready for another one.
fn ask(addr: SocketAddr, query: &str, patience: Duration) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(addr)?;
    stream.set_read_timeout(Some(patience))?;
    let hello = b"\x00\x03\x00\x00user\0postgres\0database\0postgres\0\0";
    let length = u32::try_from(hello.len() + 4).unwrap();
    stream.write_all(&[&length.to_be_bytes(), hello.as_slice()].concat())?;
    until_ready(&mut stream)?;
    let length = u32::try_from(query.len() + 5).unwrap();
    stream.write_all(&[b"Q", &length.to_be_bytes()[..], query.as_bytes(), b"\0"].concat())?;
    until_ready(&mut stream)
}

fn until_ready(stream: &mut TcpStream) -> std::io::Result<String> {
    const READY: &[u8] = b"Z\0\0\0\x05I";
    let mut said = Vec::new();
    while !said.ends_with(READY) {
        let mut byte = [0];
        stream.read_exact(&mut byte)?;
        said.push(byte[0]);
    }
    Ok(String::from_utf8_lossy(&said).into_owned())
}

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
