//! A private MariaDB server.

use std::{
    io::{self, Read},
    net::{SocketAddr, TcpStream},
    path::{Path, PathBuf},
    sync::OnceLock,
    time::Duration,
};

use rustix::process::Signal;

use crate::{
    instance::{Instance, Server, handles},
    programs,
    sandbox::Sandbox,
};

/// A MariaDB server of one's own, with the user `root`, who needs no password, and the database `app`.
///
/// Crashes lose nothing, although nothing is synced to disk: what is killed here is the server, never the machine.
///
/// Dropping it ends the server at once and removes its files.
#[derive(Debug)]
pub struct Mariadb {
    instance: Instance,
    bin: PathBuf,
    options: Vec<String>,
}

handles!(Mariadb, shut down by Signal::QUIT);

impl Mariadb {
    /// Starts a server and waits until it takes connections.
    ///
    /// # Errors
    /// If MariaDB is not installed (the error names the package), or does not start (the error has its log).
    pub fn start() -> io::Result<Self> {
        Self::start_with(&[])
    }

    /// Starts a server with further options, such as `--log-bin`.
    ///
    /// # Errors
    /// As [`start`](Self::start).
    pub fn start_with(options: &[&str]) -> io::Result<Self> {
        let instance = Instance::new("MariaDB", "mariadb")?;
        let bin = programs::MARIADB.find()?;
        let sandbox = instance.sandbox();
        sandbox.copy(template(sandbox)?, &instance.data)?;
        let options = options.iter().map(ToString::to_string).collect();
        let mut server = Self { instance, bin, options };
        server.launch_anew("Do you already have another server running on port")?;
        Ok(server)
    }

    /// How to connect as `root` to the database `app`.
    #[must_use]
    pub fn url(&self) -> String {
        self.url_of("root", "app")
    }

    /// How to connect as this user, with `user:password` if it needs one, to this database.
    #[must_use]
    pub fn url_of(&self, user: &str, database: &str) -> String {
        format!("mysql://{user}@{}/{database}", self.addr())
    }

    /// [`restart`](Self::restart) with these options in place of those with which it was started.
    ///
    /// # Errors
    /// If it does not start; the error has its log.
    pub fn restart_with(&mut self, options: &[&str]) -> io::Result<()> {
        self.options = options.iter().map(ToString::to_string).collect();
        self.restart()
    }
}

impl Server for Mariadb {
    fn instance(&mut self) -> &mut Instance {
        &mut self.instance
    }

    fn launch(&mut self) -> io::Result<()> {
        let (addr, data) = (self.addr(), self.data().to_string_lossy());
        let mut arguments = vec![
            "--no-defaults".to_owned(),
            format!("--datadir={data}"),
            tmpdir(self.data()),
            format!("--port={}", addr.port()),
            "--bind-address=127.0.0.1".to_owned(),
            // One too long would keep it from starting.
            "--socket=mariadb.sock".to_owned(),
            format!("--pid-file={data}/mariadb.pid"),
            "--skip-name-resolve".to_owned(),
            // Written at each commit, and synced some time later.
            "--innodb-flush-log-at-trx-commit=2".to_owned(),
            "--innodb-buffer-pool-size=32M".to_owned(),
            "--max-connections=200".to_owned(),
        ];
        arguments.extend(FILES.map(str::to_owned));
        arguments.extend_from_slice(&self.options);
        let program = self.bin.join("mariadbd");
        self.instance.launch(&program, &arguments, || takes_connections(addr))
    }
}

/// Small files, of the same size when they are made and when they are used.
const FILES: [&str; 1] = ["--innodb-log-file-size=8M"];

/// A server that starts removes all temporary tables where it has its own: one in the directory of the machine would remove those
/// of servers that are at work.
fn tmpdir(data: &Path) -> String {
    format!("--tmpdir={}", data.display())
}

/// A directory that was initialized once: copying it takes a fraction of the time.
fn template(sandbox: &Sandbox) -> io::Result<&'static Path> {
    static TEMPLATE: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    let made = TEMPLATE.get_or_init(|| {
        let data = sandbox.fresh_path("template");
        initialize(sandbox, &data).map(|()| data).map_err(|error| error.to_string())
    });
    made.as_deref().map_err(|error| io::Error::other(error.as_str()))
}

fn initialize(sandbox: &Sandbox, data: &Path) -> io::Result<()> {
    let output = sandbox
        .account()
        .command("mariadb-install-db")
        .args(["--no-defaults", "--auth-root-authentication-method=normal", "--skip-test-db"])
        .args(["--skip-name-resolve", "--innodb-flush-log-at-trx-commit=0"])
        .args(FILES)
        .arg(format!("--datadir={}", data.display()))
        .arg(tmpdir(data))
        .output()?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(io::Error::other(format!("mariadb-install-db: {}: {said}", output.status)));
    }
    // A directory is all that a database is before it has tables.
    let made = sandbox.account().command("mkdir").arg(data.join("app")).status()?;
    if made.success() { Ok(()) } else { Err(io::Error::other(format!("mkdir: {made}"))) }
}

/// The server speaks first: its greeting begins with the length of the packet, its number, and the version of the
/// protocol. One that refuses the connection sends an error in its place.
fn takes_connections(addr: SocketAddr) -> bool {
    let greeting = || {
        let mut stream = TcpStream::connect_timeout(&addr, Duration::from_secs(1))?;
        stream.set_read_timeout(Some(Duration::from_secs(5)))?;
        let mut first = [0; 5];
        stream.read_exact(&mut first)?;
        io::Result::Ok(first[4] == 10)
    };
    greeting().unwrap_or(false)
}
