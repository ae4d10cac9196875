//! A private PgBouncer in front of a private PostgreSQL server.

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
    postgres::{Postgres, hello},
    programs,
    sandbox::Sandbox,
    supervisor::Supervisor,
};

/// A PgBouncer of one's own, which pools transactions and is otherwise set up as it is by default, with the fewest
/// connections to the server that its users have: three for each user and database.
///
/// It lets in whoever the server lets in, without a password but for the user [`Self::WITH_PASSWORD`].
///
/// Dropping it ends it at once and removes its files.
#[derive(Debug)]
pub struct PgBouncer {
    program: PathBuf,
    sandbox: &'static Sandbox,
    data: PathBuf,
    server: SocketAddr,
    port: u16,
    /// `None` while it is down.
    running: Option<Supervisor>,
}

impl PgBouncer {
    /// The one user who is asked for a password. That of the server, once it has been created there: the rules of
    /// PgBouncer know names and no roles.
    pub const WITH_PASSWORD: &str = "alice";

    /// Starts it in front of `server`, and waits until it takes connections.
    ///
    /// # Errors
    /// If PgBouncer is not installed (the error names the package), or does not start (the error has its log).
    pub fn start(server: &Postgres) -> io::Result<Self> {
        Self::start_at(server.addr())
    }

    /// The same in front of a server that is reached here, perhaps by a [`Proxy`](crate::Proxy).
    ///
    /// # Errors
    /// As [`start`](Self::start).
    pub fn start_at(server: SocketAddr) -> io::Result<Self> {
        let sandbox = Sandbox::of_this_process()?;
        let program = programs::PGBOUNCER.find()?.join("pgbouncer");
        let data = sandbox.fresh_path("pgbouncer");
        fs::create_dir(&data)?;
        sandbox.account().give(&data)?;
        let mut pooler = Self { program, sandbox, data, server, port: 0, running: None };
        on_a_free_port("Address already in use", |port| {
            pooler.port = port;
            pooler.write_settings()?;
            pooler.launch()
        })?;
        Ok(pooler)
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

    /// Where its files are.
    #[must_use]
    pub fn data(&self) -> &Path {
        &self.data
    }

    /// Its log.
    #[must_use]
    pub fn log(&self) -> PathBuf {
        self.data.join("testbed.log")
    }

    /// The process id, while it runs.
    #[must_use]
    pub fn pid(&self) -> Option<i32> {
        self.running.as_ref().map(Supervisor::pid)
    }

    /// Freezes it: connections stay open, nothing answers.
    pub fn stop(&self) {
        self.signal(Signal::STOP);
    }

    /// Lets it go on.
    pub fn cont(&self) {
        self.signal(Signal::CONT);
    }

    /// Has it hand out no connection to the server until [`resume`](Self::resume): clients wait. Returns when every
    /// transaction that was under way is done.
    ///
    /// # Errors
    /// If it does not do so.
    pub fn pause(&self) -> io::Result<()> {
        self.command("PAUSE")
    }

    /// Lets clients go on after [`pause`](Self::pause).
    ///
    /// # Errors
    /// If it does not do so.
    pub fn resume(&self) -> io::Result<()> {
        self.command("RESUME")
    }

    /// Gives a command to its console, for example a setting: `SET query_wait_timeout = 1`.
    ///
    /// # Errors
    /// If it refuses the command, with what it says.
    pub fn command(&self, command: &str) -> io::Result<()> {
        let mut console = hello(self.addr(), "postgres", "pgbouncer", Duration::from_secs(5))?;
        until_ready(&mut console)?;
        let length = u32::try_from(command.len() + 5).map_err(io::Error::other)?;
        let query = [b"Q", &length.to_be_bytes()[..], command.as_bytes(), b"\0"].concat();
        console.write_all(&query)?;
        // It may have to wait for others.
        console.set_read_timeout(None)?;
        until_ready(&mut console)
    }

    /// Kills it: all connections break. [`restart`](Self::restart) brings it back.
    ///
    /// # Errors
    /// If it cannot be waited for.
    pub fn kill(&mut self) -> io::Result<()> {
        self.running.take().map_or(Ok(()), |mut pooler| pooler.end(Signal::KILL))
    }

    /// Starts it again, on the same port, after killing it if it still runs.
    ///
    /// # Errors
    /// If it does not start; the error has its log.
    pub fn restart(&mut self) -> io::Result<()> {
        self.kill()?;
        self.launch()
    }

    fn write_settings(&self) -> io::Result<()> {
        let (server, port, data) = (self.server, self.port, self.data.display());
        // A user who may log in is looked up on the server, in the default way.
        let settings = format!(
            "[databases]\n\
             * = host={} port={}\n\
             [pgbouncer]\n\
             listen_addr = 127.0.0.1\n\
             listen_port = {port}\n\
             unix_socket_dir =\n\
             auth_type = hba\n\
             auth_hba_file = {data}/hba\n\
             auth_user = postgres\n\
             admin_users = postgres\n\
             pool_mode = transaction\n\
             default_pool_size = 3\n",
            server.ip(),
            server.port(),
        );
        let access = format!(
            "host all {} 127.0.0.1/32 scram-sha-256\nhost all all 127.0.0.1/32 trust\n",
            Self::WITH_PASSWORD
        );
        fs::write(self.settings(), settings)?;
        fs::write(self.data.join("hba"), access)
    }

    fn settings(&self) -> PathBuf {
        self.data.join("pgbouncer.ini")
    }

    fn launch(&mut self) -> io::Result<()> {
        let launch = Launch {
            name: "PgBouncer",
            program: &self.program,
            arguments: &[self.settings().to_string_lossy().into_owned()],
            log: &self.log(),
        };
        let addr = self.addr();
        // The very first connection is often not looked at before another one comes.
        let soon = Duration::from_millis(100);
        let takes_connections = || hello(addr, "postgres", "pgbouncer", soon).is_ok();
        self.running = Some(launch.run(self.sandbox, takes_connections)?);
        Ok(())
    }

    fn signal(&self, signal: Signal) {
        if let Some(pooler) = &self.running {
            pooler.signal_all(signal);
        }
    }
}

impl Drop for PgBouncer {
    fn drop(&mut self) {
        self.running = None;
        // What is left, if anything, goes with the sandbox.
        let _ = fs::remove_dir_all(&self.data);
    }
}

/// Reads messages up to the one that says that the next query may come.
fn until_ready(console: &mut TcpStream) -> io::Result<()> {
    let mut outcome = Ok(());
    loop {
        let mut head = [0; 5];
        console.read_exact(&mut head)?;
        let length = u32::from_be_bytes([head[1], head[2], head[3], head[4]]).saturating_sub(4);
        let mut body = Vec::new();
        console.take(length.into()).read_to_end(&mut body)?;
        match head[0] {
            b'E' => outcome = Err(io::Error::other(String::from_utf8_lossy(&body).into_owned())),
            b'Z' => return outcome,
            _ => {}
        }
    }
}
