//! On a MariaDB server that lasts as long as the process.

use std::sync::{LazyLock, Mutex, PoisonError};

use sqlx::{AssertSqlSafe, Connection, MySqlConnection};
use tenure_mysql::{MysqlStore, SetupError, sqlx};
use tenure_testbed::Mariadb;
use tokio::runtime::Runtime;

use super::{CANARY, Texts, comes_back, quoted, runtime};

pub(crate) fn check(bytes: &[u8]) {
    let mut server = SERVER.lock().unwrap_or_else(PoisonError::into_inner);
    let Server { runtime, server, admin } = &mut *server;
    let store = MysqlStore::new(&server.url()).unwrap();
    runtime.block_on(try_names(&Texts::read(bytes), store, admin));
}

struct Server {
    runtime: Runtime,
    server: Mariadb,
    admin: MySqlConnection,
}

static SERVER: LazyLock<Mutex<Server>> = LazyLock::new(|| {
    let (runtime, server) = (runtime(), Mariadb::start().unwrap());
    let admin = runtime.block_on(async {
        let mut admin = MySqlConnection::connect(&server.url()).await.unwrap();
        let table = "CREATE TABLE app.canary (n SERIAL PRIMARY KEY, t VARBINARY(255) NOT NULL)";
        execute(&mut admin, table).await;
        for text in CANARY {
            let insert = sqlx::query("INSERT INTO app.canary (t) VALUES (?)").bind(text.as_bytes());
            insert.execute(&mut admin).await.unwrap();
        }
        admin
    });
    Mutex::new(Server { runtime, server, admin })
});

async fn try_names(texts: &Texts, store: MysqlStore, admin: &mut MySqlConnection) {
    let (database, table) = (&texts.schema, &texts.table);
    let store = match store.with_database(database).and_then(|store| store.with_table(table)) {
        Ok(store) => store,
        Err(error) => return is_refused_in_words([database, table], &error),
    };
    let before = tables(admin).await;
    // Nobody but an administrator creates databases; one that cannot be created is no case.
    let create = format!("CREATE DATABASE {}", quoted(database, '`'));
    if sqlx::raw_sql(AssertSqlSafe(create)).execute(&mut *admin).await.is_err() {
        return;
    }
    match store.ensure_schema().await {
        Ok(()) => {
            comes_back(&store, texts).await;
            let mut after = tables(admin).await;
            after.retain(|table| !before.contains(table));
            let ours = ["", "_hold"].map(|end| (database.clone(), format!("{table}{end}")));
            assert_eq!(after, ours, "nothing else was created");
        }
        Err(error) => {
            assert!(error.is_fatal() && is_too_long_for_a_file(table), "{texts:?}: {error:?}");
        }
    }
    is_unharmed(admin).await;
    execute(admin, format!("DROP DATABASE {}", quoted(database, '`'))).await;
    assert_eq!(tables(admin).await, before);
}

/// Tables are files, in whose names most letters of other alphabets become five characters. How long they may be depends
/// on the file system, so the server is the one to say so.
fn is_too_long_for_a_file(table: &str) -> bool {
    let characters = |c: char| if c.is_ascii_alphanumeric() || c == '_' { 1 } else { 5 };
    table.chars().map(characters).sum::<usize>() + "_hold.ibd".len() > 255
}

fn is_refused_in_words([database, table]: [&str; 2], error: &SetupError) {
    let said = error.to_string();
    let characters = |name: &str| name.chars().count();
    let is_refused = |name: &str| {
        let space = [' ', '\t', '\n', '\u{b}', '\u{c}', '\r'];
        name.contains(|c: char| c == '\0' || c > '\u{ffff}') || name.ends_with(space)
    };
    let why = match (database, table) {
        ("", _) => "is empty",
        (database, _) if characters(database) > 64 => "64 are possible",
        (database, _) if is_refused(database) => "not allow",
        (_, "") => "is empty",
        (_, table) if characters(table) > 59 => "59 are possible",
        (_, table) if is_refused(table) => "not allow",
        names => panic!("{names:?} are refused: {said}"),
    };
    assert!(said.contains(why), "{database:?} {table:?}: {said}");
}

/// All tables but those that the server describes itself with.
async fn tables(admin: &mut MySqlConnection) -> Vec<(String, String)> {
    let sql = "SELECT CONVERT(TABLE_SCHEMA USING utf8mb4), CONVERT(TABLE_NAME USING utf8mb4) FROM information_schema.TABLES \
               WHERE TABLE_SCHEMA NOT IN ('information_schema', 'performance_schema') \
               ORDER BY BINARY TABLE_SCHEMA, BINARY TABLE_NAME";
    sqlx::query_as(sql).fetch_all(admin).await.unwrap()
}

async fn is_unharmed(admin: &mut MySqlConnection) {
    let rows = sqlx::query_scalar("SELECT t FROM app.canary ORDER BY n").fetch_all(admin).await;
    let rows: Vec<Vec<u8>> = rows.unwrap();
    assert_eq!(rows, CANARY.map(|text| text.as_bytes().to_vec()));
}

async fn execute(admin: &mut MySqlConnection, sql: impl Into<String>) {
    sqlx::raw_sql(AssertSqlSafe(sql.into())).execute(admin).await.unwrap();
}
