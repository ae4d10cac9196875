//! A private PgBouncer in front of a private PostgreSQL server.

use std::{fs, io, net::SocketAddr, path::PathBuf, time::Duration};

use crate::{
    instance::{Instance, Server, handles},
    postgres::Postgres,
    programs, wire,
};

/// A PgBouncer of one's own, which pools transactions and is otherwise set up as it is by default, with the fewest
/// connections to the server that its users have: three for each user and database.
///
/// It lets in whoever the server lets in, without a password but for the user [`Self::WITH_PASSWORD`].
///
/// Dropping it ends it at once and removes its files.
#[derive(Debug)]
pub struct PgBouncer {
    instance: Instance,
    program: PathBuf,
    server: SocketAddr,
}

handles!(PgBouncer);

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
        let program = programs::PGBOUNCER.find()?.join("pgbouncer");
        let instance = Instance::empty("PgBouncer", "pgbouncer")?;
        let mut pooler = Self { instance, program, server };
        pooler.launch_anew("Address already in use")?;
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
        wire::ask(self.addr(), "pgbouncer", command).map(drop)
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
        let (server, addr, data) = (self.server, self.addr(), self.data().display());
        // A user who may log in is looked up on the server, in the default way.
        let settings = format!(
            "[databases]\n\
             * = host={} port={}\n\
             [pgbouncer]\n\
             listen_addr = 127.0.0.1\n\
             listen_port = {}\n\
             unix_socket_dir =\n\
             auth_type = hba\n\
             auth_hba_file = {data}/hba\n\
             auth_user = postgres\n\
             admin_users = postgres\n\
             pool_mode = transaction\n\
             default_pool_size = 3\n",
            server.ip(),
            server.port(),
            addr.port(),
        );
        let access = format!(
            "host all {} 127.0.0.1/32 scram-sha-256\nhost all all 127.0.0.1/32 trust\n",
            Self::WITH_PASSWORD
        );
        fs::write(self.settings(), settings)?;
        fs::write(self.data().join("hba"), access)
    }

    fn settings(&self) -> PathBuf {
        self.data().join("pgbouncer.ini")
    }
}

impl Server for PgBouncer {
    fn instance(&mut self) -> &mut Instance {
        &mut self.instance
    }

    fn launch(&mut self) -> io::Result<()> {
        self.write_settings()?;
        let arguments = [self.settings().to_string_lossy().into_owned()];
        let addr = self.addr();
        // The very first connection is often not looked at before another one comes.
        let soon = Duration::from_millis(100);
        let takes_connections = || wire::hello(addr, "postgres", "pgbouncer", soon).is_ok();
        self.instance.launch(&self.program, &arguments, takes_connections)
    }
}
