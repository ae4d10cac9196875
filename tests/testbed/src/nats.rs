//! A private NATS server with JetStream.

use std::{
    fs,
    io::{self, Read, Write},
    net::{SocketAddr, TcpStream},
    path::PathBuf,
    time::Duration,
};

use rustix::process::Signal;

use crate::{
    instance::{Instance, Server, handles},
    programs::{self, Programs},
};

/// A NATS server of one's own.
///
/// Everybody may connect and do everything, unless its settings say otherwise. A crash loses nothing of what is stored in
/// files: what is killed here is the server, never the machine.
///
/// Dropping it ends the server at once and removes its files.
#[derive(Debug)]
pub struct Nats {
    instance: Instance,
    program: PathBuf,
    settings: String,
}

handles!(Nats, shut down by Signal::INT);

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
        let program = programs.find()?.join("nats-server");
        let instance = Instance::empty("NATS", "nats")?;
        let mut server = Self { instance, program, settings: settings.to_owned() };
        server.launch_anew("address already in use")?;
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
}

impl Server for Nats {
    fn instance(&mut self) -> &mut Instance {
        &mut self.instance
    }

    fn launch(&mut self) -> io::Result<()> {
        let (addr, data) = (self.addr(), self.data());
        let settings = data.join("settings.conf");
        fs::write(&settings, &self.settings)?;
        let arguments = [
            "--config",
            &settings.to_string_lossy(),
            "--addr",
            "127.0.0.1",
            "--port",
            &addr.port().to_string(),
            "--store_dir",
            &data.to_string_lossy(),
        ]
        .map(String::from);
        self.instance.launch(&self.program, &arguments, || takes_connections(addr))
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
