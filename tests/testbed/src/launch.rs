//! Starting a server, and waiting until it takes connections.

// Tests wait in real time; no election is judged by it.
#![allow(clippy::disallowed_methods)]

use std::{
    fs, io,
    net::{Ipv4Addr, TcpListener},
    path::Path,
    thread,
    time::{Duration, Instant},
};

use crate::{sandbox::Sandbox, supervisor::Supervisor};

/// How long a start may take; it takes a fraction of a second unless the machine is very busy.
const LIMIT: Duration = Duration::from_secs(60);

/// How to start a server.
pub(crate) struct Launch<'a> {
    /// What people call it.
    pub(crate) name: &'static str,
    pub(crate) program: &'a Path,
    pub(crate) arguments: &'a [String],
    /// What it prints goes here, in place of what an earlier run printed.
    pub(crate) log: &'a Path,
}

impl Launch<'_> {
    /// Starts it as the sandbox's account, and waits until `takes_connections`.
    pub(crate) fn run(
        &self,
        sandbox: &Sandbox,
        takes_connections: impl Fn() -> bool,
    ) -> io::Result<Supervisor> {
        let Self { name, program, arguments, log } = self;
        if let Err(error) = fs::remove_file(log)
            && error.kind() != io::ErrorKind::NotFound
        {
            return Err(error);
        }
        let server = Supervisor::start(sandbox.account(), program, *arguments, log)?;
        let failed = |why: &str| {
            let said = fs::read_to_string(log).unwrap_or_default();
            io::Error::other(format!("{name} {why}; its log:\n{said}"))
        };
        let started = wait_until(|| Ok(takes_connections() || server.has_exited()))?;
        // Somebody else's server on this port would answer as well.
        if server.has_exited() {
            return Err(failed("did not start"));
        }
        if started { Ok(server) } else { Err(failed("took no connections within a minute")) }
    }
}

/// Waits until this holds, and says whether it came to that in time.
pub(crate) fn wait_until(mut holds: impl FnMut() -> io::Result<bool>) -> io::Result<bool> {
    let started = Instant::now();
    while !holds()? {
        if started.elapsed() > LIMIT {
            return Ok(false);
        }
        thread::sleep(Duration::from_millis(10));
    }
    Ok(true)
}

/// Starts a server on a port that is free. Somebody else may take it between our look and the server's, which its log
/// then says in these words.
pub(crate) fn on_a_free_port(
    taken: &str,
    mut start: impl FnMut(u16) -> io::Result<()>,
) -> io::Result<()> {
    for _ in 0..4 {
        match start(free_port()?) {
            Err(error) if error.to_string().contains(taken) => {}
            outcome => return outcome,
        }
    }
    start(free_port()?)
}

fn free_port() -> io::Result<u16> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port())
}
