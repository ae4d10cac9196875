//! Records that somebody else has changed, behind the store's back.

#![allow(clippy::unwrap_used)] // helpers of tests are tests

mod common;

use std::error::Error;

use tenure::store::{PlaceRequest, Session, Store};
use tenure_mysql::{MysqlError, sqlx};

use common::{Candidate, LONG, admin, election, execute, fresh_name, fresh_store};

/// By somebody's own hand. What it says is not guessed at: that might be two leaders.
#[tokio::test]
async fn a_record_that_was_spoiled_is_an_error_until_it_is_mended() {
    let (store, table) = fresh_store().await;
    let mut leader = Candidate::new("leader", &store);
    let term = leader.lead().await;
    let mut admin = admin().await;
    for (spoiled, mended) in [
        ("version = -1", "version = 7"),
        ("holder = ''", "holder = 'leader'"),
        ("holder = X'FF'", "holder = 'leader'"),
        ("fence = -1", "fence = 9"),
    ] {
        execute(&mut admin, format!("UPDATE {table} SET {spoiled}")).await;
        let error = leader.session.inspect().await.unwrap_err();
        let cause = error.source().and_then(|source| source.downcast_ref::<MysqlError>());
        let driver = cause.unwrap().driver();
        assert!(matches!(driver, sqlx::Error::Decode(_)), "{spoiled}: {error:?}");
        store.leaders().await.unwrap_err();
        execute(&mut admin, format!("UPDATE {table} SET {mended}")).await;
        let shown = leader.session.inspect().await.unwrap().unwrap();
        assert_eq!(shown.holder, term.holder);
    }
}

/// A trigger of somebody else's puts it elsewhere.
#[tokio::test]
async fn a_record_that_is_gone_as_soon_as_it_is_placed_is_tried_again() {
    let (store, table) = fresh_store().await;
    let mut admin = admin().await;
    let trigger = fresh_name("trigger");
    let elsewhere = format!(
        "CREATE TRIGGER {trigger} BEFORE INSERT ON {table} FOR EACH ROW SET NEW.name = 'elsewhere'"
    );
    execute(&mut admin, elsewhere).await;
    let mut session = store.session(&election());
    let error = session.place(&PlaceRequest::new(LONG)).await.unwrap_err();
    assert!(error.is_retryable() && error.to_string().contains("vanished again"), "{error}");
    execute(&mut admin, format!("DROP TRIGGER {trigger}")).await;
    session.place(&PlaceRequest::new(LONG)).await.unwrap();
}
