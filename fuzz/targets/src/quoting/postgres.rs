//! On a PostgreSQL server that lasts as long as the process.

use std::sync::{LazyLock, Mutex, PoisonError};

use sqlx::{AssertSqlSafe, Connection, PgConnection};
use tenure_postgres::{PostgresStore, SetupError, sqlx};
use tenure_testbed::Postgres;
use tokio::runtime::Runtime;

use super::{CANARY, Texts, comes_back, quoted, runtime};

pub(crate) fn check(bytes: &[u8]) {
    let mut server = SERVER.lock().unwrap_or_else(PoisonError::into_inner);
    let Server { runtime, server, admin } = &mut *server;
    let store = PostgresStore::new(&server.url()).unwrap();
    runtime.block_on(try_names(&Texts::read(bytes), store, admin));
}

struct Server {
    runtime: Runtime,
    server: Postgres,
    admin: PgConnection,
}

static SERVER: LazyLock<Mutex<Server>> = LazyLock::new(|| {
    let (runtime, server) = (runtime(), Postgres::start().unwrap());
    let admin = runtime.block_on(async {
        let mut admin = PgConnection::connect(&server.url()).await.unwrap();
        execute(&mut admin, "CREATE TABLE canary (n SERIAL PRIMARY KEY, t TEXT NOT NULL)").await;
        for text in CANARY {
            let insert = sqlx::query("INSERT INTO canary (t) VALUES ($1)").bind(text);
            insert.execute(&mut admin).await.unwrap();
        }
        admin
    });
    Mutex::new(Server { runtime, server, admin })
});

async fn try_names(texts: &Texts, store: PostgresStore, admin: &mut PgConnection) {
    let (schema, table) = (&texts.schema, &texts.table);
    let store = match store.with_table(schema, table) {
        Ok(store) => store,
        Err(error) => return is_refused_in_words([schema, table], &error),
    };
    let before = relations(admin).await;
    if before.iter().any(|(in_schema, _)| in_schema == schema) {
        // It is the canary's own, or the server's.
        return;
    }
    store.ensure_schema().await.unwrap();
    comes_back(&store, texts).await;
    let mut after = relations(admin).await;
    after.retain(|relation| !before.contains(relation));
    assert_eq!(after, [(schema.clone(), table.clone())], "nothing else was created");
    is_unharmed(admin).await;
    execute(admin, format!("DROP SCHEMA {} CASCADE", quoted(schema, '"'))).await;
    assert_eq!(relations(admin).await, before);
}

/// Of several reasons any will do.
fn is_refused_in_words(names: [&str; 2], error: &SetupError) {
    let said = error.to_string();
    let any = |is_at_fault: fn(&&str) -> bool| names.iter().any(is_at_fault);
    let reasons = [
        (any(|name| name.is_empty()), "is empty"),
        (any(|name| name.contains('\0')), "NUL"),
        (any(|name| name.len() > 63), "PostgreSQL allows 63"),
        (names[0].starts_with("pg_"), "keeps to itself"),
    ];
    let is_one_said = reasons.into_iter().any(|(holds, why)| holds && said.contains(why));
    assert!(is_one_said, "{names:?} are refused: {said}");
}

/// All tables, views and sequences, in all schemas that have one; and empty schemas.
async fn relations(admin: &mut PgConnection) -> Vec<(String, String)> {
    let sql = "SELECT n.nspname::text, coalesce(c.relname::text, '') FROM pg_namespace n \
               LEFT JOIN pg_class c ON c.relnamespace = n.oid AND c.relkind <> 'i' \
               WHERE n.nspname NOT LIKE 'pg\\_toast%' AND n.nspname NOT LIKE 'pg\\_temp\\_%' ORDER BY 1, 2";
    sqlx::query_as(sql).fetch_all(admin).await.unwrap()
}

async fn is_unharmed(admin: &mut PgConnection) {
    let rows = sqlx::query_scalar("SELECT t FROM public.canary ORDER BY n").fetch_all(admin).await;
    let rows: Vec<String> = rows.unwrap();
    assert_eq!(rows, CANARY);
}

async fn execute(admin: &mut PgConnection, sql: impl Into<String>) {
    sqlx::raw_sql(AssertSqlSafe(sql.into())).execute(admin).await.unwrap();
}
