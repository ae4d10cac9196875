//! Code that blocks beyond its lease, in a process that ends itself over it.

use std::{
    io::Read,
    os::unix::process::ExitStatusExt,
    process::{Command, Stdio},
};

use rustix::process::Signal;
use tenure_tests::wait_until;

#[test]
fn a_process_that_blocks_beyond_its_lease_is_aborted_by_its_watchdog() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_overrun"))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut status = None;
    wait_until("it has ended", || {
        status = child.try_wait().unwrap();
        status.is_some()
    });
    assert_eq!(status.unwrap().signal(), Some(Signal::ABORT.as_raw()), "{status:?}");
    let (mut said, mut logged) = (String::new(), String::new());
    child.stdout.take().unwrap().read_to_string(&mut said).unwrap();
    child.stderr.take().unwrap().read_to_string(&mut logged).unwrap();
    assert_eq!(said, "true\n", "it held a guard");
    // Its last words.
    assert!(logged.contains("guards of its term are still held"), "{logged}");
}
