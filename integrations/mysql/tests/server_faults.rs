//! Connections that break, servers that freeze, transactions that collide, and calls that are given up.

#![allow(clippy::unwrap_used)] // helpers of tests are tests

mod common;

use std::{error::Error, time::Duration};

use tenure::{
    StoreError,
    store::{Outcome, Session},
};
use tenure_mysql::{MysqlError, MysqlStore, sqlx};
use tenure_testbed::{Mariadb, Proxy};
use tokio::time::sleep;

use common::{
    Candidate, admin, connect, election, execute, fresh_store, server, value, wait_for,
    wait_for_a_lock, waits_for_a_lock, won,
};

fn number(error: &StoreError) -> Option<u16> {
    error.source()?.downcast_ref::<MysqlError>()?.number()
}

/// A store behind a proxy, with tables of its own, and one that goes there directly.
async fn behind_proxy() -> (Proxy, MysqlStore, MysqlStore) {
    let (direct, table) = fresh_store().await;
    let proxy = Proxy::start(server().addr()).unwrap();
    let url = format!("mysql://root@{}/app", proxy.addr());
    let store = MysqlStore::new(&url).unwrap().with_table(&table).unwrap();
    (proxy, store, direct)
}

/// The one connection of this user.
async fn connection_of(admin: &mut sqlx::MySqlConnection, user: &str) -> i64 {
    let sql = format!("SELECT ID FROM information_schema.PROCESSLIST WHERE USER = '{user}'");
    value(admin, sql).await
}

/// A user of one's own, so that its connections can be found.
async fn store_of_a_user(table: &str) -> (MysqlStore, String) {
    let user = common::fresh_name("user");
    let granted = format!(
        "CREATE USER {user}; GRANT SELECT, INSERT, UPDATE ON app.{table} TO {user}; \
         GRANT SELECT, INSERT, UPDATE ON app.{table}_hold TO {user}"
    );
    execute(&mut admin().await, granted).await;
    let store = MysqlStore::new(&server().url_of(&user, "app")).unwrap();
    (store.with_table(table).unwrap(), user)
}

#[tokio::test]
async fn a_connection_that_the_server_ended_is_replaced_within_the_call() {
    let (_, table) = fresh_store().await;
    let (store, user) = store_of_a_user(&table).await;
    let mut leader = Candidate::new("leader", &store);
    let term = leader.lead().await;
    let renewal = leader.renewal_of(term.fence);
    let mut admin = admin().await;
    for _ in 0..5 {
        let id = connection_of(&mut admin, &user).await;
        execute(&mut admin, format!("KILL CONNECTION {id}")).await;
        won(leader.session.renew(&renewal).await.unwrap());
    }
}

#[tokio::test]
async fn a_connection_that_was_idle_for_too_long_is_replaced_within_the_call() {
    let server = Mariadb::start_with(&["--wait-timeout=1", "--interactive-timeout=1"]).unwrap();
    let store = MysqlStore::new(&server.url()).unwrap();
    store.ensure_schema().await.unwrap();
    let mut leader = Candidate::new("leader", &store);
    let term = leader.lead().await;
    let renewal = leader.renewal_of(term.fence);
    for _ in 0..2 {
        wait_for("the server to close it", async || {
            let others = "SELECT COUNT(*) FROM information_schema.PROCESSLIST \
                          WHERE USER = 'root' AND ID <> CONNECTION_ID()";
            let mut admin = connect(&server.url()).await;
            (value::<i64>(&mut admin, others).await == 0).then_some(())
        })
        .await;
        won(leader.session.renew(&renewal).await.unwrap());
    }
}

#[tokio::test]
async fn a_broken_path_is_an_error_until_it_heals() {
    let (proxy, store, _) = behind_proxy().await;
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
#[tokio::test]
async fn a_claim_that_arrives_late_is_not_adopted() {
    let (proxy, store, direct) = behind_proxy().await;
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
#[tokio::test]
async fn an_abandoned_call_frees_the_server_within_its_limit() {
    for portable in [false, true] {
        let (store, table) = fresh_store().await;
        let store = if portable { store.without_mariadb_shortcuts() } else { store };
        let mut leader = Candidate::new("leader", &store);
        let term = leader.lead().await;
        let renewal = leader.renewal_of(term.fence);
        let mut locker = admin().await;
        execute(&mut locker, format!("START TRANSACTION; SELECT * FROM {table} FOR UPDATE")).await;

        let mut leader = Candidate::new("leader", &store);
        leader.session.limit_calls(Duration::from_secs(6));
        let mut admin = admin().await;
        tokio::select! {
            outcome = leader.session.renew(&renewal) => panic!("{outcome:?} in spite of the lock"),
            () = wait_for_a_lock(&mut admin, &table) => {}
        }
        wait_for("the server to give up", async || {
            (!waits_for_a_lock(&mut admin, &table).await).then_some(())
        })
        .await;
        execute(&mut locker, "ROLLBACK").await;
        won(leader.session.renew(&renewal).await.unwrap());
    }
}

#[tokio::test]
async fn a_call_that_an_operator_cancels_is_tried_again() {
    let (_, table) = fresh_store().await;
    let (store, user) = store_of_a_user(&table).await;
    let mut leader = Candidate::new("leader", &store);
    let term = leader.lead().await;
    let renewal = leader.renewal_of(term.fence);
    let (mut locker, mut admin) = (admin().await, admin().await);
    execute(&mut locker, format!("START TRANSACTION; SELECT * FROM {table} FOR UPDATE")).await;
    leader.session.limit_calls(Duration::from_secs(60));
    let (outcome, ()) = tokio::join!(leader.session.renew(&renewal), async {
        wait_for_a_lock(&mut admin, &table).await;
        execute(&mut admin, format!("KILL QUERY USER {user}")).await;
    });
    let error = outcome.unwrap_err();
    assert!(error.is_retryable() && number(&error) == Some(1317), "{error:?}");
    execute(&mut locker, "ROLLBACK").await;
    won(leader.session.renew(&renewal).await.unwrap());
}

/// Somebody's transaction that goes for the two rows in the other order, as no statement of tenure's does.
#[tokio::test]
async fn a_deadlock_is_tried_again_and_loses_nothing() {
    let (store, table) = fresh_store().await;
    let mut leader = Candidate::new("leader", &store);
    let term = leader.lead().await;
    let mut rival = Candidate::new("rival", &store);
    rival.session.limit_calls(Duration::from_secs(60));
    let claim = rival.claim_of(Some(&term));
    let (mut other, mut admin) = (admin().await, admin().await);
    // It has written more, so it is the rival that gives way.
    let heavy = format!(
        "START TRANSACTION; INSERT INTO {table}_hold (election) \
         SELECT CONCAT('other ', seq) FROM seq_1_to_100; UPDATE {table} SET acquired_us = acquired_us - 1"
    );
    execute(&mut other, heavy).await;
    let (outcome, ()) = tokio::join!(rival.session.acquire(&claim), async {
        wait_for_a_lock(&mut admin, &table).await;
        execute(
            &mut other,
            format!("UPDATE {table}_hold SET held_fence = held_fence + 0; ROLLBACK"),
        )
        .await;
    });
    let error = outcome.unwrap_err();
    assert!(error.is_retryable() && number(&error) == Some(1213), "{error:?}");
    let seen = rival.session.inspect().await.unwrap().unwrap();
    assert_eq!(seen.version, term.version);
    won(rival.session.acquire(&claim).await.unwrap());
}

#[tokio::test]
async fn a_lease_outlives_a_frozen_and_a_killed_server() {
    let mut server = Mariadb::start().unwrap();
    let store = MysqlStore::new(&server.url()).unwrap();
    store.ensure_schema().await.unwrap();
    let mut leader = Candidate::new("leader", &store);
    let term = leader.lead().await;
    let renewal = leader.renewal_of(term.fence);

    server.stop();
    tokio::select! {
        outcome = leader.session.renew(&renewal) => panic!("{outcome:?} from a frozen server"),
        () = sleep(Duration::from_millis(200)) => {}
    }
    server.cont();
    won(leader.session.renew(&renewal).await.unwrap());

    server.kill().unwrap();
    assert!(leader.session.renew(&renewal).await.unwrap_err().is_retryable());
    server.restart().unwrap();
    let renewed = won(leader.session.renew(&renewal).await.unwrap());
    assert_eq!(renewed.fence, term.fence);
    connect(&server.url()).await;
}

/// Whatever a call is doing when the server shuts down.
#[tokio::test]
async fn a_shutdown_is_tried_again_and_loses_nothing() {
    let mut server = Mariadb::start().unwrap();
    let store = MysqlStore::new(&server.url()).unwrap();
    store.ensure_schema().await.unwrap();
    let mut leader = Candidate::new("leader", &store);
    let term = leader.lead().await;
    let renewal = leader.renewal_of(term.fence);
    let mut locker = connect(&server.url()).await;
    let lock = "START TRANSACTION; SELECT * FROM leader_election FOR UPDATE";
    execute(&mut locker, lock).await;
    let mut admin = connect(&server.url()).await;

    leader.session.limit_calls(Duration::from_secs(60));
    let waiting = tokio::spawn(async move {
        let error = leader.session.renew(&renewal).await.unwrap_err();
        (error, leader, renewal)
    });
    wait_for_a_lock(&mut admin, "leader_election").await;
    execute(&mut admin, "SHUTDOWN").await;
    let (error, mut leader, renewal) = waiting.await.unwrap();
    assert!(error.is_retryable(), "{error:?}");
    server.restart().unwrap();
    assert_eq!(won(leader.session.renew(&renewal).await.unwrap()).fence, term.fence);
    assert_eq!(store.leaders().await.unwrap()[0].0, election());
}
