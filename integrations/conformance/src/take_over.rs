//! Who gets a lease: one candidate, and only on the record that it has seen.

use futures::FutureExt;
use tenure::{
    Identity, Lease, Store, Version,
    store::{Outcome, Session, When},
};
use tokio::time::sleep;

use crate::{
    bench::{Bench, Candidate, LONG, SHORT, at_once, election, fence, lost, with_ttl, won},
    subject::{Subject, Unsupported},
};

const CANDIDATES: usize = 8;
const ROUNDS: usize = 8;

pub(crate) async fn one_candidate_wins_an_election_that_nobody_held<S: Subject>(
    bench: Bench<S>,
) -> Result<(), Unsupported> {
    for round in 0..ROUNDS {
        let contested = election(&format!("election {round}"));
        let mut candidates = Vec::new();
        for number in 0..CANDIDATES {
            let mut candidate =
                bench.candidate_of(&format!("candidate {number}"), &contested).await;
            assert_eq!(candidate.inspect().await, None);
            candidates.push(candidate);
        }
        let outcomes = at_once(candidates.into_iter().map(|mut candidate| async move {
            let outcome = candidate.claim(None, LONG).await;
            (candidate.identity, outcome)
        }));
        exactly_one_won(&outcomes.await);
    }
    Ok(())
}

pub(crate) async fn one_candidate_wins_a_released_lease<S: Subject>(
    bench: Bench<S>,
) -> Result<(), Unsupported> {
    let mut candidates = bench.candidates(CANDIDATES).await;
    for _ in 0..ROUNDS {
        let mut former = bench.candidate("the former leader").await;
        let term = former.lead(LONG).await;
        let released = won(former.release(term.fence).await);
        candidates = one_wins(candidates, released, When::Unchanged).await;
    }
    Ok(())
}

pub(crate) async fn one_candidate_wins_an_expired_lease<S: Subject>(
    bench: Bench<S>,
) -> Result<(), Unsupported> {
    bench.needs_clock()?;
    let mut candidates = bench.candidates(CANDIDATES).await;
    for _ in 0..ROUNDS {
        let mut former = bench.candidate("the former leader").await;
        former.lead(SHORT).await;
        let expired = former.wait_for_expiry().await;
        candidates = one_wins(candidates, expired, When::Expired).await;
    }
    Ok(())
}

/// A lease that was watched unchanged for its whole duration is claimed by the compare-and-set alone.
pub(crate) async fn one_candidate_wins_a_lease_that_was_watched<S: Subject>(
    bench: Bench<S>,
) -> Result<(), Unsupported> {
    let mut candidates = bench.candidates(CANDIDATES).await;
    for _ in 0..ROUNDS {
        let watched = bench.candidate("the former leader").await.lead(LONG).await;
        candidates = one_wins(candidates, watched, When::Unchanged).await;
    }
    Ok(())
}

pub(crate) async fn a_claim_or_the_renewal_beside_it_succeeds_never_both<S: Subject>(
    bench: Bench<S>,
) -> Result<(), Unsupported> {
    let mut leader = bench.candidate("the leader").await;
    let mut rival = bench.candidate("a rival").await;
    for _ in 0..4 * ROUNDS {
        let term = leader.lead(LONG).await;
        assert_eq!(rival.look().await.version, term.version);
        let fence = term.fence;
        let renewal = async move {
            let outcome = leader.renew(fence, LONG).await;
            (leader, outcome)
        };
        let claim = async move {
            let outcome = rival.claim(Some(&term), LONG).await;
            (rival, outcome)
        };
        let mut results = at_once([renewal.boxed(), claim.boxed()]).await.into_iter();
        let (Some(renewal), Some(claim)) = (results.next(), results.next()) else { unreachable!() };
        let succeeded = [&renewal.1, &claim.1].map(|outcome| matches!(outcome, Outcome::Won(_)));
        assert_ne!(succeeded[0], succeeded[1], "renewal: {:?}, claim: {:?}", renewal.1, claim.1);
        (leader, rival) = (renewal.0, claim.0);
    }
    Ok(())
}

pub(crate) async fn a_valid_lease_is_not_taken<S: Subject>(
    bench: Bench<S>,
) -> Result<(), Unsupported> {
    bench.needs_clock()?;
    let term = bench.candidate("the leader").await.lead(LONG).await;
    let before = bench.record().await;

    let mut rival = bench.candidate("a rival").await;
    let in_the_way = lost(rival.claim_expired(&term, LONG).await);
    assert_eq!(
        in_the_way.map(|lease| (lease.holder, lease.fence)),
        Some((term.holder, term.fence))
    );
    assert_eq!(bench.record().await, before);
    Ok(())
}

/// A store that shows no clock can not tell that a lease has expired, also not of one that has.
pub(crate) async fn only_a_store_with_a_clock_gives_a_lease_as_expired<S: Subject>(
    bench: Bench<S>,
) -> Result<(), Unsupported> {
    let mut leader = bench.candidate("the leader").await;
    let mut candidate = bench.candidate("a candidate").await;
    let term = leader.lead(SHORT).await;
    if bench.store.capabilities().clock {
        let expired = leader.wait_for_expiry().await;
        won(candidate.claim_expired(&expired, LONG).await);
        return Ok(());
    }
    for _ in 0..2 {
        let in_the_way = lost(candidate.claim_expired(&term, LONG).await);
        assert_eq!(in_the_way.as_ref(), Some(&term));
        // Whatever clock the server has, it has expired by that the second time.
        sleep(SHORT * 2).await;
    }
    won(candidate.claim(Some(&term), LONG).await);
    Ok(())
}

pub(crate) async fn a_claim_needs_the_record_that_it_saw<S: Subject>(
    bench: Bench<S>,
) -> Result<(), Unsupported> {
    let mut leader = bench.candidate("the leader").await;
    let mut rival = bench.candidate("a rival").await;
    let former = leader.lead(LONG).await;
    let renewed = won(leader.renew(former.fence, LONG).await);
    let before = bench.record().await;

    let in_the_way = lost(rival.claim(Some(&former), LONG).await);
    assert_eq!(in_the_way.map(|lease| lease.version), Some(renewed.version.clone()));
    assert_eq!(bench.record().await, before, "the version that was seen is not the record's");

    let mut other_fence = renewed.clone();
    other_fence.fence = fence(i64::from(renewed.fence) + 1);
    lost(rival.claim(Some(&other_fence), LONG).await);
    assert_eq!(bench.record().await, before, "the fence that was seen is not the record's");

    // Of some other store's making.
    for version in
        [Version::from(u64::MAX), Version::from_bytes(b"a version"), Version::from_bytes(b"")]
    {
        let mut other_version = renewed.clone();
        other_version.version = version;
        lost(rival.claim(Some(&other_version), LONG).await);
        assert_eq!(
            bench.record().await,
            before,
            "the version that was seen is no version of the store's"
        );
    }

    won(rival.claim(Some(&renewed), LONG).await);
    Ok(())
}

pub(crate) async fn a_claim_that_saw_no_record_needs_none<S: Subject>(
    bench: Bench<S>,
) -> Result<(), Unsupported> {
    let mut leader = bench.candidate("the leader").await;
    let mut rival = bench.candidate("a rival").await;
    let term = won(leader.claim(None, LONG).await);
    let held = bench.record().await;
    let in_the_way = lost(rival.claim(None, LONG).await);
    assert_eq!(in_the_way.and_then(|lease| lease.holder), Some(leader.identity.clone()));
    assert_eq!(bench.record().await, held);

    won(leader.release(term.fence).await);
    let released = bench.record().await;
    lost(rival.claim(None, LONG).await);
    assert_eq!(bench.record().await, released, "a released record is still one");
    Ok(())
}

pub(crate) async fn a_claim_that_saw_a_record_creates_none<S: Subject>(
    bench: Bench<S>,
) -> Result<(), Unsupported> {
    let elsewhere = election("another election");
    let seen = bench.candidate_of("somebody", &elsewhere).await.lead(LONG).await;
    let mut rival = bench.candidate("a rival").await;
    assert_eq!(lost(rival.claim(Some(&seen), LONG).await), None);
    assert_eq!(bench.record().await.lease, None);
    if bench.store.capabilities().clock {
        assert_eq!(lost(rival.claim_expired(&seen, LONG).await), None);
        assert_eq!(bench.record().await.lease, None);
    }
    Ok(())
}

pub(crate) async fn the_winner_is_shown_to_everybody<S: Subject>(
    bench: Bench<S>,
) -> Result<(), Unsupported> {
    let mut leader = bench.candidate("the leader").await;
    let mut request = leader.request(None, LONG);
    request.payload = "https://leader.internal:8443".into();
    let term = won(leader.acquire(&request).await);
    assert_eq!(term.holder.as_ref(), Some(&leader.identity));
    assert_eq!(term.payload, request.payload);
    assert!(!term.released);

    let shown = bench.candidate("a follower").await.look().await;
    assert_eq!(with_ttl(shown, None), with_ttl(term, None));
    Ok(())
}

/// Lets all claim `seen` at once, and gives them back.
async fn one_wins<Se: Session>(
    candidates: Vec<Candidate<Se>>,
    seen: Lease,
    when: When,
) -> Vec<Candidate<Se>> {
    let results = at_once(candidates.into_iter().map(|mut candidate| {
        let mut request = candidate.request(Some(&seen), LONG);
        request.when = when;
        async move {
            let outcome = candidate.acquire(&request).await;
            (candidate, outcome)
        }
    }))
    .await;
    let (candidates, outcomes): (Vec<_>, Vec<_>) = results.into_iter().unzip();
    let identities = candidates.iter().map(|candidate| candidate.identity.clone());
    exactly_one_won(&identities.zip(outcomes).collect::<Vec<_>>());
    candidates
}

/// One has won, and all others were told so.
fn exactly_one_won(outcomes: &[(Identity, Outcome)]) {
    let winners: Vec<_> = outcomes
        .iter()
        .filter_map(|(identity, outcome)| match outcome {
            Outcome::Won(lease) => Some((identity, lease)),
            Outcome::Lost(_) => None,
        })
        .collect();
    let [(winner, term)] = winners[..] else {
        panic!("{} candidates have won: {winners:?}", winners.len());
    };
    assert_eq!(term.holder.as_ref(), Some(winner));
    for (loser, outcome) in outcomes.iter().filter(|(identity, _)| identity != winner) {
        let told = lost(outcome.clone()).map(|lease| (lease.holder, lease.fence));
        assert_eq!(told, Some((Some(winner.clone()), term.fence)), "what {loser} was told");
    }
}
