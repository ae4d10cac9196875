//! On a SQLite file that lasts as long as the process.

use std::sync::{LazyLock, Mutex, PoisonError};

use sqlx::{
    AssertSqlSafe, Connection, SqliteConnection,
    sqlite::{SqliteConnectOptions, SqliteJournalMode, SqliteSynchronous},
};
use tempfile::TempDir;
use tenure_sqlite::{SetupError, SqliteStore, sqlx};
use tokio::runtime::Runtime;

use super::{CANARY, Texts, comes_back, quoted, runtime};

pub(crate) fn check(bytes: &[u8]) {
    let mut file = FILE.lock().unwrap_or_else(PoisonError::into_inner);
    let File { runtime, directory, admin } = &mut *file;
    let store = SqliteStore::new(directory.path().join("leases.db").to_str().unwrap()).unwrap();
    runtime.block_on(try_names(&Texts::read(bytes), store, admin));
}

struct File {
    runtime: Runtime,
    directory: TempDir,
    admin: SqliteConnection,
}

static FILE: LazyLock<Mutex<File>> = LazyLock::new(|| {
    let (runtime, directory) = (runtime(), tempfile::tempdir().unwrap());
    let options = SqliteConnectOptions::new()
        .filename(directory.path().join("leases.db"))
        .create_if_missing(true)
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(SqliteSynchronous::Off);
    let admin = runtime.block_on(async {
        let mut admin = SqliteConnection::connect_with(&options).await.unwrap();
        execute(&mut admin, "CREATE TABLE canary (n INTEGER PRIMARY KEY, t TEXT NOT NULL)").await;
        for text in CANARY {
            let insert = sqlx::query("INSERT INTO canary (t) VALUES (?1)").bind(text);
            insert.execute(&mut admin).await.unwrap();
        }
        admin
    });
    Mutex::new(File { runtime, directory, admin })
});

async fn try_names(texts: &Texts, store: SqliteStore, admin: &mut SqliteConnection) {
    let name = &texts.table;
    if name.eq_ignore_ascii_case("canary") {
        return;
    }
    let store = match store.with_table(name) {
        Ok(store) => store,
        Err(error) => return is_refused_in_words(name, &error),
    };
    store.ensure_schema().await.unwrap();
    comes_back(&store, texts).await;
    assert_eq!(tables(admin).await, ["canary", name], "nothing else was created");
    is_unharmed(admin).await;
    execute(admin, format!("DROP TABLE {}", quoted(name, '"'))).await;
}

fn is_refused_in_words(name: &str, error: &SetupError) {
    let said = error.to_string();
    let why = match name {
        "" => "is empty",
        name if name.contains('\0') => "NUL",
        name if name.to_ascii_lowercase().starts_with("sqlite_") => "keeps to itself",
        name => panic!("{name:?} is refused: {said}"),
    };
    assert!(said.contains(why), "{name:?}: {said}");
}

async fn tables(admin: &mut SqliteConnection) -> Vec<String> {
    let sql = "SELECT name FROM sqlite_schema WHERE name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY rowid";
    sqlx::query_scalar(sql).fetch_all(admin).await.unwrap()
}

async fn is_unharmed(admin: &mut SqliteConnection) {
    let rows = sqlx::query_scalar("SELECT t FROM canary ORDER BY n").fetch_all(admin).await;
    let rows: Vec<String> = rows.unwrap();
    assert_eq!(rows, CANARY);
}

async fn execute(admin: &mut SqliteConnection, sql: impl Into<String>) {
    sqlx::raw_sql(AssertSqlSafe(sql.into())).execute(admin).await.unwrap();
}
