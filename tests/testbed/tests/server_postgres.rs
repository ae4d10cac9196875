//! What the private server promises, seen from outside.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{SocketAddr, TcpStream},
    path::Path,
    process::{Command, Stdio},
    thread,
    time::Duration,
};

use tenure_testbed::Postgres;

/// Set for the process that is to be killed while it has a server.
const VICTIM: &str = "TENURE_TESTBED_VICTIM";

/// PostgreSQL's request for encryption, answered by one byte: the shortest talk there is.
fn talk(addr: SocketAddr, patience: Duration) -> std::io::Result<u8> {
    let mut stream = TcpStream::connect(addr)?;
    stream.set_read_timeout(Some(patience))?;
    stream.write_all(&[0, 0, 0, 8, 4, 210, 22, 47])?;
    let mut answer = [0];
    stream.read_exact(&mut answer)?;
    Ok(answer[0])
}

fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    for _ in 0..6_000 {
        if holds() {
            return;
        }
        thread::sleep(Duration::from_millis(10));
    }
    panic!("waited in vain until {what}");
}

#[test]
fn a_frozen_server_is_silent_and_goes_on_and_a_killed_one_comes_back_where_it_was() {
    let mut server = Postgres::start().unwrap();
    let (addr, long) = (server.addr(), Duration::from_secs(30));
    assert!(addr.ip().is_loopback());
    assert_eq!(talk(addr, long).unwrap(), b'N');

    server.stop();
    talk(addr, Duration::from_millis(100)).unwrap_err();
    server.cont();
    assert_eq!(talk(addr, long).unwrap(), b'N');

    server.kill().unwrap();
    talk(addr, long).unwrap_err();
    server.restart().unwrap();
    assert_eq!((talk(addr, long).unwrap(), server.addr()), (b'N', addr));
}

#[test]
fn a_server_is_gone_with_its_files_when_its_test_is_killed() {
    if std::env::var_os(VICTIM).is_some() {
        let server = Postgres::start().unwrap();
        // Frozen, to make it harder.
        server.stop();
        println!("\nserver {} {}", server.pid().unwrap(), server.data().display());
        thread::sleep(Duration::from_secs(600));
        return;
    }
    let mut victim = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "a_server_is_gone_with_its_files_when_its_test_is_killed", "--nocapture"])
        .env(VICTIM, "1")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(victim.stdout.take().unwrap()).lines();
    let line = lines.map(Result::unwrap).find(|line| line.starts_with("server ")).unwrap();
    let (pid, data) = line["server ".len()..].split_once(' ').unwrap();
    let (process, data) = (Path::new("/proc").join(pid), Path::new(data));
    assert!(process.exists() && data.exists());

    victim.kill().unwrap();
    victim.wait().unwrap();
    wait_until("the server is gone", || !process.exists());
    wait_until("its files are gone", || !data.parent().unwrap().exists());
}
