//! A private NATS server with JetStream.

use std::{
    fs,
    io::{self, Read, Write},
    net::{Ipv4Addr, SocketAddr, TcpStream},
    path::{Path, PathBuf},
    time::Duration,
};

use rustix::process::Signal;

use crate::{
    launch::{Launch, on_a_free_port},
    programs::{self, Programs},
    sandbox::Sandbox,
    supervisor::Supervisor,
};

/// A NATS server of one's own.
///
/// Everybody may connect and do everything, unless its settings say otherwise. A crash loses nothing of what is stored in
/// files: what is killed here is the server, never the machine.
///
/// Dropping it ends the server at once and removes its files.
#[derive(Debug)]
pub struct Nats {
    program: PathBuf,
    sandbox: &'static Sandbox,
    data: PathBuf,
    settings: String,
    port: u16,
    /// `None` while it is down.
    running: Option<Supervisor>,
}

impl Nats {
    /// Starts the server that Debian has, 2.9, with JetStream.
    ///
    /// # Errors
    /// If it is not installed (the error names the package), or does not start (the error has its log).
    pub fn start() -> io::Result<Self> {
        Self::start_with(&programs::NATS, "jetstream {}")
    }

    /// Starts a current server, with JetStream.
    ///
    /// # Errors
    /// As [`start`](Self::start).
    pub fn start_current() -> io::Result<Self> {
        Self::start_with(&programs::NATS_CURRENT, "jetstream {}")
    }

    /// Starts one of the two, with these settings in the server's own language, and waits until it takes connections.
    /// Without a block `jetstream` among them, it has no JetStream.
    ///
    /// # Errors
    /// As [`start`](Self::start).
    pub fn start_with(programs: &Programs, settings: &str) -> io::Result<Self> {
        let sandbox = Sandbox::of_this_process()?;
        let program = programs.find()?.join("nats-server");
        let data = sandbox.fresh_path("nats");
        fs::create_dir(&data)?;
        sandbox.account().give(&data)?;
        let settings = settings.to_owned();
        let mut server = Self { program, sandbox, data, settings, port: 0, running: None };
        on_a_free_port("address already in use", |port| {
            server.port = port;
            server.launch()
        })?;
        Ok(server)
    }

    /// How to connect.
    #[must_use]
    pub fn url(&self) -> String {
        format!("nats://{}", self.addr())
    }

    /// How to connect with this login, `user:password` or a token.
    #[must_use]
    pub fn url_of(&self, login: &str) -> String {
        format!("nats://{login}@{}", self.addr())
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

    /// The process id of the server, while it runs.
    #[must_use]
    pub fn pid(&self) -> Option<i32> {
        self.running.as_ref().map(Supervisor::pid)
    }

    /// Freezes the server: connections stay open, and nothing answers.
    pub fn stop(&self) {
        self.signal(Signal::STOP);
    }

    /// Lets a frozen server go on.
    pub fn cont(&self) {
        self.signal(Signal::CONT);
    }

    /// Kills the server, as a crash would. [`restart`](Self::restart) brings it back.
    ///
    /// # Errors
    /// If it cannot be waited for.
    pub fn kill(&mut self) -> io::Result<()> {
        self.end(Signal::KILL)
    }

    /// Shuts down the server in an orderly way. [`restart`](Self::restart) brings it back.
    ///
    /// # Errors
    /// If it cannot be waited for.
    pub fn shut_down(&mut self) -> io::Result<()> {
        self.end(Signal::INT)
    }

    /// Starts it again, on the same port and with the same files, after shutting it down if it still runs.
    ///
    /// # Errors
    /// If it does not start; the error has its log.
    pub fn restart(&mut self) -> io::Result<()> {
        self.shut_down()?;
        self.launch()
    }

    fn launch(&mut self) -> io::Result<()> {
        let settings = self.data.join("settings.conf");
        fs::write(&settings, &self.settings)?;
        let arguments = [
            "--config",
            &settings.to_string_lossy(),
            "--addr",
            "127.0.0.1",
            "--port",
            &self.port.to_string(),
            "--store_dir",
            &self.data.to_string_lossy(),
        ]
        .map(String::from);
        let launch = Launch {
            name: "NATS",
            program: &self.program,
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

impl Drop for Nats {
    fn drop(&mut self) {
        self.running = None;
        // What is left, if anything, goes with the sandbox.
        let _ = fs::remove_dir_all(&self.data);
    }
}

/// Connects, and sees whether the server introduces itself. It has read the files of JetStream by then.
fn takes_connections(addr: SocketAddr) -> bool {
    let hello = || {
        let mut stream = TcpStream::connect_timeout(&addr, Duration::from_secs(1))?;
        stream.set_read_timeout(Some(Duration::from_secs(5)))?;
        let mut first = [0; 4];
        stream.read_exact(&mut first)?;
        // It would log that the client left without a word.
        stream.write_all(b"PING\r\n")?;
        io::Result::Ok(first == *b"INFO")
    };
    hello().unwrap_or(false)
}
