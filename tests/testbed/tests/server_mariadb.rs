//! What the private server promises, seen from outside.

use std::{
    env, fs,
    io::Read,
    net::{SocketAddr, TcpStream},
    os::unix::fs::{MetadataExt, chown},
    path::Path,
    process,
    time::Duration,
};

use tenure_testbed::Mariadb;

/// The version of the protocol, with which the server's greeting begins.
fn greeting(addr: SocketAddr, patience: Duration) -> std::io::Result<u8> {
    let mut stream = TcpStream::connect(addr)?;
    stream.set_read_timeout(Some(patience))?;
    let mut first = [0; 5];
    stream.read_exact(&mut first)?;
    Ok(first[4])
}

#[test]
fn a_frozen_server_is_silent_and_goes_on_and_a_killed_one_comes_back_where_it_was() {
    let mut server = Mariadb::start().unwrap();
    let (addr, long) = (server.addr(), Duration::from_secs(30));
    assert!(addr.ip().is_loopback());
    assert_eq!(greeting(addr, long).unwrap(), 10);

    server.stop();
    greeting(addr, Duration::from_millis(100)).unwrap_err();
    server.cont();
    assert_eq!(greeting(addr, long).unwrap(), 10);

    server.kill().unwrap();
    greeting(addr, long).unwrap_err();
    server.restart().unwrap();
    assert_eq!((greeting(addr, long).unwrap(), server.addr()), (10, addr));
}

#[test]
fn two_servers_do_not_touch_each_other_and_leave_nothing_behind() {
    let (one, other) = (Mariadb::start().unwrap(), Mariadb::start().unwrap());
    assert_ne!((one.addr(), one.data()), (other.addr(), other.data()));
    let process = Path::new("/proc").join(one.pid().unwrap().to_string());
    let data = one.data().to_owned();
    assert!(process.exists() && data.exists());
    drop(one);
    assert!(!process.exists() && !data.exists());
    assert_eq!(greeting(other.addr(), Duration::from_secs(30)).unwrap(), 10);
}

/// When it starts, it removes what it takes for tables that it left there before it crashed.
#[test]
fn a_server_that_starts_leaves_the_temporary_tables_of_others_alone() {
    let other = Mariadb::start().unwrap();
    let owner = other.data().metadata().unwrap();
    let tables = [env::temp_dir().as_path(), other.data()]
        .map(|at| at.join(format!("#sql-temptable-{}.MAI", process::id())));
    for table in &tables {
        fs::write(table, "").unwrap();
        chown(table, Some(owner.uid()), Some(owner.gid())).unwrap();
    }
    let _server = Mariadb::start().unwrap();
    let left = tables.each_ref().map(|table| fs::remove_file(table).is_ok());
    assert_eq!(left, [true, true], "{tables:?}");
}

#[test]
fn an_option_that_the_server_does_not_know_is_an_error_with_its_log() {
    let error = Mariadb::start_with(&["--no-such-option"]).unwrap_err();
    assert!(error.to_string().contains("unknown option"), "{error}");
}

#[test]
fn a_restored_server_has_the_files_that_it_had() {
    let mut server = Mariadb::start().unwrap();
    let backup = server.back_up().unwrap();
    assert!(server.is_running());
    let since = server.data().join("since");
    fs::write(&since, "then").unwrap();
    server.restore(&backup).unwrap();
    assert!(!since.exists());
    assert_eq!(greeting(server.addr(), Duration::from_secs(30)).unwrap(), 10);
}
