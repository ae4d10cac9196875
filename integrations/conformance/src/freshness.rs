//! A success reports a write that was executed after the call was made, and every write has a version of its own.

use std::{collections::HashSet, time::Duration};

use tenure::Version;
use tokio::time::sleep;

use crate::{
    bench::{Bench, LONG, lost, won},
    subject::{Subject, Unsupported},
};

pub(crate) async fn every_write_changes_the_version_and_none_comes_twice<S: Subject>(
    bench: Bench<S>,
) -> Result<(), Unsupported> {
    let mut candidate = bench.candidate("a candidate").await;
    let mut seen = HashSet::new();
    for _ in 0..3 {
        let term = candidate.lead(LONG).await;
        fresh(&mut seen, &term.version);
        for _ in 0..3 {
            fresh(&mut seen, &won(candidate.renew(term.fence, LONG).await).version);
        }
        fresh(&mut seen, &won(candidate.release(term.fence).await).version);
    }
    Ok(())
}

pub(crate) async fn a_version_does_not_come_back_with_a_lost_record<S: Subject>(
    bench: Bench<S>,
) -> Result<(), Unsupported> {
    let mut candidate = bench.candidate("a candidate").await;
    let mut seen = HashSet::new();
    for _ in 0..3 {
        bench.lose_record().await?;
        fresh(&mut seen, &candidate.place(LONG, None).await.version);
        bench.lose_record().await?;
        let term = candidate.lead(LONG).await;
        fresh(&mut seen, &term.version);
        for _ in 0..20 {
            fresh(&mut seen, &won(candidate.renew(term.fence, LONG).await).version);
        }
    }
    Ok(())
}

/// Else a candidate that watches could take a renewal after the restore for one that it saw before it.
pub(crate) async fn a_version_does_not_come_back_with_a_restored_record<S: Subject>(
    bench: Bench<S>,
) -> Result<(), Unsupported> {
    let mut leader = bench.candidate("the leader").await;
    let term = leader.lead(LONG).await;
    bench.subject.back_up().await?;
    let mut seen = HashSet::new();
    for _ in 0..3 {
        for _ in 0..3 {
            fresh(&mut seen, &won(leader.renew(term.fence, LONG).await).version);
        }
        bench.subject.restore().await?;
    }
    Ok(())
}

/// The candidate does not know that its claim was executed. Told by a second call, it would take a lease for fresh that
/// has been running since the first.
pub(crate) async fn a_claim_that_finds_its_own_earlier_write_is_no_success<S: Subject>(
    bench: Bench<S>,
) -> Result<(), Unsupported> {
    let mut candidate = bench.candidate("a candidate").await;
    let request = candidate.request(None, LONG);
    let unheard = candidate.acquire(&request).await;
    drop(unheard);

    let before = bench.record().await;
    let in_the_way = lost(candidate.acquire(&request).await);
    assert_eq!(in_the_way.and_then(|lease| lease.holder), Some(candidate.identity));
    assert_eq!(bench.record().await, before);
    Ok(())
}

pub(crate) async fn a_renewal_after_one_that_was_never_answered_writes_again<S: Subject>(
    bench: Bench<S>,
) -> Result<(), Unsupported> {
    let mut leader = bench.candidate("the leader").await;
    let term = leader.lead(LONG).await;
    let unheard = leader.renew(term.fence, LONG).await;
    drop(unheard);
    sleep(Duration::from_millis(50)).await;
    let left_behind = leader.look().await;
    assert_ne!(left_behind.version, term.version, "the renewal was executed");

    let renewed = won(leader.renew(term.fence, LONG).await);
    assert_ne!(renewed.version, left_behind.version);
    assert!(renewed.ttl >= left_behind.ttl, "{renewed:?} was renewed after {left_behind:?}");
    Ok(())
}

pub(crate) async fn a_release_after_a_renewal_that_was_never_answered_succeeds<S: Subject>(
    bench: Bench<S>,
) -> Result<(), Unsupported> {
    let mut leader = bench.candidate("the leader").await;
    let term = leader.lead(LONG).await;
    let mut behind_its_back = bench.candidate("the leader").await;
    won(behind_its_back.renew(term.fence, LONG).await);
    assert!(won(leader.release(term.fence).await).released);
    Ok(())
}

/// The same for a session that believes the record to be as it wrote it.
pub(crate) async fn a_renewal_after_a_late_one_writes_again<S: Subject>(
    bench: Bench<S>,
) -> Result<(), Unsupported> {
    let mut leader = bench.candidate("the leader").await;
    let term = leader.lead(LONG).await;
    let mut behind_its_back = bench.candidate("the leader").await;
    let late = won(behind_its_back.renew(term.fence, LONG).await);
    let renewed = won(leader.renew(term.fence, LONG).await);
    assert_ne!(renewed.version, late.version);
    assert_eq!(leader.look().await.version, renewed.version);
    Ok(())
}

pub(crate) async fn a_success_reports_the_record_as_it_stands<S: Subject>(
    bench: Bench<S>,
) -> Result<(), Unsupported> {
    let mut leader = bench.candidate("the leader").await;
    let term = leader.lead(LONG).await;
    assert_eq!(leader.look().await.version, term.version);
    let renewed = won(leader.renew(term.fence, LONG).await);
    assert_eq!(leader.look().await.version, renewed.version);
    let released = won(leader.release(term.fence).await);
    assert_eq!(leader.look().await.version, released.version);
    Ok(())
}

fn fresh(seen: &mut HashSet<Version>, version: &Version) {
    assert!(seen.insert(version.clone()), "{version:?} was used before");
}
