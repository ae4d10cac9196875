//! A private PostgreSQL server.

use std::{
    fs,
    io::{self, Read, Write},
    net::{Ipv4Addr, SocketAddr, TcpStream},
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
    time::Duration,
};

use rustix::process::Signal;

use crate::{
    launch::{Launch, on_a_free_port},
    programs::{self, Programs},
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
    /// Starts a server of Debian's version and waits until it takes connections.
    ///
    /// # Errors
    /// If PostgreSQL is not installed (the error names the package), or does not start (the error has its log).
    pub fn start() -> io::Result<Self> {
        Self::start_version(&programs::POSTGRES)
    }

    /// The same of PostgreSQL 18.
    ///
    /// # Errors
    /// As [`start`](Self::start).
    pub fn start_18() -> io::Result<Self> {
        Self::start_version(&programs::POSTGRES_18)
    }

    fn start_version(version: &Programs) -> io::Result<Self> {
        let sandbox = Sandbox::of_this_process()?;
        let bin = version.find()?;
        let data = sandbox.fresh_path("postgres");
        sandbox.copy(&template(sandbox, &bin)?, &data)?;
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
        let addr = self.addr();
        self.running = Some(launch.run(self.sandbox, || {
            hello(addr, "postgres", "postgres", Duration::from_secs(5)).is_ok()
        })?);
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

/// A cluster that was initialized once by this version: copying it takes a tenth of the time.
fn template(sandbox: &Sandbox, bin: &Path) -> io::Result<PathBuf> {
    static TEMPLATES: Mutex<Vec<(PathBuf, PathBuf)>> = Mutex::new(Vec::new());
    let mut templates = TEMPLATES.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, data)) = templates.iter().find(|(of, _)| of == bin) {
        return Ok(data.clone());
    }
    let data = sandbox.fresh_path("template");
    initialize(sandbox, bin, &data)?;
    templates.push((bin.to_owned(), data.clone()));
    Ok(data)
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

/// Opens a connection, which is then before the first message after the request for authentication, or its success. While
/// a server starts up it answers with an error.
pub(crate) fn hello(
    addr: SocketAddr,
    user: &str,
    database: &str,
    patience: Duration,
) -> io::Result<TcpStream> {
    let mut stream = TcpStream::connect_timeout(&addr, Duration::from_secs(1))?;
    stream.set_read_timeout(Some(patience))?;
    let parameters = format!("user\0{user}\0database\0{database}\0\0");
    let version = [0, 3, 0, 0];
    let length = u32::try_from(4 + version.len() + parameters.len()).map_err(io::Error::other)?;
    stream.write_all(&[&length.to_be_bytes(), &version, parameters.as_bytes()].concat())?;
    let mut request = [0; 9];
    stream.read_exact(&mut request)?;
    if request[0] == b'R' { Ok(stream) } else { Err(io::Error::other("it takes no connections")) }
}
