//! Connections that break, servers that freeze, and calls that are given up.

#![allow(clippy::unwrap_used)] // helpers of tests are tests

mod common;

use std::time::Duration;

use tenure::store::{Outcome, Session};
use tenure_postgres::PostgresStore;
use tenure_testbed::Proxy;
use tokio::time::sleep;

use common::{
    Candidate, Path, execute, in_time, on_each_path, options_of, url_at, value, wait_for,
    wait_for_a_lock, waits_for_a_lock, won,
};

on_each_path!(
    a_connection_that_the_server_ended_is_replaced_within_the_call,
    a_broken_path_is_an_error_until_it_heals,
    a_claim_that_arrives_late_is_not_adopted,
    an_abandoned_call_frees_the_server_within_its_limit,
    a_lease_outlives_a_frozen_and_a_killed_server
);

/// A store behind a proxy, with a schema of its own.
async fn behind_proxy(path: Path) -> (Proxy, PostgresStore, PostgresStore) {
    let (direct, table) = path.fresh_store().await;
    let (schema, name) = table.split_once('.').unwrap();
    let proxy = Proxy::start(path.addr()).unwrap();
    let url = url_at(proxy.addr(), "postgres", "postgres");
    let store = PostgresStore::new(&url).unwrap().with_table(schema, name).unwrap();
    (proxy, store, direct)
}

/// Its connections are those of a user of its own: through a pooler, others would speak on them in between.
async fn a_connection_that_the_server_ended_is_replaced_within_the_call(path: Path) {
    let (_, table) = path.fresh_store().await;
    let (schema, name) = table.split_once('.').unwrap();
    let url = path.url_of_a_fresh_user().await;
    let store = PostgresStore::new(&url).unwrap().with_table(schema, name).unwrap();
    let mut leader = Candidate::new("leader", &store);
    let term = leader.lead().await;
    let renewal = leader.renewal_of(term.fence);
    let user = options_of(&url).get_username().to_owned();
    let mut admin = path.admin().await;
    for _ in 0..5 {
        let ended = format!(
            "SELECT count(pg_terminate_backend(pid, 10000)) FROM pg_stat_activity WHERE usename = '{user}'"
        );
        assert_ne!(value::<i64>(&mut admin, ended).await, 0);
        won(leader.session.renew(&renewal).await.unwrap());
    }
}

async fn a_broken_path_is_an_error_until_it_heals(path: Path) {
    let (proxy, store, _) = behind_proxy(path).await;
    let mut leader = Candidate::new("leader", &store);
    let term = leader.lead().await;
    let renewal = leader.renewal_of(term.fence);
    proxy.cut();
    assert!(leader.session.renew(&renewal).await.unwrap_err().is_retryable());
    assert!(leader.session.renew(&renewal).await.unwrap_err().is_retryable());
    proxy.heal();
    won(leader.session.renew(&renewal).await.unwrap());
}

/// The request is executed, only its reply is lost: the claim starts a term, which nobody takes for a success.
async fn a_claim_that_arrives_late_is_not_adopted(path: Path) {
    let (proxy, store, direct) = behind_proxy(path).await;
    let mut candidate = Candidate::new("a", &store);
    let first = candidate.lead().await;
    proxy.hold_back_replies();
    let claim = candidate.claim_of(Some(&first));
    let mut onlooker = Candidate::new("onlooker", &direct);
    let executed = wait_for("the claim", async || {
        let seen = onlooker.session.inspect().await.unwrap().unwrap();
        (seen.fence > first.fence).then_some(seen)
    });
    let late = tokio::select! {
        outcome = candidate.session.acquire(&claim) => panic!("{outcome:?} without a reply"),
        late = executed => late,
    };
    proxy.heal();
    let Outcome::Lost(Some(by)) = candidate.session.acquire(&claim).await.unwrap() else {
        panic!("the same claim again must lose against itself");
    };
    assert_eq!(by.version, late.version);
    assert!(candidate.lead().await.fence > late.fence);
}

/// What was abandoned does not linger: the connection is closed, and the server gives up by itself.
async fn an_abandoned_call_frees_the_server_within_its_limit(path: Path) {
    let (store, table) = path.fresh_store().await;
    let (schema, _) = table.split_once('.').unwrap();
    let mut leader = Candidate::new("leader", &store);
    let term = leader.lead().await;
    let renewal = leader.renewal_of(term.fence);
    let mut locker = path.admin().await;
    execute(&mut locker, format!("BEGIN; SELECT FROM {table} FOR UPDATE")).await;

    leader.session.limit_calls(Duration::from_secs(4));
    let mut admin = path.admin().await;
    tokio::select! {
        outcome = leader.session.renew(&renewal) => panic!("{outcome:?} in spite of the lock"),
        () = wait_for_a_lock(&mut admin, schema) => {}
    }
    wait_for("the server to give up", async || {
        (!waits_for_a_lock(&mut admin, schema).await).then_some(())
    })
    .await;
    execute(&mut locker, "ROLLBACK").await;
    won(leader.session.renew(&renewal).await.unwrap());
}

async fn a_lease_outlives_a_frozen_and_a_killed_server(path: Path) {
    let mut private = path.start();
    let store = PostgresStore::new(&private.url()).unwrap();
    store.ensure_schema().await.unwrap();
    let mut leader = Candidate::new("leader", &store);
    let term = leader.lead().await;
    let renewal = leader.renewal_of(term.fence);

    private.server.stop();
    tokio::select! {
        outcome = leader.session.renew(&renewal) => panic!("{outcome:?} from a frozen server"),
        () = sleep(Duration::from_millis(200)) => {}
    }
    private.server.cont();
    won(leader.session.renew(&renewal).await.unwrap());

    private.server.kill().unwrap();
    // A pooler lets who is connected wait.
    let (short, long) = (Duration::from_millis(300), Duration::from_secs(3));
    if let Some(outcome) = in_time(short, leader.session.renew(&renewal)).await {
        assert!(outcome.unwrap_err().is_retryable());
    }
    private.server.restart().unwrap();
    // It also waits for some seconds before it tries again what has failed.
    let renewed =
        wait_for("the server", async || in_time(long, leader.session.renew(&renewal)).await?.ok());
    assert_eq!(won(renewed.await).fence, term.fence);
}
