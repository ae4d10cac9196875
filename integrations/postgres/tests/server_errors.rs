//! Each class of error, from a real server: whether it passes, as the documents say.
//!
//! What is refused because of what was asked is in `server_bad_input`; what poolers say, in `server_pooler`.

#![allow(clippy::unwrap_used)] // helpers of tests are tests

mod common;

use std::{error::Error, process::Command, time::Duration};

use tenure::{
    StoreError,
    store::{PlaceRequest, Session, Store},
};
use tenure_postgres::{PostgresError, PostgresStore};

use common::{
    Candidate, LONG, Path, connect, election, execute, fresh_name, in_time, on_each_path, wait_for,
    waits_for_a_lock, won,
};

on_each_path!(
    every_documented_code_is_judged_as_documented,
    a_role_that_has_no_connection_left_is_a_failure_that_passes,
    a_call_that_is_cancelled_on_the_server_is_a_failure_that_passes,
    a_server_that_shuts_down_is_a_failure_that_passes,
    a_server_that_is_frozen_answers_late_and_rightly,
    a_record_that_is_gone_as_soon_as_it_is_placed_is_tried_again,
);

const DOCUMENTS: &str = include_str!("../src/errors.md");

fn sqlstate(error: &StoreError) -> Option<&str> {
    error.source()?.downcast_ref::<PostgresError>()?.sqlstate()
}

/// The codes in the documents, and whether they pass: a class stands for the first of its codes.
fn documented() -> Vec<(String, bool)> {
    let codes = DOCUMENTS.lines().filter_map(|line| {
        let (code, rest) = line.strip_prefix("| `")?.split_once("` | ")?;
        Some((format!("{code:0<5}"), rest.starts_with("yes")))
    });
    codes.collect()
}

/// By a trigger, since not every failure can be brought about in a test: a full disk, or damaged data.
async fn every_documented_code_is_judged_as_documented(path: Path) {
    let (store, table) = path.fresh_store().await;
    let mut leader = Candidate::new("leader", &store);
    let term = leader.lead().await;
    let renewal = leader.renewal_of(term.fence);
    let (schema, _) = table.split_once('.').unwrap();
    let mut admin = path.admin().await;
    let codes = documented();
    assert!(codes.len() > 25, "{codes:?}");
    for (code, passes) in codes {
        let sql = format!(
            "CREATE OR REPLACE FUNCTION {schema}.fail() RETURNS trigger LANGUAGE plpgsql AS \
                 $$ BEGIN RAISE EXCEPTION 'as asked' USING ERRCODE = '{code}'; END $$; \
             CREATE OR REPLACE TRIGGER fail BEFORE UPDATE ON {table} FOR EACH ROW \
                 EXECUTE FUNCTION {schema}.fail()"
        );
        execute(&mut admin, sql).await;
        match leader.session.renew(&renewal).await {
            // Of a renewal these are proof that the record is gone.
            Ok(lost) => {
                assert!(matches!(code.as_str(), "42P01" | "3F000"), "{code}: {lost:?}");
            }
            Err(error) => {
                assert_eq!(sqlstate(&error), Some(code.as_str()), "{error:?}");
                assert_eq!(error.is_retryable(), passes, "{error}");
                assert!(error.to_string().contains(&code), "{error}");
            }
        }
    }
    execute(&mut admin, format!("DROP TRIGGER fail ON {table}")).await;
    won(leader.session.renew(&renewal).await.unwrap());
}

async fn a_role_that_has_no_connection_left_is_a_failure_that_passes(path: Path) {
    let role = fresh_name("role");
    execute(&mut path.admin().await, format!("CREATE ROLE {role} LOGIN CONNECTION LIMIT 1")).await;
    let _only = connect(&path.server().url_of(&role, "postgres")).await;
    let store = PostgresStore::new(&path.url_of(&role, "postgres")).unwrap();
    let error = store.session(&election()).inspect().await.unwrap_err();
    assert!(error.is_retryable(), "{error:?}");
    let code = if path == Path::Pooled { "08P01" } else { "53300" };
    assert_eq!(sqlstate(&error), Some(code), "{error:?}");
}

async fn a_call_that_is_cancelled_on_the_server_is_a_failure_that_passes(path: Path) {
    let (store, table) = path.fresh_store().await;
    let (schema, _) = table.split_once('.').unwrap();
    let mut leader = Candidate::new("leader", &store);
    leader.session.limit_calls(Duration::from_secs(60));
    let term = leader.lead().await;
    let renewal = leader.renewal_of(term.fence);
    let mut locker = path.admin().await;
    execute(&mut locker, format!("BEGIN; LOCK TABLE {table}")).await;
    let mut admin = path.admin().await;
    let (outcome, ()) = tokio::join!(leader.session.renew(&renewal), async {
        wait_for("it to wait", async || waits_for_a_lock(&mut admin, schema).await.then_some(()))
            .await;
        let cancel = format!(
            "SELECT pg_cancel_backend(pid) FROM pg_stat_activity \
             WHERE wait_event_type = 'Lock' AND query LIKE '%\"{schema}\"%'"
        );
        execute(&mut admin, cancel).await;
    });
    let error = outcome.unwrap_err();
    assert!(error.is_retryable() && sqlstate(&error) == Some("57014"), "{error:?}");
    execute(&mut locker, "COMMIT").await;
    won(leader.session.renew(&renewal).await.unwrap());
}

async fn a_server_that_shuts_down_is_a_failure_that_passes(path: Path) {
    let mut private = path.start();
    let store = PostgresStore::new(&private.url()).unwrap();
    store.ensure_schema().await.unwrap();
    // As long as somebody is connected it waits for them, and lets nobody else in.
    let _connected = connect(&private.server.url()).await;
    let pid = private.server.pid().unwrap().to_string();
    assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
    let refused = wait_for("the server to refuse", async || {
        // In a pooler a connection may be left from before.
        let mut session = store.session(&election());
        in_time(Duration::from_secs(3), session.inspect()).await?.err()
    });
    let error = in_time(Duration::from_secs(5), refused).await;
    if path == Path::Pooled {
        // It keeps the connection that it has, which goes on working.
        assert!(error.is_none_or(|error| error.is_retryable()));
    } else {
        let error = error.unwrap();
        assert!(error.is_retryable() && sqlstate(&error) == Some("57P03"), "{error:?}");
    }
    private.server.restart().unwrap();
    let mut candidate = Candidate::new("a", &store);
    wait_for("the server", async || {
        in_time(Duration::from_secs(3), candidate.session.inspect()).await?.ok()
    })
    .await;
}

async fn a_server_that_is_frozen_answers_late_and_rightly(path: Path) {
    let private = path.start();
    let store = PostgresStore::new(&private.url()).unwrap();
    store.ensure_schema().await.unwrap();
    let mut leader = Candidate::new("leader", &store);
    let term = leader.lead().await;
    private.server.stop();
    let release = leader.release_of(term.fence);
    let gone = in_time(Duration::from_millis(200), leader.session.release(&release)).await;
    assert!(gone.is_none(), "{gone:?}");
    private.server.cont();
    // The release that was given up may be executed before this one, or after it, or never.
    let released = wait_for("the release", async || {
        in_time(Duration::from_secs(3), leader.session.release(&release)).await?.ok()
    });
    assert!(released.await.lease().unwrap().released);
}

/// A trigger of somebody else's swallows it.
async fn a_record_that_is_gone_as_soon_as_it_is_placed_is_tried_again(path: Path) {
    let (store, table) = path.fresh_store().await;
    let (schema, _) = table.split_once('.').unwrap();
    let mut admin = path.admin().await;
    let swallow = format!(
        "CREATE FUNCTION {schema}.swallow() RETURNS trigger LANGUAGE plpgsql AS \
             $$ BEGIN RETURN NULL; END $$; \
         CREATE TRIGGER swallow BEFORE INSERT ON {table} FOR EACH ROW \
             EXECUTE FUNCTION {schema}.swallow()"
    );
    execute(&mut admin, swallow).await;
    let mut session = store.session(&election());
    let error = session.place(&PlaceRequest::new(LONG)).await.unwrap_err();
    assert!(error.is_retryable() && error.to_string().contains("vanished again"), "{error}");
    execute(&mut admin, format!("DROP TRIGGER swallow ON {table}")).await;
    session.place(&PlaceRequest::new(LONG)).await.unwrap();
}
