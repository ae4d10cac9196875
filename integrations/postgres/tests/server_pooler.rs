//! A pooler that restarts, pauses or has no server for us; and connections that are too old.

#![allow(clippy::unwrap_used)] // helpers of tests are tests

mod common;

use std::{net::SocketAddr, time::Duration};

use tenure::store::{Session, Store};
use tenure_postgres::PostgresStore;
use tokio::{
    io::copy_bidirectional,
    net::{TcpListener, TcpStream},
};

use common::{
    Candidate, Path, connect, election, execute, fresh_name, in_time, on_each_path, url_at, value,
    wait_for, won,
};

on_each_path!(
    a_connection_that_is_too_old_is_replaced_between_calls,
    an_old_connection_is_only_given_up_for_a_new_one,
    an_old_connection_is_kept_while_a_new_one_gets_no_answer,
);

/// What an elector gives a call by default.
const LIMIT: Duration = Duration::from_secs(3);

#[tokio::test]
async fn a_pooler_that_restarts_between_calls_is_not_noticed() {
    let mut private = Path::Pooled.start();
    let store = PostgresStore::new(&private.url()).unwrap();
    store.ensure_schema().await.unwrap();
    let mut leader = Candidate::new("leader", &store);
    let term = leader.lead().await;
    let renewal = leader.renewal_of(term.fence);
    for _ in 0..3 {
        private.pooler.as_mut().unwrap().restart().unwrap();
        won(leader.session.renew(&renewal).await.unwrap());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_survives_a_pooler_that_restarts_under_it_or_fails_at_once() {
    let mut private = Path::Pooled.start();
    let store = PostgresStore::new(&private.url()).unwrap();
    store.ensure_schema().await.unwrap();
    let mut leader = Candidate::new("leader", &store);
    let term = leader.lead().await;
    let renewal = leader.renewal_of(term.fence);
    let mut locker = connect(&private.server.url()).await;
    for _ in 0..3 {
        execute(&mut locker, "BEGIN; LOCK TABLE leader_election").await;
        let pooler = private.pooler.as_mut().unwrap();
        let (outcome, ()) = tokio::join!(in_time(LIMIT, leader.session.renew(&renewal)), async {
            tokio::time::sleep(Duration::from_millis(50)).await; // the request is under way, or it is not: both must do
            tokio::task::block_in_place(|| pooler.restart().unwrap());
            execute(&mut locker, "COMMIT").await;
        });
        match outcome.expect("it did not hang") {
            Ok(outcome) => drop(won(outcome)),
            Err(error) => assert!(error.is_retryable(), "{error}"),
        }
        // What the elector does next.
        won(leader.session.renew(&renewal).await.unwrap());
    }
}

#[tokio::test]
async fn a_pooler_that_is_paused_or_frozen_holds_calls_up_and_loses_nothing() {
    let private = Path::Pooled.start();
    let pooler = private.pooler.as_ref().unwrap();
    let store = PostgresStore::new(&private.url()).unwrap();
    store.ensure_schema().await.unwrap();
    let mut leader = Candidate::new("leader", &store);
    let term = leader.lead().await;
    let renewal = leader.renewal_of(term.fence);
    let short = Duration::from_millis(200);

    pooler.pause().unwrap();
    assert!(in_time(short, leader.session.renew(&renewal)).await.is_none());
    pooler.resume().unwrap();
    won(leader.session.renew(&renewal).await.unwrap());

    pooler.stop();
    assert!(in_time(short, leader.session.renew(&renewal)).await.is_none());
    pooler.cont();
    won(leader.session.renew(&renewal).await.unwrap());
}

#[tokio::test]
async fn a_pooler_without_a_server_or_a_free_connection_is_a_failure_that_passes() {
    let mut private = Path::Pooled.start();
    let store = PostgresStore::new(&private.url()).unwrap();
    store.ensure_schema().await.unwrap();
    let mut candidate = Candidate::new("a", &store);
    candidate.lead().await;

    private.pooler.as_ref().unwrap().command("SET query_wait_timeout = 1").unwrap();
    let mut held = Vec::new();
    for _ in 0..3 {
        let mut connection = connect(&private.url()).await;
        execute(&mut connection, "BEGIN; SELECT 1").await;
        held.push(connection);
    }
    let error = candidate.session.inspect().await.unwrap_err();
    assert!(error.is_retryable() && error.to_string().contains("08P01"), "{error:?}");
    drop(held);
    wait_for("a free connection", async || candidate.session.inspect().await.ok()).await;

    private.server.kill().unwrap();
    let refused = wait_for("the pooler to notice", async || {
        let mut session = store.session(&election());
        in_time(LIMIT, session.inspect()).await?.err()
    });
    let error = refused.await;
    assert!(error.is_retryable() && error.to_string().contains("08P01"), "{error:?}");
}

#[tokio::test]
async fn what_a_pooler_refuses_is_said_with_what_to_leave_out() {
    let url = format!("{}?options=-c%20statement_timeout%3D1000", Path::Pooled.url());
    let store = PostgresStore::new(&url).unwrap();
    let error = store.session(&election()).inspect().await.unwrap_err();
    assert!(error.is_fatal() && error.to_string().contains("options"), "{error}");
}

#[tokio::test]
async fn what_the_url_says_wins() {
    let path = Path::Direct;
    let (_, table) = path.fresh_store().await;
    let (schema, name) = table.split_once('.').unwrap();
    let application = fresh_name("application");
    let url = format!(
        "{}?application_name={application}&options=-c%20statement_timeout%3D100",
        path.url()
    );
    let store = PostgresStore::new(&url).unwrap().with_table(schema, name).unwrap();
    let mut leader = Candidate::new("leader", &store);
    let term = leader.lead().await;
    let mut admin = path.admin().await;
    let named =
        format!("SELECT count(*) FROM pg_stat_activity WHERE application_name = '{application}'");
    assert_eq!(value::<i64>(&mut admin, named).await, 1);

    execute(&mut admin, format!("BEGIN; LOCK TABLE {table}")).await;
    let renewal = leader.renewal_of(term.fence);
    let error = leader.session.renew(&renewal).await.unwrap_err();
    assert!(error.is_retryable() && error.to_string().contains("57014"), "{error}");
}

/// The server's process for a session's connection, as told by what it asked last.
async fn backend(path: Path, schema: &str) -> Vec<i32> {
    let sql = format!(
        "SELECT coalesce(string_agg(pid::text, ' '), '') FROM pg_stat_activity \
         WHERE pid <> pg_backend_pid() AND query LIKE '%\"{schema}\"%'"
    );
    let pids: String = value(&mut path.admin().await, sql).await;
    pids.split_whitespace().map(|pid| pid.parse().unwrap()).collect()
}

async fn a_connection_that_is_too_old_is_replaced_between_calls(path: Path) {
    let (store, table) = path.fresh_store().await;
    let (schema, _) = table.split_once('.').unwrap();
    let mut ageless = Candidate::new("ageless", &store);
    let mut mortal = Candidate::new("mortal", &store.clone().max_connection_age(Duration::ZERO));
    ageless.session.inspect().await.unwrap();
    let kept = backend(path, schema).await;
    ageless.session.inspect().await.unwrap();
    if path != Path::Pooled {
        // Whoever asks a pooler is given any of its connections.
        assert_eq!(backend(path, schema).await, kept);
        for _ in 0..3 {
            mortal.session.inspect().await.unwrap();
            let with_another = backend(path, schema).await;
            mortal.session.inspect().await.unwrap();
            // The old one has said good-bye; the server may take a moment.
            wait_for("the old connection to be replaced", async || {
                let now = backend(path, schema).await;
                (now.len() == 2 && now != with_another).then_some(())
            })
            .await;
        }
    }
    let term = mortal.lead().await;
    let renewal = mortal.renewal_of(term.fence);
    won(mortal.session.renew(&renewal).await.unwrap());
}

async fn an_old_connection_is_only_given_up_for_a_new_one(path: Path) {
    let (_, table) = path.fresh_store().await;
    let (schema, name) = table.split_once('.').unwrap();
    let role = fresh_name("role");
    let mut admin = path.admin().await;
    let grant = format!(
        "CREATE ROLE {role} LOGIN CONNECTION LIMIT 1; GRANT USAGE ON SCHEMA {schema} TO {role}; \
         GRANT SELECT, INSERT, UPDATE ON {table} TO {role}"
    );
    execute(&mut admin, grant).await;
    let store = PostgresStore::new(&path.url_of(&role, "postgres")).unwrap();
    let store = store.with_table(schema, name).unwrap().max_connection_age(Duration::ZERO);
    let mut leader = Candidate::new("leader", &store);
    let term = leader.lead().await;
    let renewal = leader.renewal_of(term.fence);
    for _ in 0..3 {
        won(leader.session.renew(&renewal).await.unwrap());
    }
    if path != Path::Pooled {
        // A pooler has one connection for all of them.
        let error = store.session(&election()).inspect().await.unwrap_err();
        assert!(error.is_retryable() && error.to_string().contains("53300"), "{error}");
    }
}

/// A path on which the first connection goes on, and no other one ever gets an answer.
async fn path_for_one(target: SocketAddr) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap();
    tokio::spawn(async move {
        let (mut first, _) = listener.accept().await.unwrap();
        let mut server = TcpStream::connect(target).await.unwrap();
        tokio::spawn(async move { copy_bidirectional(&mut first, &mut server).await });
        let mut unanswered = Vec::new();
        loop {
            unanswered.push(listener.accept().await.unwrap());
        }
    });
    addr
}

/// A name that leads elsewhere since, a firewall, a pooler whose queue is full: the connection that works is kept.
async fn an_old_connection_is_kept_while_a_new_one_gets_no_answer(path: Path) {
    let (_, table) = path.fresh_store().await;
    let (schema, name) = table.split_once('.').unwrap();
    let addr = path_for_one(path.addr()).await;
    let store = PostgresStore::new(&url_at(addr, "postgres", "postgres"))
        .unwrap()
        .max_connection_age(Duration::ZERO);
    let mut leader = Candidate::new("leader", &store.with_table(schema, name).unwrap());
    leader.session.limit_calls(LIMIT);
    let term = in_time(2 * LIMIT, leader.lead()).await.expect("a call was held up");
    let renewal = leader.renewal_of(term.fence);
    for _ in 0..2 {
        let renewed = in_time(LIMIT, leader.session.renew(&renewal)).await;
        won(renewed.expect("a call was held up").unwrap());
    }
}
