//! What the private server promises, seen from outside.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{SocketAddr, TcpStream},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::mpsc,
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
fn a_server_runs_until_it_is_shut_down_or_ends_by_itself() {
    let mut server = Postgres::start().unwrap();
    server.stop();
    assert!(server.is_running());
    server.cont();
    server.shut_down().unwrap();
    assert!(!server.is_running() && server.pid().is_none());
    server.restart().unwrap();
    // As an administrator would.
    let pid = server.pid().unwrap().to_string();
    assert!(Command::new("kill").args(["-s", "TERM", &pid]).status().unwrap().success());
    wait_until("it has ended", || !server.is_running());
}

#[test]
fn a_server_is_gone_with_its_files_when_its_test_panics() {
    let (told, tells) = mpsc::channel();
    let panicking = thread::spawn(move || {
        let server = Postgres::start().unwrap();
        server.stop();
        told.send((server.pid().unwrap(), server.data().to_owned())).unwrap();
        panic!("as it is to");
    });
    panicking.join().unwrap_err();
    let (pid, data) = tells.recv().unwrap();
    assert!(!Path::new("/proc").join(pid.to_string()).exists() && !data.exists());
}

#[test]
fn servers_are_gone_with_their_files_when_their_test_is_killed() {
    if std::env::var_os(VICTIM).is_some() {
        let server = Postgres::start().unwrap();
        let standby = Postgres::standby_of(&server).unwrap();
        println!();
        for server in [&server, &standby] {
            // Frozen, to make it harder.
            server.stop();
            println!("server {} {}", server.pid().unwrap(), server.data().display());
        }
        thread::sleep(Duration::from_secs(600));
        return;
    }
    let mut victim = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "servers_are_gone_with_their_files_when_their_test_is_killed"])
        .arg("--nocapture")
        .env(VICTIM, "1")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(victim.stdout.take().unwrap()).lines();
    let servers = lines.filter_map(|line| {
        let line = line.unwrap();
        let (pid, data) = line.strip_prefix("server ")?.split_once(' ').unwrap();
        Some((Path::new("/proc").join(pid), PathBuf::from(data)))
    });
    let servers: Vec<_> = servers.take(2).collect();
    assert_eq!(servers.len(), 2);
    for (process, data) in &servers {
        assert!(process.exists() && data.exists());
    }

    victim.kill().unwrap();
    victim.wait().unwrap();
    for (process, data) in &servers {
        wait_until("the server is gone", || !process.exists());
        wait_until("its files are gone", || !data.parent().unwrap().exists());
    }
}
