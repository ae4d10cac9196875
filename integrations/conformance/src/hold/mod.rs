//! A term that is held in a transaction of the user's: nobody takes over before its commit, and nobody who was followed
//! commits anything.

mod late_writes;
mod leader;

use std::{pin::pin, time::Duration};

use tenure::{
    Store, TermEnd,
    store::{Hold, HoldError, RenewRequest, Session, When},
};
use tokio::time::sleep;

pub(crate) use self::late_writes::{
    no_late_write_under_read_committed, no_late_write_under_repeatable_read,
    no_late_write_under_serializable,
};
use self::leader::{
    ExpectUser, Leader, PATIENCE, hold, impatient, is_kept_away, says_what_is_in_the_way, take_over,
};
use crate::{
    bench::{Bench, ExpectStore, LONG, election, won},
    cancellation::Cuts,
    subject::{Subject, Unsupported},
    transaction::{Isolation, Transaction},
};

/// Given to what is to wait, so that it is waiting.
const A_WHILE: Duration = Duration::from_millis(100);

/// A store either declares that it can hold a term and offers it, or neither.
pub(crate) async fn it_is_offered_if_it_is_declared<S: Subject>(
    bench: Bench<S>,
) -> Result<(), Unsupported> {
    let offered = bench.transaction().await.map(drop);
    match bench.store.capabilities().hold {
        Hold::None => {
            assert!(offered.is_err(), "a term can be held, which the store does not declare");
            Err(Unsupported("the store can not hold a term"))
        }
        declared => {
            assert_eq!(offered, Ok(()), "the store declares {declared:?}");
            Ok(())
        }
    }
}

pub(crate) async fn nobody_takes_over_before_the_commit<S: Subject>(
    bench: Bench<S>,
) -> Result<(), Unsupported> {
    let mut transaction = bench.transaction().await?;
    let leader = Leader::of(&bench, &bench.election).await;
    let mut rival = impatient(&bench, "a rival").await;
    hold(&mut transaction, &leader.term).await;
    // Before anything else is written: in some databases that would keep it away as well.
    is_kept_away(&mut rival).await;
    transaction.add().await.expect_user("add");
    transaction.commit().await.expect_user("commit");

    assert_eq!(bench.count().await, 1);
    let successor = rival.lead(LONG).await;
    assert!(successor.fence > leader.term.fence(), "{successor:?} follows {:?}", leader.term);
    Ok(())
}

/// What the term was needed for is done before anybody else leads, or it is never done: the promise itself, with
/// take-overs at any moment of the transaction.
pub(crate) async fn nothing_is_added_after_a_take_over<S: Subject>(
    bench: Bench<S>,
) -> Result<(), Unsupported> {
    bench.transaction().await.map(drop)?;
    for isolation in Isolation::ALL {
        if bench.subject.begin(isolation).await.is_err() {
            continue;
        }
        for round in 0..6 {
            let contended = election(&format!("{isolation:?} {round}"));
            let leader = Leader::of(&bench, &contended).await;
            let mut rival = bench.candidate_of("a rival", &contended).await;
            let seen = rival.look().await;
            let before = bench.count().await;
            let writing = async {
                let mut transaction = bench.subject.begin(isolation).await.expect("as before");
                transaction.count().await?;
                transaction.hold(&leader.term).await?;
                sleep(Duration::from_millis(round % 3)).await;
                transaction.add().await?;
                transaction.commit().await
            };
            let taking_over = async {
                sleep(Duration::from_micros(500 * round)).await;
                take_over(&mut rival, &seen).await;
                bench.count().await
            };
            let (written, at_the_take_over) = tokio::join!(writing, taking_over);
            let after = bench.count().await;
            assert_eq!(after, at_the_take_over, "added after the take-over ({isolation:?})");
            assert_eq!(after - before, i64::from(written.is_ok()), "{isolation:?}: {written:?}");
        }
    }
    Ok(())
}

pub(crate) async fn renewals_pass_or_wait_as_declared<S: Subject>(
    bench: Bench<S>,
) -> Result<(), Unsupported> {
    let mut transaction = bench.transaction().await?;
    let leader = Leader::of(&bench, &bench.election).await;
    let mut renewing = leader.again(&bench).await;
    renewing.session.limit_calls(PATIENCE);
    hold(&mut transaction, &leader.term).await;
    match bench.store.capabilities().hold {
        Hold::Shared => {
            let renewed = won(renewing.renew(leader.term.fence(), LONG).await);
            assert_eq!(renewed.fence, leader.term.fence());
            let mut rival = impatient(&bench, "a rival").await;
            is_kept_away(&mut rival).await;
        }
        _ => {
            let request = RenewRequest::new(renewing.identity.clone(), leader.term.fence(), LONG);
            says_what_is_in_the_way(renewing.session.renew(&request).await);
        }
    }
    transaction.commit().await.expect_user("commit");
    won(renewing.renew(leader.term.fence(), LONG).await);
    Ok(())
}

pub(crate) async fn several_transactions_hold_one_term<S: Subject>(
    bench: Bench<S>,
) -> Result<(), Unsupported> {
    let mut first = bench.transaction().await?;
    if bench.store.capabilities().hold != Hold::Shared {
        return Err(Unsupported("the store declares that holds exclude each other"));
    }
    let mut second = bench.transaction().await?;
    let leader = Leader::of(&bench, &bench.election).await;
    let mut rival = impatient(&bench, "a rival").await;
    hold(&mut first, &leader.term).await;
    hold(&mut second, &leader.term).await;
    first.commit().await.expect_user("commit");
    is_kept_away(&mut rival).await;
    second.add().await.expect_user("add");
    second.commit().await.expect_user("commit");
    assert_eq!(bench.count().await, 1);
    rival.lead(LONG).await;
    Ok(())
}

pub(crate) async fn a_transaction_that_is_dropped_holds_nothing<S: Subject>(
    bench: Bench<S>,
) -> Result<(), Unsupported> {
    let mut transaction = bench.transaction().await?;
    let leader = Leader::of(&bench, &bench.election).await;
    let mut rival = impatient(&bench, "a rival").await;
    let seen = rival.look().await;
    hold(&mut transaction, &leader.term).await;
    transaction.add().await.expect_user("add");
    drop(transaction);
    take_over(&mut rival, &seen).await;
    assert_eq!(bench.count().await, 0);
    Ok(())
}

/// Whoever drops a hold and rolls back has held nothing; neither a later transaction nor a candidate notices anything.
pub(crate) async fn a_hold_may_be_dropped_at_any_point<S: Subject>(
    bench: Bench<S>,
) -> Result<(), Unsupported> {
    drop(bench.transaction().await?);
    let leader = Leader::of(&bench, &bench.election).await;
    // On a busy machine the answer is sometimes here at once.
    let mut cuts = Cuts::in_rounds(5);
    let mut commits = 0;
    cuts.everywhere("hold", async |cut| {
        let mut dropped = bench.transaction().await.expect("there was one before");
        dropped.add().await.expect_user("add");
        let held = cut.apply(dropped.hold(&leader.term)).await;
        let is_done = held.is_some();
        if let Some(held) = held {
            held.unwrap_or_else(|error| panic!("hold failed: {error:?}"));
        }
        drop(dropped);

        let mut transaction = bench.transaction().await.expect("there was one before");
        hold(&mut transaction, &leader.term).await;
        transaction.add().await.expect_user("add");
        transaction.commit().await.expect_user("commit");
        commits += 1;
        is_done
    })
    .await;
    assert_eq!(bench.count().await, commits);
    let mut rival = bench.candidate("a rival").await;
    let seen = rival.look().await;
    take_over(&mut rival, &seen).await;
    cuts.report(bench.subject.cut_points().min(2));
    Ok(())
}

/// The operator's step-down comes after the commit, or changes nothing about it. What is held after it is refused.
pub(crate) async fn to_depose_the_leader_breaks_no_hold<S: Subject>(
    bench: Bench<S>,
) -> Result<(), Unsupported> {
    let mut transaction = bench.transaction().await?;
    bench.subject.administration()?;
    let leader = Leader::of(&bench, &bench.election).await;
    hold(&mut transaction, &leader.term).await;

    let mut deposing = pin!(bench.store.depose(&bench.election));
    let early = tokio::select! {
        deposed = &mut deposing => Some(deposed),
        () = sleep(A_WHILE) => None,
    };
    transaction.add().await.expect_user("add");
    transaction.commit().await.expect_user("commit");
    let deposed = match early {
        Some(deposed) => deposed,
        None => deposing.await,
    };
    if let Err(error) = deposed {
        assert!(error.is_retryable(), "{error}");
        bench.store.depose(&bench.election).await.expect_store("depose");
    }
    assert_eq!(bench.count().await, 1);
    let held = bench.transaction().await?.hold(&leader.term).await;
    assert!(matches!(held, Err(HoldError::NotCurrent { .. })), "{held:?}");
    Ok(())
}

/// While it hands over, admitted work may still write. After its end nothing is asked of the database.
pub(crate) async fn a_term_is_held_while_it_drains_and_not_after_its_end<S: Subject>(
    bench: Bench<S>,
) -> Result<(), Unsupported> {
    let mut transaction = bench.transaction().await?;
    let leader = Leader::of(&bench, &bench.election).await;
    let guard = leader.term.guard().expect("the term is live");
    let resigned = leader.candidacy.resign();
    leader.term.cancelled().await;
    assert!(!leader.term.is_live() && leader.term.may_finish(), "{:?}", leader.term);
    hold(&mut transaction, &leader.term).await;
    transaction.add().await.expect_user("add");
    transaction.commit().await.expect_user("commit");
    drop(guard);
    resigned.await;

    let mut late = bench.transaction().await?;
    let held = late.hold(&leader.term).await;
    assert!(matches!(held, Err(HoldError::Ended(TermEnd::Resigned))), "{held:?}");
    drop(late);
    assert_eq!(bench.count().await, 1);
    Ok(())
}

/// A lease may run out while its term is held: then nobody takes over, or what was added is never seen.
pub(crate) async fn a_hold_outlasts_the_lease_or_its_transaction_fails<S: Subject>(
    bench: Bench<S>,
) -> Result<(), Unsupported> {
    let mut transaction = bench.transaction().await?;
    bench.needs_clock()?;
    let leader = Leader::of(&bench, &bench.election).await;
    let mut renewing = leader.again(&bench).await;
    let mut rival = impatient(&bench, "a rival").await;
    won(renewing.renew(leader.term.fence(), PATIENCE).await);
    match transaction.hold(&leader.term).await {
        Ok(()) => {}
        // So slow a machine has nothing to show here.
        Err(HoldError::NotCurrent { .. }) => return Ok(()),
        Err(error) => panic!("hold failed: {error}"),
    }
    let expired = rival.wait_for_expiry().await;
    let mut claim = rival.request(Some(&expired), LONG);
    claim.when = When::Expired;
    let followed = match rival.session.acquire(&claim).await {
        Ok(outcome) => Some(won(outcome)),
        kept_away => {
            says_what_is_in_the_way(kept_away);
            None
        }
    };
    let committed = match transaction.add().await {
        Ok(()) => transaction.commit().await,
        refused => refused,
    };
    assert!(followed.is_none() || committed.is_err(), "committed after {followed:?} had begun");
    if followed.is_none() {
        take_over(&mut rival, &expired).await;
    }
    assert_eq!(bench.count().await, i64::from(committed.is_ok()), "{committed:?}");
    Ok(())
}
