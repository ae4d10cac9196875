//! What a fleet stands on: a private server of its own, perhaps behind a pooler, and paths to it that can be broken.

mod nats;
mod session;
mod sql;

use std::{fmt, net::SocketAddr, path::PathBuf, time::Duration};

use serde_json::{Value, json};
use tempfile::TempDir;
use tenure_testbed::{Backup, Mariadb, Nats, PgBouncer, Postgres, Proxy};
use tenure_tests::connect;
use tokio::runtime::{Builder, Runtime};

pub(crate) use self::session::SqlSession;
use crate::kind::Kind;

/// The user as whom candidates come, who has no more rights than they need.
pub(crate) const USER: &str = "app";
/// Where SQL stores keep their leases.
pub(crate) const TABLE: &str = "leader_election";

/// The election that things are done to.
pub(crate) const ELECTION: &str = "chaos";
/// How long the pooler waits before it tries a server again that was away.
pub(crate) const SERVER_LOGIN_RETRY: Duration = Duration::from_secs(1);
/// Nobody who looks after a store waits for longer.
const PATIENCE: Duration = Duration::from_secs(30);

/// A store with its schema in place.
pub(crate) struct Ground {
    pub(crate) kind: Kind,
    pub(crate) server: Server,
    /// The pooler, and the path from there to its server.
    pub(crate) pooler: Option<(PgBouncer, Proxy)>,
    /// Has everything that the server has confirmed.
    standby: Option<Postgres>,
}

pub(crate) enum Server {
    Postgres(Postgres),
    Mariadb(Mariadb),
    Nats(Nats),
    /// A file, in a directory of its own.
    Sqlite(TempDir),
}

/// A candidate's own way to the store.
#[derive(Debug)]
pub(crate) struct Way {
    /// To the store or its pooler; then, if it is another one, to where the candidate listens.
    pub(crate) paths: Vec<Proxy>,
    /// What its store is configured with.
    pub(crate) config: Value,
}

impl Ground {
    pub(crate) fn new(kind: Kind) -> Self {
        let server = match kind {
            Kind::Postgres | Kind::Pooled => Server::Postgres(started(Postgres::start())),
            Kind::Postgres18 => Server::Postgres(started(Postgres::start_18())),
            Kind::Mariadb => Server::Mariadb(started(Mariadb::start())),
            Kind::Nats => Server::Nats(started(Nats::start())),
            Kind::NatsCurrent => Server::Nats(started(Nats::start_current())),
            Kind::Sqlite => Server::Sqlite(started(tempfile::tempdir())),
        };
        let mut ground = Self { kind, server, pooler: None, standby: None };
        ground.ensure_schema();
        ground.create_user();
        if kind == Kind::Pooled {
            let path = started(Proxy::start(ground.addr()));
            let pooler = started(PgBouncer::start_at(path.addr()));
            tell_pooler(&pooler);
            ground.pooler = Some((pooler, path));
        }
        ground
    }

    /// A way to the store for one more candidate.
    pub(crate) fn way(&self, user: &str) -> Way {
        let path = |to| started(Proxy::start(to));
        let postgres = |at: SocketAddr| format!("postgres://{user}@{at}/postgres");
        match (&self.server, &self.pooler) {
            (Server::Postgres(server), None) => {
                let path = path(server.addr());
                let url = postgres(path.addr());
                Way { config: json!({"url": url, "listen_url": url}), paths: vec![path] }
            }
            (Server::Postgres(server), Some((pooler, _))) => {
                let paths = vec![path(pooler.addr()), path(server.addr())];
                let [url, listen_url] = [&paths[0], &paths[1]].map(|path| postgres(path.addr()));
                Way { config: json!({"url": url, "listen_url": listen_url}), paths }
            }
            (Server::Mariadb(server), _) => {
                let path = path(server.addr());
                let url = format!("mysql://{user}@{}/app", path.addr());
                Way { config: url.into(), paths: vec![path] }
            }
            (Server::Nats(server), _) => {
                let path = path(server.addr());
                Way { config: format!("nats://{}", path.addr()).into(), paths: vec![path] }
            }
            (Server::Sqlite(_), _) => Way { config: self.config(), paths: Vec::new() },
        }
    }

    /// How the store is reached by those who look after it: directly, and with all rights.
    pub(crate) fn config(&self) -> Value {
        match &self.server {
            Server::Postgres(server) => server.url().into(),
            Server::Mariadb(server) => server.url().into(),
            Server::Nats(server) => server.url().into(),
            Server::Sqlite(_) => format!("sqlite:{}", self.file().display()).into(),
        }
    }

    /// Where the server listens.
    pub(crate) fn addr(&self) -> SocketAddr {
        match &self.server {
            Server::Postgres(server) => server.addr(),
            Server::Mariadb(server) => server.addr(),
            Server::Nats(server) => server.addr(),
            Server::Sqlite(_) => panic!("SQLite has no server"),
        }
    }

    pub(crate) fn file(&self) -> PathBuf {
        match &self.server {
            Server::Sqlite(directory) => directory.path().join("elections.db"),
            _ => panic!("{} keeps leases in no file", self.kind),
        }
    }

    /// Creates what is missing.
    pub(crate) fn ensure_schema(&self) {
        let store = connect(&self.config()).expect("the store is configured");
        runtime().block_on(store.ensure_schema()).expect("the schema can be created");
    }

    /// Freezes the server.
    pub(crate) fn stop(&self) {
        match &self.server {
            Server::Postgres(server) => server.stop(),
            Server::Mariadb(server) => server.stop(),
            Server::Nats(server) => server.stop(),
            Server::Sqlite(_) => panic!("SQLite has no server"),
        }
    }

    /// Lets it go on.
    pub(crate) fn cont(&self) {
        match &self.server {
            Server::Postgres(server) => server.cont(),
            Server::Mariadb(server) => server.cont(),
            Server::Nats(server) => server.cont(),
            Server::Sqlite(_) => panic!("SQLite has no server"),
        }
    }

    /// Kills the server.
    pub(crate) fn kill(&mut self) {
        match &mut self.server {
            Server::Postgres(server) => server.kill(),
            Server::Mariadb(server) => server.kill(),
            Server::Nats(server) => server.kill(),
            Server::Sqlite(_) => panic!("SQLite has no server"),
        }
        .expect("the server can be killed");
    }

    /// Starts it again, in order if it still runs.
    pub(crate) fn restart(&mut self) {
        match &mut self.server {
            Server::Postgres(server) => server.restart(),
            Server::Mariadb(server) => server.restart(),
            Server::Nats(server) => server.restart(),
            Server::Sqlite(_) => panic!("SQLite has no server"),
        }
        .expect("the server starts again");
    }

    /// Starts a server that has everything which this one confirms.
    pub(crate) fn start_standby(&mut self) {
        let Server::Postgres(primary) = &self.server else { panic!("{} has none", self.kind) };
        self.standby = Some(started(Postgres::standby_of(primary)));
    }

    /// The standby takes the place of the server, which is gone.
    pub(crate) fn promote(&mut self) {
        let standby = self.standby.take().expect("it was started before");
        standby.promote().expect("the standby is promoted");
        self.server = Server::Postgres(standby);
    }

    /// A copy of everything, for which the server is down for a moment.
    pub(crate) fn back_up(&mut self) -> Backup {
        let backup = match &mut self.server {
            Server::Postgres(server) => server.back_up(),
            Server::Mariadb(server) => server.back_up(),
            Server::Nats(server) => server.back_up(),
            Server::Sqlite(_) => panic!("SQLite has no server"),
        };
        backup.expect("the server is copied")
    }

    /// The server is started again with what it had then.
    pub(crate) fn restore(&mut self, backup: &Backup) {
        match &mut self.server {
            Server::Postgres(server) => server.restore(backup),
            Server::Mariadb(server) => server.restore(backup),
            Server::Nats(server) => server.restore(backup),
            Server::Sqlite(_) => panic!("SQLite has no server"),
        }
        .expect("the server starts with what it had");
    }

    pub(crate) fn pooler(&mut self) -> &mut PgBouncer {
        &mut self.pooler.as_mut().expect("a scenario that needs a pooler says so").0
    }

    /// Kills the pooler and starts it again.
    pub(crate) fn restart_pooler(&mut self) {
        self.pooler().restart().expect("the pooler starts again");
        tell_pooler(self.pooler());
    }
}

/// A server that is away is tried again soon: by default it takes 15 s.
fn tell_pooler(pooler: &PgBouncer) {
    let set = format!("SET server_login_retry = {}", SERVER_LOGIN_RETRY.as_secs());
    pooler.command(&set).expect("the pooler takes a setting");
}

fn started<T, E: fmt::Display>(outcome: Result<T, E>) -> T {
    outcome.unwrap_or_else(|error| panic!("what the scenario stands on does not start: {error}"))
}

fn runtime() -> Runtime {
    Builder::new_current_thread().enable_all().build().expect("there are threads")
}
