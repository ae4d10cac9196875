//! Listening breaks and is mended; and whatever happens to it, the election goes on.

#![allow(clippy::unwrap_used)] // helpers of tests are tests

mod common;

use std::time::Duration;

use futures::{FutureExt, StreamExt};
use tenure::store::{Hints, Session, Store};
use tenure_postgres::{PostgresStore, SetupError, sqlx};
use tenure_testbed::Proxy;
use tokio::net::TcpListener;

use common::{
    Candidate, Path, connect, election, execute, in_time, on_each_path, url_at, value, wait_for,
    won,
};

on_each_path!(
    whoever_listens_is_told_of_a_release_and_of_a_connection_made_anew,
    a_url_where_nobody_can_be_reached_costs_only_the_hints,
    hints_may_be_dropped_outside_of_the_runtime,
);

/// Long enough for anything to arrive.
const LONG: Duration = Duration::from_secs(60);

async fn hint(hints: &mut Hints) {
    let given = in_time(LONG, hints.next()).await;
    assert_eq!(given, Some(Some(())), "no hint, but {given:?}");
}

/// Claims and releases, which tells whoever listens.
async fn lead_and_release(candidate: &mut Candidate) {
    let term = candidate.lead().await;
    let release = candidate.release_of(term.fence);
    won(candidate.session.release(&release).await.unwrap());
}

async fn whoever_listens_is_told_of_a_release_and_of_a_connection_made_anew(path: Path) {
    let (store, table) = path.fresh_store().await;
    assert!(!store.capabilities().hints);
    let mut leader = Candidate::new("leader", &store);
    let listening = store.listen_url(&path.server().url()).unwrap();
    assert!(listening.capabilities().hints);
    let mut hints = listening.session(&election()).hints();
    hint(&mut hints).await; // it listens now
    lead_and_release(&mut leader).await;
    hint(&mut hints).await;
    assert_eq!(hints.next().now_or_never(), None, "one release gave two hints");

    let ended = format!(
        "SELECT count(pg_terminate_backend(pid, 10000)) FROM pg_stat_activity WHERE query = 'LISTEN \"tenure:{table}\"'"
    );
    for _ in 0..3 {
        assert_eq!(value::<i64>(&mut path.admin().await, ended.clone()).await, 1);
        hint(&mut hints).await; // something may have been missed
        lead_and_release(&mut leader).await;
        hint(&mut hints).await;
    }
}

async fn a_url_where_nobody_can_be_reached_costs_only_the_hints(path: Path) {
    let addr = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let (store, _) = path.fresh_store().await;
    let store = store.listen_url(&url_at(addr, "app:secret", "app")).unwrap();
    assert!(!format!("{store:?}").contains("secret"));
    let mut candidate = Candidate::new("a", &store);
    let mut hints = candidate.session.hints();
    assert_eq!(in_time(Duration::from_millis(300), hints.next()).await, None);
    lead_and_release(&mut candidate).await;

    assert!(matches!(store.clone().listen_url("mysql://db/app"), Err(SetupError::Scheme { .. })));
    assert!(matches!(store.listen_url("postgres:///app"), Err(SetupError::NoHost)));
}

/// The pauses between its attempts are short at first.
#[tokio::test]
async fn a_listener_that_is_hung_up_on_tries_again() {
    let server = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = url_at(server.local_addr().unwrap(), "app", "app");
    let store = PostgresStore::new(&url).unwrap().listen_url(&url).unwrap();
    let mut hints = store.session(&election()).hints();
    let hang_up = async {
        for _ in 0..3 {
            drop(server.accept().await.unwrap());
        }
    };
    tokio::select! {
        hint = hints.next() => panic!("{hint:?}"),
        hung_up = in_time(LONG, hang_up) => hung_up.expect("it gives up"),
    }
}

/// It swallows everything, and nobody says so: the listener has to ask. It listens directly on every path.
#[tokio::test]
async fn a_network_path_that_has_died_is_noticed() {
    let path = Path::Direct;
    let proxy = Proxy::start(path.server().addr()).unwrap();
    let (store, table) = path.fresh_store().await;
    let listening = store.listen_url(&url_at(proxy.addr(), "postgres", "postgres"));
    let mut hints = listening.unwrap().session(&election()).hints();
    hint(&mut hints).await;
    let mut admin = path.admin().await;
    let listener = format!(
        "SELECT coalesce(max(pid), 0) FROM pg_stat_activity WHERE query = 'LISTEN \"tenure:{table}\"'"
    );
    let first: i32 = value(&mut admin, listener.clone()).await;
    assert_ne!(first, 0);
    proxy.black_hole();
    assert_eq!(in_time(Duration::from_secs(25), hints.next()).await, None);
    proxy.heal();
    // One that had gone on would have nothing to tell.
    hint(&mut hints).await;
    let others = format!("{listener} AND pid <> {first}");
    assert_ne!(value::<i32>(&mut admin, others).await, 0, "the same connection");
}

/// A pooler takes `LISTEN`, and may answer the listener by another connection to the server from the next moment on. The
/// listener finds that out, and begins anew.
#[tokio::test]
async fn a_listener_behind_a_pooler_notices_that_nobody_listens_any_more() {
    let private = Path::Pooled.start();
    let store = PostgresStore::new(&private.url()).unwrap();
    store.ensure_schema().await.unwrap();
    let listening = store.listen_url(&private.url()).unwrap();
    let mut hints = listening.session(&election()).hints();
    hint(&mut hints).await;
    let mut admin = connect(&private.server.url()).await;
    // It asks now and then whether it is still told, and it is; then the pooler opens another connection to the server.
    let ends = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity \
                WHERE query LIKE '%pg_listening_channels%' AND pid <> pg_backend_pid()";
    // A listener that had gone on would have nothing to tell.
    tokio::join!(hint(&mut hints), async {
        wait_for("the listener to ask", async || {
            (value::<i64>(&mut admin, ends).await > 0).then_some(())
        })
        .await;
    });
}

async fn hints_may_be_dropped_outside_of_the_runtime(path: Path) {
    let (store, table) = path.fresh_store().await;
    let listening = store.listen_url(&path.server().url()).unwrap();
    let mut hints = listening.session(&election()).hints();
    hint(&mut hints).await;
    std::thread::spawn(move || drop(hints)).join().unwrap();
    let listeners =
        format!("SELECT count(*) FROM pg_stat_activity WHERE query = 'LISTEN \"tenure:{table}\"'");
    let mut admin = path.admin().await;
    wait_for("the connection to close", async || {
        (value::<i64>(&mut admin, listeners.clone()).await == 0).then_some(())
    })
    .await;
}

/// Somebody who listens and does not read fills the server's queue, and then nothing that notifies can commit. Only
/// since PostgreSQL 17 can the queue be made small enough to see it.
#[tokio::test]
async fn a_release_does_not_depend_on_whether_anybody_can_be_told() {
    let mut private = Path::Postgres18.start();
    let mut admin = connect(&private.url()).await;
    execute(&mut admin, "ALTER SYSTEM SET max_notify_queue_pages = 64").await;
    private.server.restart().unwrap();
    let store = PostgresStore::new(&private.url()).unwrap();
    store.ensure_schema().await.unwrap();

    let mut deaf = connect(&private.url()).await;
    execute(&mut deaf, "LISTEN anything").await;
    execute(&mut deaf, "BEGIN; SELECT 1").await;
    let mut noisy = connect(&private.url()).await;
    let noise =
        "SELECT pg_notify('anything', repeat('x', 7000) || n) FROM generate_series(1, 10) AS n";
    let full = wait_for("the queue to be full", async || {
        sqlx::raw_sql(noise).execute(&mut noisy).await.err()
    });
    assert!(full.await.to_string().contains("queue"));
    lead_and_release(&mut Candidate::new("a", &store)).await;
}
