//! A private PostgreSQL server.

use std::{
    fs,
    io::{self, Read, Write},
    net::{Ipv4Addr, SocketAddr, TcpStream},
    path::{Path, PathBuf},
    sync::OnceLock,
    time::Duration,
};

use rustix::process::Signal;

use crate::{
    launch::{Launch, on_a_free_port},
    programs,
    sandbox::Sandbox,
    supervisor::Supervisor,
};

/// A PostgreSQL server of one's own, with the superuser `postgres` and the database `postgres`.
///
/// Everybody may connect without a password, except members of a role named `scram`, which need theirs: a test that
/// wants to be refused creates it. Crashes lose nothing, although nothing is synced to disk: what is killed here is the
/// server, never the machine.
///
/// Dropping it ends the server at once and removes its files.
#[derive(Debug)]
pub struct Postgres {
    bin: PathBuf,
    sandbox: &'static Sandbox,
    data: PathBuf,
    port: u16,
    /// `None` while it is down.
    running: Option<Supervisor>,
}

impl Postgres {
    /// Starts a server and waits until it takes connections.
    ///
    /// # Errors
    /// If PostgreSQL is not installed (the error names the package), or does not start (the error has its log).
    pub fn start() -> io::Result<Self> {
        let sandbox = Sandbox::of_this_process()?;
        let bin = programs::POSTGRES.find()?;
        let data = sandbox.fresh_path("postgres");
        sandbox.copy(template(sandbox, &bin)?, &data)?;
        let mut server = Self { bin, sandbox, data, port: 0, running: None };
        on_a_free_port("could not bind", |port| {
            server.port = port;
            server.launch()
        })?;
        Ok(server)
    }

    /// How to connect as the superuser to the database `postgres`.
    #[must_use]
    pub fn url(&self) -> String {
        self.url_of("postgres", "postgres")
    }

    /// How to connect as this user, with `user:password` if it needs one, to this database.
    #[must_use]
    pub fn url_of(&self, user: &str, database: &str) -> String {
        format!("postgres://{user}@{}/{database}", self.addr())
    }

    /// Where it listens.
    #[must_use]
    pub fn addr(&self) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, self.port).into()
    }

    /// Where its files are, among them its log, `testbed.log`.
    #[must_use]
    pub fn data(&self) -> &Path {
        &self.data
    }

    /// The process id of the server's main process, while it runs.
    #[must_use]
    pub fn pid(&self) -> Option<i32> {
        self.running.as_ref().map(Supervisor::pid)
    }

    /// Freezes the server and all its connections: they stay open, and nothing answers.
    pub fn stop(&self) {
        self.signal(Signal::STOP);
    }

    /// Lets a frozen server go on.
    pub fn cont(&self) {
        self.signal(Signal::CONT);
    }

    /// Kills the server with all its connections, as a crash would. [`restart`](Self::restart) brings it back.
    ///
    /// # Errors
    /// If it cannot be waited for.
    pub fn kill(&mut self) -> io::Result<()> {
        self.end(Signal::KILL)
    }

    /// Shuts down the server in an orderly way: transactions are rolled back, clients are told.
    /// [`restart`](Self::restart) brings it back.
    ///
    /// # Errors
    /// If it cannot be waited for.
    pub fn shut_down(&mut self) -> io::Result<()> {
        self.end(Signal::INT)
    }

    /// Starts it again, on the same port and with the same data, after shutting it down if it still runs.
    ///
    /// # Errors
    /// If it does not start; the error has its log.
    pub fn restart(&mut self) -> io::Result<()> {
        self.shut_down()?;
        self.launch()
    }

    fn launch(&mut self) -> io::Result<()> {
        let arguments = [
            "-D",
            &self.data.to_string_lossy(),
            "-p",
            &self.port.to_string(),
            "-c",
            "listen_addresses=127.0.0.1",
            "-c",
            "unix_socket_directories=",
            "-c",
            "fsync=off",
            "-c",
            "shared_buffers=16MB",
            "-c",
            "max_connections=200",
        ]
        .map(String::from);
        let launch = Launch {
            name: "PostgreSQL",
            program: &self.bin.join("postgres"),
            arguments: &arguments,
            log: &self.data.join("testbed.log"),
        };
        self.running = Some(launch.run(self.sandbox, || takes_connections(self.addr()))?);
        Ok(())
    }

    fn signal(&self, signal: Signal) {
        if let Some(server) = &self.running {
            server.signal_all(signal);
        }
    }

    fn end(&mut self, signal: Signal) -> io::Result<()> {
        self.running.take().map_or(Ok(()), |mut server| server.end(signal))
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        self.running = None;
        // What is left, if anything, goes with the sandbox.
        let _ = fs::remove_dir_all(&self.data);
    }
}

/// A cluster that was initialized once: copying it takes a tenth of the time.
fn template(sandbox: &Sandbox, bin: &Path) -> io::Result<&'static Path> {
    static TEMPLATE: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    let made = TEMPLATE.get_or_init(|| {
        let data = sandbox.fresh_path("template");
        initialize(sandbox, bin, &data).map(|()| data).map_err(|error| error.to_string())
    });
    made.as_deref().map_err(|error| io::Error::other(error.as_str()))
}

fn initialize(sandbox: &Sandbox, bin: &Path, data: &Path) -> io::Result<()> {
    let output = sandbox
        .account()
        .command(bin.join("initdb"))
        .args(["--no-sync", "--username=postgres", "--auth=trust", "--encoding=UTF8"])
        .args(["--no-locale", "-D"])
        .arg(data)
        .output()?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(io::Error::other(format!("initdb: {}: {said}", output.status)));
    }
    let access = "host all +scram 127.0.0.1/32 scram-sha-256\nhost all all 127.0.0.1/32 trust\n";
    fs::write(data.join("pg_hba.conf"), access)
}

/// Says hello as `postgres`, and sees whether that is answered by a request for authentication, or its success: while
/// the server starts up it answers with an error.
fn takes_connections(addr: SocketAddr) -> bool {
    let hello = || {
        let mut stream = TcpStream::connect_timeout(&addr, Duration::from_secs(1))?;
        stream.set_read_timeout(Some(Duration::from_secs(5)))?;
        let parameters = b"\x00\x03\x00\x00user\0postgres\0database\0postgres\0\0";
        let length = u32::try_from(parameters.len() + 4).map_err(io::Error::other)?;
        stream.write_all(&[&length.to_be_bytes(), parameters.as_slice()].concat())?;
        let mut first = [0];
        stream.read_exact(&mut first)?;
        io::Result::Ok(first == *b"R")
    };
    hello().unwrap_or(false)
}
