//! What holding a term costs, and whom it keeps waiting: beyond what the acceptance suite asks.

#![allow(clippy::unwrap_used)] // helpers of tests are tests

mod common;

use std::time::Duration;

use sqlx::{AssertSqlSafe, MySqlConnection};
use tenure::{
    Candidacy, Elector, Term,
    store::{HoldError, RenewRequest, Session, Store},
};
use tenure_mysql::{MysqlSession, MysqlStore, sqlx};
use tenure_testbed::Mariadb;

use common::{
    Candidate, LONG, admin, connect, election, execute, fresh_store, lost, value, wait_for_a_lock,
    won,
};

/// A whole elector that leads, with a lease so long that it does nothing by itself.
struct Leader {
    _candidacy: Candidacy,
    term: Term,
    /// Another session of the same candidate.
    session: MysqlSession,
}

impl Leader {
    async fn of(store: &MysqlStore) -> Self {
        let elector = Elector::builder(election(), store.clone()).lease_duration(LONG).build();
        let candidacy = elector.unwrap().spawn();
        let term = candidacy.leadership().leading().await.unwrap();
        Self { _candidacy: candidacy, term, session: store.session(&election()) }
    }

    fn renewal(&self, duration: Duration) -> RenewRequest {
        RenewRequest::new(self.term.identity().clone(), self.term.fence(), duration)
    }
}

async fn begin(isolation: &str) -> MySqlConnection {
    let mut transaction = admin().await;
    let begun = format!("SET TRANSACTION ISOLATION LEVEL {isolation}; START TRANSACTION");
    execute(&mut transaction, begun).await;
    transaction
}

/// Takes the snapshot, where the level has one.
async fn look(transaction: &mut MySqlConnection, table: &str) -> i64 {
    value(transaction, format!("SELECT version FROM {table}")).await
}

#[tokio::test]
async fn renewals_pass_wherever_what_is_looked_at_is_not_locked() {
    for (isolation, pass) in
        [("READ COMMITTED", true), ("REPEATABLE READ", true), ("SERIALIZABLE", false)]
    {
        let (store, _) = fresh_store().await;
        let mut leader = Leader::of(&store).await;
        leader.session.limit_calls(Duration::from_millis(500));
        let renewal = leader.renewal(LONG);
        let mut transaction = begin(isolation).await;
        store.hold_term(&mut transaction, &leader.term).await.unwrap();
        let renewed = leader.session.renew(&renewal).await;
        assert_eq!(renewed.is_ok(), pass, "{isolation}: {renewed:?}");
        execute(&mut transaction, "COMMIT").await;
        won(leader.session.renew(&renewal).await.unwrap());
    }
}

/// A take-over that waits for the hold has no lock on the record yet.
#[tokio::test]
async fn renewals_pass_a_take_over_that_waits_for_the_hold() {
    let (store, table) = fresh_store().await;
    let mut leader = Leader::of(&store).await;
    let renewal = leader.renewal(LONG);
    let mut transaction = begin("REPEATABLE READ").await;
    store.hold_term(&mut transaction, &leader.term).await.unwrap();

    let mut rival = Candidate::new("rival", &store);
    rival.session.limit_calls(Duration::from_secs(60));
    let seen = rival.session.inspect().await.unwrap();
    let claim = rival.claim_of(seen.as_ref());
    let claiming = tokio::spawn(async move { rival.session.acquire(&claim).await });
    wait_for_a_lock(&mut admin().await, &table).await;
    won(leader.session.renew(&renewal).await.unwrap());
    execute(&mut transaction, "COMMIT").await;
    // What it saw is not there any more.
    lost(claiming.await.unwrap().unwrap()).unwrap();
}

/// The lease that an old transaction sees has expired, and was renewed long ago.
#[tokio::test]
async fn a_transaction_that_began_before_the_renewals_holds_the_term_all_the_same() {
    let (store, table) = fresh_store().await;
    let mut leader = Leader::of(&store).await;
    let short = leader.renewal(Duration::from_millis(300));
    won(leader.session.renew(&short).await.unwrap());
    let mut transaction = begin("REPEATABLE READ").await;
    let seen = look(&mut transaction, &table).await;
    let long = leader.renewal(LONG);
    won(leader.session.renew(&long).await.unwrap());
    tokio::time::sleep(Duration::from_millis(350)).await;

    store.hold_term(&mut transaction, &leader.term).await.unwrap();
    assert_eq!(look(&mut transaction, &table).await, seen, "it is as old as it was");
    let mut rival = Candidate::new("rival", &store);
    rival.session.limit_calls(Duration::from_millis(500));
    let current = rival.session.inspect().await.unwrap().unwrap();
    let error = rival.session.acquire(&rival.claim_of(Some(&current))).await.unwrap_err();
    assert!(error.is_retryable() && error.to_string().contains("holds the term"), "{error}");
    execute(&mut transaction, "COMMIT").await;
    won(rival.session.acquire(&rival.claim_of(Some(&current))).await.unwrap());
}

/// Where a lock on what has changed is refused, such a transaction has to begin anew, and is told so.
#[tokio::test]
async fn under_snapshot_isolation_an_old_transaction_is_told_to_begin_anew() {
    let server = Mariadb::start_with(&["--innodb-snapshot-isolation=ON"]).unwrap();
    let store = MysqlStore::new(&server.url()).unwrap();
    store.ensure_schema().await.unwrap();
    let leader = Leader::of(&store).await;
    let mut transaction = connect(&server.url()).await;
    execute(&mut transaction, "START TRANSACTION").await;
    look(&mut transaction, "leader_election").await;
    Candidate::new("rival", &store).lead().await;
    let error = match store.hold_term(&mut transaction, &leader.term).await {
        Err(HoldError::Store(error)) => error,
        other => panic!("{other:?}"),
    };
    assert!(error.is_retryable() && error.to_string().contains("1020"), "{error}");
    execute(&mut transaction, "ROLLBACK; START TRANSACTION").await;
    let refused = store.hold_term(&mut transaction, &leader.term).await;
    let Err(HoldError::NotCurrent { fence, current: Some(current) }) = refused else {
        panic!("{refused:?}");
    };
    assert!(fence == leader.term.fence() && current.fence > fence, "{current:?}");
}

#[tokio::test]
async fn the_statement_for_other_drivers_answers_a_row_if_the_term_is_held() {
    let (store, _) = fresh_store().await;
    let mut leader = Leader::of(&store).await;
    let renewal = leader.renewal(LONG);
    let hold = store.hold_sql(&leader.term);
    let ask = async |transaction: &mut MySqlConnection| {
        let answered = sqlx::query(AssertSqlSafe(hold.clone())).fetch_optional(transaction).await;
        answered.unwrap().is_some()
    };
    let mut transaction = begin("REPEATABLE READ").await;
    assert!(ask(&mut transaction).await);
    won(leader.session.renew(&renewal).await.unwrap());
    let mut rival = Candidate::new("rival", &store);
    rival.session.limit_calls(Duration::from_millis(500));
    let current = rival.session.inspect().await.unwrap().unwrap();
    rival.session.acquire(&rival.claim_of(Some(&current))).await.unwrap_err();
    execute(&mut transaction, "COMMIT").await;
    won(rival.session.acquire(&rival.claim_of(Some(&current))).await.unwrap());

    let mut transaction = begin("REPEATABLE READ").await;
    assert!(!ask(&mut transaction).await);
}

/// There it would be released at once.
#[tokio::test]
async fn outside_of_a_transaction_nothing_is_held() {
    let (store, _) = fresh_store().await;
    let leader = Leader::of(&store).await;
    let mut connection = admin().await;
    let refused = store.hold_term(&mut connection, &leader.term).await;
    assert!(matches!(refused, Err(HoldError::NotInTransaction)), "{refused:?}");
    // Every statement begins one, or goes on with it.
    execute(&mut connection, "SET SESSION autocommit = 0").await;
    store.hold_term(&mut connection, &leader.term).await.unwrap();
}

/// What the documentation tells users of MariaDB to set.
#[tokio::test]
async fn a_frozen_holder_is_thrown_out_where_the_pool_says_so() {
    let (store, _) = fresh_store().await;
    let leader = Leader::of(&store).await;
    let mut frozen = admin().await;
    execute(&mut frozen, "SET SESSION idle_transaction_timeout = 1; START TRANSACTION").await;
    store.hold_term(&mut frozen, &leader.term).await.unwrap();
    let mut rival = Candidate::new("rival", &store);
    let current = rival.session.inspect().await.unwrap().unwrap();
    rival.session.limit_calls(Duration::from_secs(60));
    won(rival.session.acquire(&rival.claim_of(Some(&current))).await.unwrap());
    sqlx::raw_sql("COMMIT").execute(&mut frozen).await.unwrap_err();
}

/// A release waits for the holders, as whoever takes the lease after it would have to.
#[tokio::test]
async fn a_release_comes_after_the_commit() {
    let (store, _) = fresh_store().await;
    let mut leader = Leader::of(&store).await;
    let mut transaction = begin("READ COMMITTED").await;
    store.hold_term(&mut transaction, &leader.term).await.unwrap();
    let release =
        tenure::store::ReleaseRequest::new(leader.term.identity().clone(), leader.term.fence());
    leader.session.limit_calls(Duration::from_millis(500));
    let error = leader.session.release(&release).await.unwrap_err();
    assert!(error.is_retryable() && error.to_string().contains("holds the term"), "{error}");
    execute(&mut transaction, "COMMIT").await;
    won(leader.session.release(&release).await.unwrap());
}

/// InnoDB gives back no lock at a savepoint, but all of them at one that is older than its part of the transaction.
#[tokio::test]
async fn a_hold_ends_with_a_savepoint_before_which_nothing_was_done() {
    let (store, table) = fresh_store().await;
    let leader = Leader::of(&store).await;
    for is_first in [false, true] {
        let mut transaction = begin("READ COMMITTED").await;
        if !is_first {
            look(&mut transaction, &table).await;
        }
        execute(&mut transaction, "SAVEPOINT earlier").await;
        store.hold_term(&mut transaction, &leader.term).await.unwrap();
        execute(&mut transaction, "ROLLBACK TO SAVEPOINT earlier").await;
        let mut rival = Candidate::new("rival", &store);
        let seen = rival.session.inspect().await.unwrap();
        let claim = rival.claim_of(seen.as_ref());
        if is_first {
            won(rival.session.acquire(&claim).await.unwrap());
        } else {
            rival.session.limit_calls(Duration::from_millis(500));
            rival.session.acquire(&claim).await.unwrap_err();
        }
        execute(&mut transaction, "ROLLBACK").await;
    }
}

/// Whoever holds the term sees it in place for as long as its transaction lasts; whoever took over, or ended it, first is
/// noticed.
#[tokio::test]
async fn a_hold_and_the_end_of_the_term_beside_it_come_one_after_the_other() {
    let (store, table) = fresh_store().await;
    let mut leader = Leader::of(&store).await;
    let mut rival = Candidate::new("rival", &store);
    let (mut onlooker, mut tx) = (admin().await, admin().await);
    let (fence, holder) = (i64::from(leader.term.fence()), leader.term.identity().clone());
    let current = format!(
        "SELECT COUNT(*) FROM {table} WHERE fence = {fence} AND holder = '{holder}' AND NOT released"
    );
    let back = format!(
        "START TRANSACTION; UPDATE {table}_hold SET held_fence = {fence}; \
         UPDATE {table} SET fence = {fence}, holder = '{holder}', version = version + 1, released = 0; COMMIT"
    );
    let release = tenure::store::ReleaseRequest::new(holder, leader.term.fence());
    let levels = ["READ UNCOMMITTED", "READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"];
    let (mut held, mut refused) = (0, 0);
    for round in 0..240_usize {
        // As if nothing had happened.
        execute(&mut onlooker, back.clone()).await;
        let seen = rival.session.inspect().await.unwrap();
        let claim = rival.claim_of(seen.as_ref());
        let snapshot = ["OFF", "ON"][round / 4 % 2];
        execute(
            &mut tx,
            format!(
                "SET SESSION innodb_snapshot_isolation = {snapshot}; \
                 SET TRANSACTION ISOLATION LEVEL {}; START TRANSACTION",
                levels[round % 4]
            ),
        )
        .await;
        if round / 8 % 2 == 0 && round % 4 != 3 {
            assert_eq!(value::<i64>(&mut tx, current.clone()).await, 1);
        }
        let holding = async {
            pause(round, 7).await;
            match store.hold_term(&mut tx, &leader.term).await {
                Ok(()) => {
                    held += 1;
                    for _ in 0..3 {
                        assert_eq!(value::<i64>(&mut onlooker, current.clone()).await, 1);
                    }
                    execute(&mut tx, "COMMIT").await;
                    return;
                }
                Err(HoldError::NotCurrent { .. }) => {}
                Err(HoldError::Store(error)) if error.is_retryable() => {}
                Err(error) => panic!("{error:?}"),
            }
            refused += 1;
            execute(&mut tx, "ROLLBACK").await;
        };
        let ending = async {
            pause(round, 5).await;
            // It may be the victim of a deadlock, which is tried again.
            match round % 3 {
                0 => drop(rival.session.acquire(&claim).await),
                1 => drop(leader.session.release(&release).await),
                _ => drop(store.depose(&election()).await),
            }
        };
        tokio::join!(holding, ending);
    }
    assert!(held > 0 && refused > 0, "{held} {refused}");
}

/// Lets the other one go first now and then.
async fn pause(round: usize, modulus: usize) {
    let us = u64::try_from(round % modulus).unwrap() * 400;
    tokio::time::sleep(Duration::from_micros(us)).await;
}
