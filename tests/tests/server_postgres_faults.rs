//! What only a database server can do to an election: lock a row, restart, run out of connections, fall silent.

// Clippy takes helpers of tests for something else.
#![allow(clippy::unwrap_used)]

mod scenarios;

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use scenarios::{Ground, ended, grounds::PostgresServer, in_process::Leader, runtime};
use tenure::{Elector, LastError, testing::FlakyStore};
use tenure_postgres::{
    PostgresStore,
    sqlx::{Connection, PgPool, postgres::PgPoolOptions, query_scalar, raw_sql},
};
use tenure_testbed::Proxy;
use tenure_tests::{Entry, Event, Stamp, wait_until};
use tokio::runtime::{Builder, Runtime};

/// The application holds every connection of its own pool; the store has one that the application does not know of.
#[test]
fn an_application_that_uses_up_its_pool_keeps_its_term() {
    let server = PostgresServer::shared();
    server.store();
    let application = application();
    // Connections that are given back to a pool need a runtime.
    let _entered = application.enter();
    let pool = PgPoolOptions::new().max_connections(2).acquire_timeout(Duration::from_millis(100));
    let pool = application.block_on(pool.connect(&server.0.url())).unwrap();
    let _held = application.block_on(async { (pool.acquire().await, pool.acquire().await) });
    application.block_on(pool.acquire()).unwrap_err();

    let store = PostgresStore::new(&server.0.url()).unwrap();
    Leader::elect("own-connection", FlakyStore::new(store)).renews(9);

    // Who lends the pool to the store is told what is missing.
    let borrowing = Elector::builder("borrowed", PostgresStore::from_pool(pool));
    let candidacy = borrowing.lease_duration(Duration::from_secs(2)).build().unwrap().spawn();
    let leadership = candidacy.leadership();
    wait_until("the error says so", || match leadership.status().last_error() {
        Some(LastError::Store(error)) => {
            error.to_string().contains("the pool had no connection free")
        }
        _ => false,
    });
    assert!(!leadership.is_leader());
}

/// The lease is a row, and belongs to no connection.
#[test]
fn a_pool_that_replaces_its_connections_every_second_costs_no_term() {
    let server = PostgresServer::shared();
    server.store();
    let application = application();
    let opened = Arc::new(AtomicUsize::new(0));
    let pool = PgPoolOptions::new().max_connections(2).max_lifetime(Duration::from_secs(1));
    let pool = pool.after_connect({
        let opened = opened.clone();
        move |_, _| {
            opened.fetch_add(1, Ordering::SeqCst);
            Box::pin(async { Ok(()) })
        }
    });
    let pool: PgPool = application.block_on(pool.connect(&server.0.url())).unwrap();
    let store = FlakyStore::new(PostgresStore::from_pool(pool));
    let elector = Elector::builder("short-lived", store.clone())
        .lease_duration(Duration::from_secs(2))
        .renew_interval(Duration::from_millis(100));
    let leader = Leader::of(elector, store);
    leader.renews(100);
    let opened = opened.load(Ordering::SeqCst);
    assert!(opened >= 4, "only {opened} connections were opened");
}

#[test]
fn a_locked_row_stops_its_own_election_and_no_other_in_the_table() {
    let server = PostgresServer::shared();
    let (locked, free) = (server.fleet("locked"), server.fleet("free"));
    let replicas = [locked.join(), locked.join()];
    let bystander = free.join();
    let (first, other) = (locked.leader(), free.leader());
    let locker = runtime();
    let mut connection = locker.block_on(async {
        let mut connection = server.connect().await;
        let lock = "BEGIN; SELECT 1 FROM leader_election WHERE name = 'locked' FOR UPDATE";
        raw_sql(lock).execute(&mut connection).await.unwrap();
        connection
    });
    let leader = &replicas[first.participant];
    leader.says(
        "it says what is in the way",
        |event| matches!(event, Event::Failed { error, fatal: false } if error.contains("lock")),
    );
    leader.says("its term expires", ended(first.fence, "expired"));
    let unlocked = Stamp::now();
    locker.block_on(async {
        raw_sql("ROLLBACK").execute(&mut connection).await.unwrap();
        connection.close().await.unwrap();
    });
    locked.leader_after(first.fence);

    bystander.says("it leads all the time", |event| {
        matches!(*event, Event::Live { fence, to, .. } if fence == other.fence && to > unlocked)
    });
    assert!(free.timeline().see(|entries| !entries.iter().any(is_affected)));
    locked.judge(2);
    free.judge(1);
}

/// A call that took too long on a busy machine is another matter.
fn is_affected(entry: &Entry) -> bool {
    match &entry.event {
        Event::Failed { error, .. } => error.contains("lock"),
        event => matches!(event, Event::Ended { .. }),
    }
}

#[test]
fn an_election_survives_restarts_and_crashes_of_its_server() {
    let mut server = PostgresServer::new();
    let fleet = server.fleet("restart");
    let _replicas = [fleet.join(), fleet.join()];
    fleet.leader();
    for crashes in [false, true] {
        if crashes {
            server.0.kill().unwrap();
        }
        server.0.restart().unwrap();
        // Confirmed by the server that is up now, whoever leads.
        let confirmed = Stamp::now() + fleet.settings.lease;
        fleet.timeline().wait_for("somebody leads again", |entries| {
            let leads = |entry: &&Entry| {
                matches!(entry.event, Event::Live { until, .. } if until > confirmed)
            };
            entries.iter().find(leads).cloned()
        });
    }
    fleet.judge(1);
}

/// One attempt may take a fraction of the term only, and the next one goes over a connection of its own.
#[test]
fn a_renewal_that_falls_into_a_black_hole_is_repeated_on_a_fresh_connection_in_time() {
    let server = PostgresServer::shared();
    server.store();
    let proxy = Proxy::start(server.0.addr()).unwrap();
    let url = format!("postgres://postgres@{}/postgres?application_name=hole", proxy.addr());
    let store = FlakyStore::new(PostgresStore::new(&url).unwrap());
    // So that a busy machine has time for a connection, too.
    let elector = Elector::builder("hole", store.clone()).lease_duration(Duration::from_secs(6));
    let leader = Leader::of(elector, store);
    leader.renews(1);
    let before = connections_of(server, "hole");
    proxy.black_hole();
    wait_until("a renewal is given up", || leader.leadership.status().last_error().is_some());
    proxy.heal();
    leader.renews(1);
    wait_until("that is over", || leader.leadership.status().last_error().is_none());
    let after = connections_of(server, "hole");
    assert!(after.iter().any(|pid| !before.contains(pid)), "{before:?}, {after:?}");
}

/// The server's processes that serve clients of this name.
fn connections_of(server: &PostgresServer, application: &str) -> Vec<i32> {
    let query = "SELECT pid FROM pg_stat_activity WHERE application_name = $1";
    runtime().block_on(async {
        let mut connection = server.connect().await;
        let pids = query_scalar(query).bind(application).fetch_all(&mut connection).await.unwrap();
        connection.close().await.unwrap();
        pids
    })
}

/// The runtime of an application that has its own connections.
fn application() -> Runtime {
    Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap()
}
