//! A private PostgreSQL server.

use std::{
    fs, io,
    path::{Path, PathBuf},
    process::Command,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use rustix::process::Signal;

use crate::{
    instance::{Instance, Server, handles},
    launch::wait_until,
    programs::{self, Programs},
    sandbox::Sandbox,
    wire,
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
    instance: Instance,
    bin: PathBuf,
    /// As its command line has them.
    settings: Vec<String>,
}

handles!(Postgres, shut down by Signal::INT);

impl Postgres {
    /// Starts a server of Debian's version and waits until it takes connections.
    ///
    /// # Errors
    /// If PostgreSQL is not installed (the error names the package), or does not start (the error has its log).
    pub fn start() -> io::Result<Self> {
        Self::start_with(&[])
    }

    /// The same with further settings, by name and value, such as `("max_connections", "10")`.
    ///
    /// # Errors
    /// As [`start`](Self::start).
    pub fn start_with(settings: &[(&str, &str)]) -> io::Result<Self> {
        Self::start_version(&programs::POSTGRES, settings)
    }

    /// [`start`](Self::start) for PostgreSQL 18.
    ///
    /// # Errors
    /// As [`start`](Self::start).
    pub fn start_18() -> io::Result<Self> {
        Self::start_18_with(&[])
    }

    /// [`start_with`](Self::start_with) for PostgreSQL 18.
    ///
    /// # Errors
    /// As [`start`](Self::start).
    pub fn start_18_with(settings: &[(&str, &str)]) -> io::Result<Self> {
        Self::start_version(&programs::POSTGRES_18, settings)
    }

    fn start_version(version: &Programs, settings: &[(&str, &str)]) -> io::Result<Self> {
        let instance = Instance::new(NAME, "postgres")?;
        let bin = version.find()?;
        let sandbox = instance.sandbox();
        sandbox.copy(&template(sandbox, &bin)?, &instance.data)?;
        let settings = settings.iter().map(|(name, value)| format!("--{name}={value}")).collect();
        let mut server = Self { instance, bin, settings };
        server.launch_anew(PORT_TAKEN)?;
        Ok(server)
    }

    /// Starts a synchronous standby of `primary`, with the same settings: from when this returns, whatever the primary
    /// confirms to be committed is there as well, and the primary confirms nothing while the standby is away. It takes
    /// queries, and after [`promote`](Self::promote) also writes.
    ///
    /// A primary has one such standby, the latest.
    ///
    /// # Errors
    /// If the primary cannot be copied, or the standby does not start (the error has its log), or does not follow.
    pub fn standby_of(primary: &Self) -> io::Result<Self> {
        let (bin, settings) = (primary.bin.clone(), primary.settings.clone());
        let mut standby = Self { instance: Instance::new(NAME, "standby")?, bin, settings };
        let directory = standby.data().file_name().unwrap_or_default().to_string_lossy();
        let name = directory.replace('-', "_");
        let addr = primary.addr();
        let conninfo = format!(
            "host={} port={} user=postgres application_name={name}",
            addr.ip(),
            addr.port()
        );
        run(standby
            .command("pg_basebackup")
            .args(["--write-recovery-conf", "--wal-method=stream", "--checkpoint=fast"])
            .args(["--no-sync", "--dbname", &conninfo, "--pgdata"])
            .arg(standby.data()))?;
        // The primary may have had another standby, which is not one of this.
        let own = standby.data().join("postgresql.auto.conf");
        let inherited = fs::read_to_string(&own)?;
        fs::write(own, inherited + "synchronous_standby_names = ''\n")?;
        standby.launch_anew(PORT_TAKEN)?;
        primary.say(&format!("ALTER SYSTEM SET synchronous_standby_names = {name}"))?;
        primary.say("SELECT pg_reload_conf()")?;
        let follows = format!(
            "SELECT sync_state FROM pg_stat_replication \
             WHERE application_name = '{name}' AND state = 'streaming'"
        );
        let mut state = Vec::new();
        wait_until(|| {
            state = primary.say(&follows)?;
            Ok(state == ["sync"])
        })?
        .then_some(standby)
        .ok_or_else(|| io::Error::other(format!("the standby does not follow, but is {state:?}")))
    }

    /// Makes a standby a server of its own, and returns when it takes writes. Whether its primary is gone is not looked
    /// at.
    ///
    /// # Errors
    /// If it does not become one.
    pub fn promote(&self) -> io::Result<()> {
        run(self.command("pg_ctl").args(["promote", "--wait", "--pgdata"]).arg(self.data()))
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

    fn command(&self, program: &str) -> Command {
        self.instance.sandbox().account().command(self.bin.join(program))
    }

    fn say(&self, query: &str) -> io::Result<Vec<String>> {
        wire::ask(self.addr(), "postgres", query)
    }
}

impl Server for Postgres {
    fn instance(&mut self) -> &mut Instance {
        &mut self.instance
    }

    fn launch(&mut self) -> io::Result<()> {
        let addr = self.addr();
        let mut arguments = vec![
            "-D".to_owned(),
            self.data().to_string_lossy().into_owned(),
            format!("--port={}", addr.port()),
            "--listen_addresses=127.0.0.1".to_owned(),
            "--unix_socket_directories=".to_owned(),
            "--fsync=off".to_owned(),
            "--shared_buffers=16MB".to_owned(),
            "--max_connections=200".to_owned(),
        ];
        arguments.extend_from_slice(&self.settings);
        self.instance.launch(&self.bin.join("postgres"), &arguments, || {
            wire::hello(addr, "postgres", "postgres", Duration::from_secs(5)).is_ok()
        })
    }
}

const NAME: &str = "PostgreSQL";

/// What it logs when somebody else has its port.
const PORT_TAKEN: &str = "could not bind";

fn run(command: &mut Command) -> io::Result<()> {
    let output = command.output()?;
    if output.status.success() {
        return Ok(());
    }
    let program = command.get_program().display();
    let said = String::from_utf8_lossy(&output.stderr);
    Err(io::Error::other(format!("{program}: {}: {said}", output.status)))
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
    run(sandbox
        .account()
        .command(bin.join("initdb"))
        .args(["--no-sync", "--username=postgres", "--auth=trust", "--encoding=UTF8"])
        .args(["--no-locale", "-D"])
        .arg(data))?;
    let access = "host all +scram 127.0.0.1/32 scram-sha-256\n\
                  host all all 127.0.0.1/32 trust\n\
                  host replication postgres 127.0.0.1/32 trust\n";
    fs::write(data.join("pg_hba.conf"), access)
}
