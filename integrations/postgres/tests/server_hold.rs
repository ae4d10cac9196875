//! What holding a term leaves behind in the user's transaction, whom it keeps waiting, and for how long.

#![allow(clippy::unwrap_used)] // helpers of tests are tests

mod common;

use std::time::Duration;

use sqlx::{AssertSqlSafe, Connection, PgConnection, postgres::PgPoolOptions};
use tenure::{
    Candidacy, Elector, Term,
    store::{HoldError, Session},
};
use tenure_postgres::{PostgresStore, sqlx};

use common::{Candidate, Path, connect, election, execute, on_each_path, value, wait_for, won};

on_each_path!(
    a_hold_leaves_the_users_limits_as_they_are_and_bounds_a_frozen_holder,
    a_frozen_holder_blocks_nobody_for_longer_than_the_lease,
    without_a_transaction_nothing_is_held,
    a_candidate_that_waits_for_a_held_term_says_so,
    a_release_waits_for_a_held_term_and_a_renewal_does_not,
    the_text_for_other_drivers_gives_one_row_or_none,
    a_deadlock_of_the_users_making_can_be_tried_again,
    a_term_that_has_ended_is_not_even_looked_for,
    a_hold_and_the_take_over_beside_it_come_one_after_the_other,
    a_hold_ends_with_the_savepoint_after_which_it_was_taken,
    a_snapshot_from_before_a_renewal_judges_by_the_lease_that_it_sees,
);

const LEASE: Duration = Duration::from_secs(60);

async fn leader(store: &PostgresStore, lease: Duration) -> (Candidacy, Term) {
    let elector = Elector::builder(election(), store.clone()).lease_duration(lease);
    let candidacy = elector.build().unwrap().spawn();
    let term = candidacy.leadership().leading().await.unwrap();
    (candidacy, term)
}

async fn begin(path: Path) -> PgConnection {
    let mut connection = connect(&path.url_of_a_fresh_user().await).await;
    execute(&mut connection, "BEGIN").await;
    connection
}

async fn setting(connection: &mut PgConnection, name: &str) -> String {
    value(connection, format!("SHOW {name}")).await
}

async fn a_hold_leaves_the_users_limits_as_they_are_and_bounds_a_frozen_holder(path: Path) {
    const IDLE: &str = "idle_in_transaction_session_timeout";
    let (store, _) = path.fresh_store().await;
    let (_candidacy, term) = leader(&store, LEASE).await;

    let mut tx = begin(path).await;
    execute(&mut tx, "SET LOCAL lock_timeout = '7min'").await;
    store.hold_term(&mut tx, &term).await.unwrap();
    assert_eq!(setting(&mut tx, "lock_timeout").await, "7min");
    assert_eq!(setting(&mut tx, IDLE).await, "1min", "the lease");
    // Again, in the same transaction.
    store.hold_term(&mut tx, &term).await.unwrap();
    execute(&mut tx, "COMMIT").await;
    assert_eq!(setting(&mut tx, IDLE).await, "0", "after the transaction");

    // A shorter limit of the user's is kept, a longer one is not.
    for (users, then) in [("5s", "5s"), ("1h", "1min")] {
        execute(&mut tx, format!("BEGIN; SET LOCAL {IDLE} = '{users}'")).await;
        store.hold_term(&mut tx, &term).await.unwrap();
        assert_eq!(setting(&mut tx, IDLE).await, then);
        execute(&mut tx, "ROLLBACK").await;
    }

    // A pool's transaction is passed as it is.
    let pool = PgPoolOptions::new().connect_lazy_with(path.options());
    let mut tx = pool.begin().await.unwrap();
    store.hold_term(&mut tx, &term).await.unwrap();
    tx.commit().await.unwrap();
}

async fn a_frozen_holder_blocks_nobody_for_longer_than_the_lease(path: Path) {
    let (store, table) = path.fresh_store().await;
    let (candidacy, term) = leader(&store, Duration::from_secs(10)).await;
    // What the server takes for the duration of the lease, so that the test need not wait for it.
    let sql = format!("UPDATE {table} SET duration_us = 300000");
    let mut frozen = begin(path).await;
    execute(&mut path.admin().await, sql).await;
    store.hold_term(&mut frozen, &term).await.unwrap();

    let mut rival = Candidate::new("rival", &store);
    let taken = wait_for("the server to end the transaction", async || {
        let seen = rival.session.inspect().await.unwrap();
        let claim = rival.claim_of(seen.as_ref());
        rival.session.acquire(&claim).await.ok()
    });
    let taken = won(taken.await);
    assert!(taken.fence > term.fence());
    sqlx::raw_sql("COMMIT").execute(&mut frozen).await.unwrap_err();
    candidacy.shutdown().await.unwrap();
}

async fn without_a_transaction_nothing_is_held(path: Path) {
    let (store, _) = path.fresh_store().await;
    let (_candidacy, term) = leader(&store, LEASE).await;
    let mut connection = connect(&path.url()).await;
    let error = store.hold_term(&mut connection, &term).await.unwrap_err();
    assert!(matches!(error, HoldError::NotInTransaction), "{error:?}");
    execute(&mut connection, "BEGIN").await;
    store.hold_term(&mut connection, &term).await.unwrap();
}

async fn a_candidate_that_waits_for_a_held_term_says_so(path: Path) {
    let (store, _) = path.fresh_store().await;
    let (_candidacy, term) = leader(&store, LEASE).await;
    let mut tx = begin(path).await;
    let mut other = begin(path).await;
    store.hold_term(&mut tx, &term).await.unwrap();
    store.hold_term(&mut other, &term).await.unwrap();

    let mut rival = Candidate::new("rival", &store);
    rival.session.limit_calls(Duration::from_millis(400));
    let seen = rival.session.inspect().await.unwrap();
    let claim = rival.claim_of(seen.as_ref());
    let error = rival.session.acquire(&claim).await.unwrap_err();
    assert!(error.is_retryable(), "{error}");
    assert!(error.to_string().contains("it holds the term"), "{error}");

    execute(&mut tx, "COMMIT").await;
    rival.session.acquire(&claim).await.unwrap_err();
    execute(&mut other, "COMMIT").await;
    won(rival.session.acquire(&claim).await.unwrap());
}

async fn a_release_waits_for_a_held_term_and_a_renewal_does_not(path: Path) {
    let (store, _) = path.fresh_store().await;
    let (_candidacy, term) = leader(&store, LEASE).await;
    let mut tx = begin(path).await;
    store.hold_term(&mut tx, &term).await.unwrap();

    let mut itself = Candidate::new(term.identity().as_str(), &store);
    itself.session.limit_calls(Duration::from_millis(400));
    let renewal = itself.renewal_of(term.fence());
    won(itself.session.renew(&renewal).await.unwrap());
    let release = itself.release_of(term.fence());
    let error = itself.session.release(&release).await.unwrap_err();
    assert!(error.to_string().contains("it holds the term"), "{error}");
    execute(&mut tx, "COMMIT").await;
    won(itself.session.release(&release).await.unwrap());
}

async fn the_text_for_other_drivers_gives_one_row_or_none(path: Path) {
    let (store, table) = path.fresh_store().await;
    let (_candidacy, term) = leader(&store, LEASE).await;
    let mut tx = begin(path).await;
    // As parsed by the extended protocol, which most drivers speak.
    let rows = |text: String| sqlx::query(AssertSqlSafe(text)).persistent(false);
    let held = rows(store.hold_sql(&term)).fetch_all(&mut tx).await.unwrap();
    assert_eq!(held.len(), 1);
    execute(&mut tx, "COMMIT; BEGIN").await;
    execute(&mut path.admin().await, format!("UPDATE {table} SET fence = fence + 1")).await;
    let held = rows(store.hold_sql(&term)).fetch_all(&mut tx).await.unwrap();
    assert_eq!(held.len(), 0);
    let error = store.hold_term(&mut tx, &term).await.unwrap_err();
    let HoldError::NotCurrent { fence, current: Some(current) } = error else {
        panic!("{error:?}");
    };
    assert!(fence == term.fence() && current.fence > fence, "{current:?}");
    tx.close().await.unwrap();
}

async fn a_deadlock_of_the_users_making_can_be_tried_again(path: Path) {
    let (store, table) = path.fresh_store().await;
    let (_candidacy, term) = leader(&store, LEASE).await;
    let mut admin = path.admin().await;
    execute(
        &mut admin,
        format!("CREATE TABLE {table}_other (n int); INSERT INTO {table}_other VALUES (1)"),
    )
    .await;
    let lock_other = format!("SELECT FROM {table}_other FOR UPDATE");
    let mut tx = begin(path).await;
    execute(&mut tx, lock_other.clone()).await;
    // Not renewals: the elector's own are far away.
    let mut rival = begin(path).await;
    execute(&mut rival, format!("SELECT FROM {table} FOR UPDATE")).await;
    let waiting =
        tokio::spawn(
            async move { sqlx::raw_sql(AssertSqlSafe(lock_other)).execute(&mut rival).await },
        );
    let error = store.hold_term(&mut tx, &term).await.err();
    // One of the two is told.
    match error {
        Some(HoldError::Store(error)) => {
            assert!(error.is_retryable() && error.to_string().contains("40P01"), "{error}");
        }
        Some(error) => panic!("{error:?}"),
        None => assert!(waiting.await.unwrap().is_err()),
    }
}

async fn a_term_that_has_ended_is_not_even_looked_for(path: Path) {
    let (store, _) = path.fresh_store().await;
    let (candidacy, term) = leader(&store, LEASE).await;
    let mut tx = begin(path).await;
    candidacy.shutdown().await.unwrap();
    let error = store.hold_term(&mut tx, &term).await.unwrap_err();
    assert!(matches!(error, HoldError::Ended(_)), "{error:?}");
    // The transaction is as it was.
    assert_eq!(value::<i32>(&mut tx, "SELECT 1").await, 1);
}

/// PostgreSQL gives back what was locked since the savepoint, and nothing else.
async fn a_hold_ends_with_the_savepoint_after_which_it_was_taken(path: Path) {
    let (store, _) = path.fresh_store().await;
    let (_candidacy, term) = leader(&store, LEASE).await;
    let mut tx = begin(path).await;
    let mut rival = Candidate::new("rival", &store);
    rival.session.limit_calls(Duration::from_millis(500));
    let seen = rival.session.inspect().await.unwrap();

    store.hold_term(&mut tx, &term).await.unwrap();
    execute(&mut tx, "SAVEPOINT between").await;
    store.hold_term(&mut tx, &term).await.unwrap();
    execute(&mut tx, "ROLLBACK TO SAVEPOINT between").await;
    rival.session.acquire(&rival.claim_of(seen.as_ref())).await.unwrap_err();
    execute(&mut tx, "ROLLBACK").await;

    let mut tx = begin(path).await;
    execute(&mut tx, "SAVEPOINT before").await;
    store.hold_term(&mut tx, &term).await.unwrap();
    execute(&mut tx, "ROLLBACK TO SAVEPOINT before").await;
    let seen = rival.session.inspect().await.unwrap();
    rival.session.limit_calls(LEASE);
    won(rival.session.acquire(&rival.claim_of(seen.as_ref())).await.unwrap());
}

/// Whoever holds the term sees it in place for as long as its transaction lasts; whoever took over first is noticed.
async fn a_hold_and_the_take_over_beside_it_come_one_after_the_other(path: Path) {
    let (store, table) = path.fresh_store().await;
    let (_candidacy, term) = leader(&store, LEASE).await;
    let mut rival = Candidate::new("rival", &store);
    let (mut admin, mut onlooker) = (path.admin().await, path.admin().await);
    let mut tx = connect(&path.url_of_a_fresh_user().await).await;
    let (fence, holder) = (i64::from(term.fence()), term.identity());
    let fence_now = format!("SELECT fence FROM {table}");
    let levels = ["READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"];
    for round in 0..150_usize {
        // As if nobody had taken over.
        let back = format!(
            "UPDATE {table} SET fence = {fence}, holder = '{holder}', version = version + 1"
        );
        execute(&mut admin, back).await;
        let seen = rival.session.inspect().await.unwrap();
        let claim = rival.claim_of(seen.as_ref());
        execute(&mut tx, format!("BEGIN ISOLATION LEVEL {}", levels[round % 3])).await;
        if round % 2 == 0 {
            // A snapshot from before.
            execute(&mut tx, fence_now.clone()).await;
        }
        let holding = async {
            pause(round, 7).await;
            match store.hold_term(&mut tx, &term).await {
                Ok(()) => {
                    for _ in 0..3 {
                        assert_eq!(value::<i64>(&mut onlooker, fence_now.clone()).await, fence);
                    }
                    execute(&mut tx, "COMMIT").await;
                }
                Err(HoldError::NotCurrent { .. }) => execute(&mut tx, "ROLLBACK").await,
                Err(HoldError::Store(error)) if error.is_retryable() => {
                    execute(&mut tx, "ROLLBACK").await;
                }
                Err(error) => panic!("{error:?}"),
            }
        };
        let taking_over = async {
            pause(round, 5).await;
            won(rival.session.acquire(&claim).await.unwrap())
        };
        tokio::join!(holding, taking_over);
    }
}

async fn a_snapshot_from_before_a_renewal_judges_by_the_lease_that_it_sees(path: Path) {
    let (store, table) = path.fresh_store().await;
    let (_candidacy, term) = leader(&store, LEASE).await;
    let mut admin = path.admin().await;
    // In place of the elector's own renewals, which are far away.
    let expires_in = |after: &str| {
        format!("UPDATE {table} SET expires_at = clock_timestamp() + interval '{after}'")
    };
    let mut tx = connect(&path.url_of_a_fresh_user().await).await;
    for (soon, then_held) in [("30 s", true), ("200 ms", false)] {
        execute(&mut admin, expires_in(soon)).await;
        execute(&mut tx, "BEGIN ISOLATION LEVEL REPEATABLE READ").await;
        let seen_over = format!("SELECT expires_at <= clock_timestamp() FROM {table}");
        value::<bool>(&mut tx, seen_over.clone()).await;
        execute(&mut admin, expires_in("60 s")).await;
        if !then_held {
            wait_for("the lease that it sees to run out", async || {
                value::<bool>(&mut tx, seen_over.clone()).await.then_some(())
            })
            .await;
        }
        match store.hold_term(&mut tx, &term).await {
            Ok(()) => assert!(then_held),
            Err(HoldError::NotCurrent { .. }) => assert!(!then_held),
            Err(error) => panic!("{error:?}"),
        }
        execute(&mut tx, "ROLLBACK").await;
    }
}

/// Different in each round, so that each of two gets to be the first.
async fn pause(round: usize, modulus: usize) {
    let steps = u64::try_from(round % modulus).unwrap();
    tokio::time::sleep(Duration::from_micros(700 * steps)).await;
}
