//! Fences rise from term to term, whatever happens in between, and never come twice.

use std::time::Duration;

use tenure::{
    Fence, Lease, Store,
    store::{Session, When},
};
use tokio::time::sleep;

use crate::{
    bench::{Bench, Candidate, ExpectStore, LONG, SHORT, election, fence, lost, won},
    subject::{Subject, Unsupported},
};

/// Longer than the resolution of every store's wall clock.
const A_TICK: Duration = Duration::from_millis(20);

pub(crate) async fn a_fence_rises_over_a_release<S: Subject>(
    bench: Bench<S>,
) -> Result<(), Unsupported> {
    let mut candidates = [bench.candidate("a").await, bench.candidate("b").await];
    let mut highest = None;
    for round in 0..6 {
        let candidate = &mut candidates[round % 2];
        let term = candidate.lead(LONG).await;
        rises(&mut highest, &term);
        won(candidate.release(term.fence).await);
    }
    Ok(())
}

pub(crate) async fn a_fence_rises_over_an_expiry<S: Subject>(
    bench: Bench<S>,
) -> Result<(), Unsupported> {
    bench.needs_clock()?;
    let mut candidates = [bench.candidate("a").await, bench.candidate("b").await];
    let mut highest = None;
    rises(&mut highest, &candidates[0].lead(SHORT).await);
    for next in [1, 0, 0] {
        let candidate = &mut candidates[next];
        let expired = candidate.wait_for_expiry().await;
        rises(&mut highest, &won(candidate.claim_expired(&expired, SHORT).await));
    }
    Ok(())
}

/// A lease that outlived its local term, or whose acquire was never answered, is not continued: it is a new term.
pub(crate) async fn a_fence_rises_when_a_candidate_claims_its_own_lease<S: Subject>(
    bench: Bench<S>,
) -> Result<(), Unsupported> {
    let mut leader = bench.candidate("the leader").await;
    let mut highest = None;
    for _ in 0..3 {
        let term = leader.lead(LONG).await;
        assert!(term.is_held_by(&leader.identity));
        rises(&mut highest, &term);
    }
    Ok(())
}

pub(crate) async fn a_fence_rises_over_a_lost_reply<S: Subject>(
    bench: Bench<S>,
) -> Result<(), Unsupported> {
    let mut candidate = bench.candidate("a candidate").await;
    let request = candidate.request(None, LONG);
    let unheard = candidate.acquire(&request).await;
    drop(unheard);

    let own = candidate.look().await;
    let term = won(candidate.claim(Some(&own), LONG).await);
    rises(&mut Some(own.fence), &term);
    Ok(())
}

pub(crate) async fn a_fence_stays_while_the_lease_is_renewed<S: Subject>(
    bench: Bench<S>,
) -> Result<(), Unsupported> {
    let mut leader = bench.candidate("the leader").await;
    let term = leader.lead(LONG).await;
    for _ in 0..5 {
        assert_eq!(won(leader.renew(term.fence, LONG).await).fence, term.fence);
    }
    assert_eq!(won(leader.release(term.fence).await).fence, term.fence);
    Ok(())
}

pub(crate) async fn a_late_duplicate_of_a_claim_changes_nothing<S: Subject>(
    bench: Bench<S>,
) -> Result<(), Unsupported> {
    let mut leader = bench.candidate("the leader").await;
    let first = leader.request(None, LONG);
    let term = won(leader.acquire(&first).await);
    won(leader.release(term.fence).await);
    let released = leader.look().await;
    let second = leader.request(Some(&released), LONG);
    let term = won(leader.acquire(&second).await);

    let before = bench.record().await;
    for duplicate in [&first, &second] {
        lost(leader.acquire(duplicate).await);
        assert_eq!(bench.record().await, before, "after {duplicate:?}");
    }
    won(leader.release(term.fence).await);
    let before = bench.record().await;
    for duplicate in [&first, &second] {
        lost(leader.acquire(duplicate).await);
        assert_eq!(bench.record().await, before, "released; after {duplicate:?}");
    }
    Ok(())
}

pub(crate) async fn a_fence_is_above_the_floor<S: Subject>(
    bench: Bench<S>,
) -> Result<(), Unsupported> {
    let mut leader = bench.candidate("the leader").await;
    let mut floor = fence(i64::MAX / 2);
    for _ in 0..3 {
        let seen = leader.inspect().await;
        let mut request = leader.request(seen.as_ref(), LONG);
        request.floor = Some(floor);
        let term = won(leader.acquire(&request).await);
        rises(&mut Some(floor), &term);
        floor = fence(i64::from(term.fence) + 1_000);
    }
    let record = leader.look().await;
    let mut low = leader.request(Some(&record), LONG);
    low.floor = Some(Fence::MIN);
    rises(&mut Some(record.fence), &won(leader.acquire(&low).await));
    Ok(())
}

pub(crate) async fn the_last_fence_is_followed_by_an_error<S: Subject>(
    bench: Bench<S>,
) -> Result<(), Unsupported> {
    let mut leader = bench.candidate("the leader").await;
    let mut request = leader.request(None, LONG);
    request.floor = Some(fence(i64::MAX - 1));
    let last = won(leader.acquire(&request).await);
    assert_eq!(i64::from(last.fence), i64::MAX);

    let before = bench.record().await;
    let next = leader.request(Some(&last), LONG);
    let answer = leader.session.acquire(&next).await;
    assert!(answer.as_ref().is_err_and(|error| error.is_fatal()), "{answer:?}");
    assert_eq!(bench.record().await, before);
    won(leader.renew(last.fence, LONG).await);
    Ok(())
}

pub(crate) async fn a_fence_rises_over_a_lost_record<S: Subject>(
    bench: Bench<S>,
) -> Result<(), Unsupported> {
    let mut leader = bench.candidate("the leader").await;
    let mut highest = None;
    for _ in 0..3 {
        lead_above(&mut leader, &mut highest).await;
        lead_above(&mut leader, &mut highest).await;
        bench.lose_record().await?;
    }
    Ok(())
}

pub(crate) async fn a_fence_rises_over_a_restored_record<S: Subject>(
    bench: Bench<S>,
) -> Result<(), Unsupported> {
    let mut leader = bench.candidate("the leader").await;
    let mut highest = None;
    lead_above(&mut leader, &mut highest).await;
    bench.subject.back_up().await?;
    for _ in 0..3 {
        lead_above(&mut leader, &mut highest).await;
        lead_above(&mut leader, &mut highest).await;
        bench.subject.restore().await?;
    }
    Ok(())
}

pub(crate) async fn a_fence_rises_over_a_lost_record_for_who_has_seen_nothing<S: Subject>(
    bench: Bench<S>,
) -> Result<(), Unsupported> {
    bench.subject.wall_clock()?;
    let mut highest = None;
    for name in ["a", "b", "c"] {
        rises(&mut highest, &bench.candidate(name).await.lead(LONG).await);
        bench.lose_record().await?;
        sleep(A_TICK).await;
    }
    Ok(())
}

pub(crate) async fn a_fence_rises_over_a_restored_record_for_who_has_seen_nothing<S: Subject>(
    bench: Bench<S>,
) -> Result<(), Unsupported> {
    bench.subject.wall_clock()?;
    let mut highest = None;
    rises(&mut highest, &bench.candidate("the first").await.lead(LONG).await);
    bench.subject.back_up().await?;
    for name in ["a", "b", "c"] {
        sleep(A_TICK).await;
        rises(&mut highest, &bench.candidate(name).await.lead(LONG).await);
        bench.subject.restore().await?;
    }
    Ok(())
}

/// An election's own records alone decide about its fences, beside the wall clock.
pub(crate) async fn fences_of_one_election_are_not_raised_by_another<S: Subject>(
    bench: Bench<S>,
) -> Result<(), Unsupported> {
    let mut high = bench.candidate_of("a", &election("high")).await;
    let mut request = high.request(None, LONG);
    request.floor = Some(fence(i64::MAX / 2));
    let high = won(high.acquire(&request).await);
    let other = bench.candidate_of("a", &election("other")).await.lead(LONG).await;
    assert!(other.fence < high.fence, "{:?} follows {:?}", other.fence, high.fence);
    Ok(())
}

/// The long life of one election, in which every kind of change follows on every other. Different fences are not enough:
/// each is above all before it.
pub(crate) async fn fences_rise_over_every_change_of_hands<S: Subject>(
    bench: Bench<S>,
) -> Result<(), Unsupported> {
    bench.subject.administration()?;
    let mut kinds = vec![Change::Released, Change::Watched, Change::Own, Change::Deposed];
    if bench.store.capabilities().clock {
        kinds.push(Change::Expired);
    }
    changes_of_hands(&bench, &kinds).await
}

pub(crate) async fn fences_rise_over_every_loss<S: Subject>(
    bench: Bench<S>,
) -> Result<(), Unsupported> {
    let kinds = [Change::Released, Change::Watched, Change::Lost, Change::Restored];
    changes_of_hands(&bench, &kinds).await
}

/// What ends a term.
#[derive(Clone, Copy, Debug)]
enum Change {
    Released,
    /// Its record was watched for the lease's whole duration.
    Watched,
    /// The same candidate leads again.
    Own,
    Deposed,
    Expired,
    Lost,
    Restored,
}

async fn changes_of_hands<S: Subject>(
    bench: &Bench<S>,
    kinds: &[Change],
) -> Result<(), Unsupported> {
    let mut candidates = bench.candidates(3).await;
    let mut leading = 0;
    let mut highest = None;
    let mut last = None;
    for (first, second) in kinds.iter().flat_map(|a| kinds.iter().map(move |b| (*a, *b))) {
        for change in [first, second] {
            let leader = &mut candidates[leading];
            let seen = leader.inspect().await;
            let mut request = leader.request(seen.as_ref(), LONG);
            match last.replace(change) {
                Some(Change::Expired) => request.when = When::Expired,
                // Elsewhere the record alone must do.
                Some(Change::Lost | Change::Restored) => request.floor = highest,
                _ => {}
            }
            let term = won(leader.acquire(&request).await);
            rises(&mut highest, &term);
            match change {
                Change::Released => drop(won(leader.release(term.fence).await)),
                Change::Expired => {
                    won(leader.renew(term.fence, SHORT).await);
                    leader.wait_for_expiry().await;
                }
                Change::Deposed => {
                    bench.store.depose(&bench.election).await.expect_store("depose");
                }
                Change::Lost => bench.lose_record().await?,
                Change::Restored => {
                    bench.subject.back_up().await?;
                    let mut other = bench.candidate("somebody else").await;
                    lead_above(&mut other, &mut highest).await;
                    lead_above(&mut other, &mut highest).await;
                    bench.subject.restore().await?;
                }
                Change::Watched | Change::Own => {}
            }
            if !matches!(change, Change::Own) {
                leading = (leading + 1) % candidates.len();
            }
        }
    }
    Ok(())
}

/// Claims what there is, and says what was seen before, as an elector does.
async fn lead_above<Se: Session>(candidate: &mut Candidate<Se>, highest: &mut Option<Fence>) {
    let seen = candidate.inspect().await;
    let mut request = candidate.request(seen.as_ref(), LONG);
    request.floor = *highest;
    rises(highest, &won(candidate.acquire(&request).await));
}

fn rises(highest: &mut Option<Fence>, term: &Lease) {
    assert!(Some(term.fence) > *highest, "{:?} follows {highest:?}", term.fence);
    *highest = Some(term.fence);
}
