//! Renewals and releases touch the caller's own term and nobody else's.

use tenure::{
    Lease,
    store::{Outcome, Session},
};

use crate::{
    bench::{Bench, Candidate, LONG, SHORT, fence, lost, won},
    subject::{Subject, Unsupported},
};

pub(crate) async fn somebody_elses_lease_is_neither_renewed_nor_released<S: Subject>(
    bench: Bench<S>,
) -> Result<(), Unsupported> {
    let term = bench.candidate("the leader").await.lead(LONG).await;
    let mut other = bench.candidate("somebody else").await;
    refused(&bench, &mut other, &term).await;
    Ok(())
}

pub(crate) async fn another_fence_neither_renews_nor_releases<S: Subject>(
    bench: Bench<S>,
) -> Result<(), Unsupported> {
    let mut leader = bench.candidate("the leader").await;
    let former = leader.lead(LONG).await;
    let mut higher = leader.lead(LONG).await;
    higher.fence = fence(i64::from(higher.fence) + 1);
    refused(&bench, &mut leader, &former).await;
    refused(&bench, &mut leader, &higher).await;
    Ok(())
}

pub(crate) async fn a_released_lease_is_neither_renewed_nor_released_again<S: Subject>(
    bench: Bench<S>,
) -> Result<(), Unsupported> {
    let mut leader = bench.candidate("the leader").await;
    let term = leader.lead(LONG).await;
    let released = won(leader.release(term.fence).await);
    assert!(released.released, "{released:?}");
    refused(&bench, &mut leader, &term).await;
    Ok(())
}

pub(crate) async fn a_lease_that_was_taken_over_is_neither_renewed_nor_released<S: Subject>(
    bench: Bench<S>,
) -> Result<(), Unsupported> {
    let mut former = bench.candidate("the former leader").await;
    let term = former.lead(LONG).await;
    bench.candidate("the successor").await.lead(LONG).await;
    refused(&bench, &mut former, &term).await;
    Ok(())
}

pub(crate) async fn a_record_that_is_gone_is_neither_renewed_nor_released<S: Subject>(
    bench: Bench<S>,
) -> Result<(), Unsupported> {
    let mut leader = bench.candidate("the leader").await;
    let term = leader.lead(LONG).await;
    bench.lose_record().await?;
    assert_eq!(refused(&bench, &mut leader, &term).await, [None, None]);
    Ok(())
}

pub(crate) async fn a_record_that_never_was_is_neither_renewed_nor_released<S: Subject>(
    bench: Bench<S>,
) -> Result<(), Unsupported> {
    let mut candidate = bench.candidate("a candidate").await;
    assert_eq!(lost(candidate.renew(fence(1), LONG).await), None);
    assert_eq!(lost(candidate.release(fence(1)).await), None);
    assert_eq!(bench.record().await.lease, None);
    Ok(())
}

pub(crate) async fn an_expired_lease_is_not_renewed<S: Subject>(
    bench: Bench<S>,
) -> Result<(), Unsupported> {
    bench.needs_clock()?;
    let mut leader = bench.candidate("the leader").await;
    let term = leader.lead(SHORT).await;
    leader.wait_for_expiry().await;
    let before = bench.record().await;
    let in_the_way = lost(leader.renew(term.fence, LONG).await);
    assert_eq!(in_the_way.map(|lease| lease.version), Some(term.version));
    assert_eq!(bench.record().await, before);
    Ok(())
}

/// Those who judge by watching alone need not wait for it then.
pub(crate) async fn an_expired_lease_can_still_be_released<S: Subject>(
    bench: Bench<S>,
) -> Result<(), Unsupported> {
    bench.needs_clock()?;
    let mut leader = bench.candidate("the leader").await;
    let term = leader.lead(SHORT).await;
    leader.wait_for_expiry().await;
    assert!(won(leader.release(term.fence).await).released);
    Ok(())
}

/// What a release leaves: fence, holder and payload, for whoever wants to know who led last.
pub(crate) async fn a_release_changes_nothing_but_that_it_is_released<S: Subject>(
    bench: Bench<S>,
) -> Result<(), Unsupported> {
    let mut leader = bench.candidate("the leader").await;
    let mut request = leader.request(None, LONG);
    request.payload = "an address".into();
    let term = won(leader.acquire(&request).await);
    let released = won(leader.release(term.fence).await);
    assert_eq!(released.holder, term.holder);
    assert_eq!(released.fence, term.fence);
    assert_eq!(released.payload, term.payload);
    assert_ne!(released.version, term.version);
    assert_eq!(bench.record().await.lease.map(|lease| lease.released), Some(true));
    Ok(())
}

/// Tries to renew and to release the term that `term` names, in vain, and gives what was in the way of each.
async fn refused<S: Subject, Se: Session>(
    bench: &Bench<S>,
    candidate: &mut Candidate<Se>,
    term: &Lease,
) -> [Option<Lease>; 2] {
    let before = bench.record().await;
    let renewal = candidate.renew(term.fence, LONG * 2).await;
    assert_eq!(bench.record().await, before, "a refused renewal changes nothing: {renewal:?}");
    let release = candidate.release(term.fence).await;
    assert_eq!(bench.record().await, before, "a refused release changes nothing: {release:?}");
    [renewal, release].map(|outcome: Outcome| {
        let in_the_way = lost(outcome);
        let shown = in_the_way.clone().map(|lease| lease.version);
        assert_eq!(shown, before.lease.as_ref().map(|lease| lease.version.clone()));
        in_the_way
    })
}
