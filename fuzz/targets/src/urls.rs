//! Any text as the URL of any store: nothing panics, no secret is repeated, and what is accepted touches nothing.
//!
//! In the text, `{secret}` stands for a secret, `{server}` for the address of a server that must not be connected to, and
//! `{directory}` for a directory in which nothing may be created.

use std::{error::Error, fmt::Debug, fs, io::ErrorKind, net::TcpListener, sync::LazyLock};

use tempfile::TempDir;
use tenure_mysql::MysqlStore;
use tenure_nats::NatsStore;
use tenure_postgres::PostgresStore;
use tenure_sqlite::SqliteStore;

use crate::secrets::{SECRET, everything, is_a_password, may_be_a_password};

pub(crate) fn check(bytes: &[u8]) {
    let url = filled_in(&String::from_utf8_lossy(bytes));
    says_nothing_secret(&url, PostgresStore::new(&url));
    let listening = PostgresStore::new("postgres://db/app").unwrap().listen_url(&url);
    says_nothing_secret(&url, listening);
    says_nothing_secret(&url, MysqlStore::new(&url));
    says_nothing_secret(&url, NatsStore::new(&url));
    // What stands in a path is no password, and it is told which file is meant.
    if !url.starts_with("sqlite:") {
        says_nothing_secret(&url, SqliteStore::new(&url).map(drop));
        says_nothing_secret(&url, tenure_config::connect(&url).map(drop));
    } else {
        let _ = SqliteStore::new(&url);
        let _ = tenure_config::connect(&url);
    }
    nothing_was_touched();
}

fn says_nothing_secret<T: Debug, E: Error + 'static>(url: &str, made: Result<T, E>) {
    match made {
        Ok(store) if is_a_password(url) => {
            let said = format!("{store:?}");
            assert!(!said.contains(SECRET), "{url}: {said}");
        }
        Err(error) if may_be_a_password(url) => {
            let said = everything(&error);
            assert!(!said.contains(SECRET), "{url}: {said}");
        }
        _ => {}
    }
}

/// A server to which nobody may connect.
static SERVER: LazyLock<TcpListener> = LazyLock::new(|| {
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    server.set_nonblocking(true).unwrap();
    server
});
/// A directory in which nobody may create anything.
static DIRECTORY: LazyLock<TempDir> = LazyLock::new(|| tempfile::tempdir().unwrap());

pub(crate) fn filled_in(text: &str) -> String {
    let server = SERVER.local_addr().unwrap().to_string();
    let directory = DIRECTORY.path().to_str().unwrap();
    text.replace("{secret}", SECRET).replace("{server}", &server).replace("{directory}", directory)
}

pub(crate) fn nothing_was_touched() {
    let connected = SERVER.accept().map(|_| ()).map_err(|error| error.kind());
    assert_eq!(connected, Err(ErrorKind::WouldBlock), "somebody has connected");
    assert_eq!(fs::read_dir(DIRECTORY.path()).unwrap().count(), 0, "something was created");
}
