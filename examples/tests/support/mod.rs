//! Runs the example programs as users do.

// Each test program uses a part of it, and all of it is for tests.
#![allow(dead_code, clippy::unwrap_used)]

pub(crate) mod failover;

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    path::PathBuf,
    process::{Child, ChildStdout, Command, ExitStatus, Stdio},
    thread,
    time::Duration,
};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

/// How often a condition is looked at, and for how long at most.
const LOOK: Duration = Duration::from_millis(20);
const LOOKS: usize = 1500;

/// The program of an example, which cargo builds beside the tests of its package.
pub(crate) fn example(name: &str) -> Command {
    let test = std::env::current_exe().unwrap();
    let program: PathBuf = test.ancestors().nth(2).unwrap().join("examples").join(name);
    assert!(
        program.is_file(),
        "{} is missing: build it with `cargo test -p tenure-examples --no-run`",
        program.display()
    );
    Command::new(program)
}

/// Looks until `condition` gives something.
pub(crate) fn wait_for<T>(what: &str, mut condition: impl FnMut() -> Option<T>) -> T {
    for _ in 0..LOOKS {
        if let Some(found) = condition() {
            return found;
        }
        thread::sleep(LOOK);
    }
    panic!("waited in vain until {what}");
}

/// A running replica: the `axum` example, or another that serves. Killed when dropped.
pub(crate) struct Replica {
    child: Child,
    address: String,
    _stdout: BufReader<ChildStdout>,
}

/// An HTTP response.
#[derive(Debug)]
pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Replica {
    pub(crate) fn start(flags: &[&str]) -> Self {
        Self::start_as(&["axum"], flags)
    }

    /// Starts another program, named with its subcommand if it has one.
    pub(crate) fn start_as(program: &[&str], flags: &[&str]) -> Self {
        let mut child = example(program[0])
            .args(&program[1..])
            .args(["--listen", "127.0.0.1:0"])
            .args(flags)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        stdout.read_line(&mut line).unwrap();
        let address = line
            .strip_prefix("listening on http://")
            .and_then(|rest| rest.split_once(' '))
            .map(|(address, _)| address.to_owned())
            .unwrap_or_else(|| panic!("the first line is {line:?}"));
        Self { child, address, _stdout: stdout }
    }

    /// Host and port.
    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    /// Waits until it says of itself that it leads.
    pub(crate) fn is_leader(&self) {
        wait_for("a replica leads", || (self.get("/leader").status == 200).then_some(()));
    }

    pub(crate) fn get(&self, path: &str) -> Response {
        Exchange::begin(&self.address, "GET", path).finish()
    }

    pub(crate) fn post(&self, path: &str) -> Response {
        Exchange::begin(&self.address, "POST", path).finish()
    }

    /// Sends a request and waits for the head of its response: from then on it is in flight.
    pub(crate) fn begin_get(&self, path: &str) -> Exchange {
        Exchange::begin(&self.address, "GET", path)
    }

    /// Waits until it leads; what `POST /jobs` answers then.
    pub(crate) fn leads(&self) -> Value {
        wait_for("a replica leads", || {
            let response = self.post("/jobs");
            (response.status == 200).then(|| response.json())
        })
    }

    pub(crate) fn terminate(&self) {
        let pid = Pid::from_raw(self.child.id().cast_signed()).unwrap();
        kill_process(pid, Signal::TERM).unwrap();
    }

    pub(crate) fn exited(mut self) -> ExitStatus {
        wait_for("a replica has exited", || self.child.try_wait().unwrap())
    }
}

impl Drop for Replica {
    fn drop(&mut self) {
        // Both fail if it has exited already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Response {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error} in {self:?}"))
    }
}

/// A request that was sent, and the head of its response.
pub(crate) struct Exchange {
    head: String,
    body: BufReader<TcpStream>,
}

impl Exchange {
    /// Speaks HTTP/1.0, so that the body ends with the connection.
    fn begin(address: &str, method: &str, path: &str) -> Self {
        let mut connection = TcpStream::connect(address).unwrap();
        connection.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        // Some servers refuse a POST of HTTP/1.0 that does not say how long it is.
        let head =
            format!("{method} {path} HTTP/1.0\r\nhost: {address}\r\ncontent-length: 0\r\n\r\n");
        connection.write_all(head.as_bytes()).unwrap();
        let (mut head, mut body) = (String::new(), BufReader::new(connection));
        while !head.ends_with("\r\n\r\n") {
            assert_ne!(body.read_line(&mut head).unwrap(), 0, "the head ends early: {head:?}");
        }
        Self { head: head.to_lowercase(), body }
    }

    pub(crate) fn finish(mut self) -> Response {
        let mut body = String::new();
        self.body.read_to_string(&mut body).unwrap();
        let status = self.head.split(' ').nth(1).and_then(|status| status.parse().ok());
        Response { status: status.unwrap(), head: self.head, body }
    }
}
