//! Records that nobody holds: placed by a candidate, or deposed by an operator; and who leads what.

use tenure::Store;

use crate::{
    bench::{Bench, ExpectStore, LONG, SHORT, at_once, election, fence, lost, won},
    subject::{Subject, Unsupported},
};

pub(crate) async fn a_placed_record_is_nobodys<S: Subject>(
    bench: Bench<S>,
) -> Result<(), Unsupported> {
    let floor = fence(i64::MAX / 2);
    let placed = bench.candidate("a candidate").await.place(LONG, Some(floor)).await;
    assert_eq!(placed.holder, None);
    assert!(!placed.released, "{placed:?}");
    assert_eq!(placed.duration, LONG);
    assert!(placed.ttl <= Some(LONG), "{placed:?}");
    assert!(placed.fence >= floor, "{placed:?}");
    assert!(placed.payload.is_empty());
    assert_eq!(bench.record().await.lease.map(|lease| lease.version), Some(placed.version));
    Ok(())
}

pub(crate) async fn a_record_that_is_there_is_not_replaced_by_a_placed_one<S: Subject>(
    bench: Bench<S>,
) -> Result<(), Unsupported> {
    let mut leader = bench.candidate("the leader").await;
    let mut other = bench.candidate("somebody else").await;
    let term = leader.lead(LONG).await;
    let held = bench.record().await;
    let shown = other.place(LONG * 2, Some(fence(i64::MAX / 2))).await;
    assert_eq!((shown.holder, shown.version), (term.holder, term.version));
    assert_eq!(bench.record().await, held);

    won(leader.release(term.fence).await);
    let released = bench.record().await;
    assert!(other.place(LONG, None).await.released);
    assert_eq!(bench.record().await, released);
    Ok(())
}

pub(crate) async fn one_record_is_placed_by_all_together<S: Subject>(
    bench: Bench<S>,
) -> Result<(), Unsupported> {
    for round in 0..5 {
        let vacant = election(&format!("election {round}"));
        let mut candidates = Vec::new();
        for number in 0..6 {
            candidates.push(bench.candidate_of(&format!("candidate {number}"), &vacant).await);
        }
        let placed = at_once(candidates.into_iter().map(|mut candidate| async move {
            candidate.inspect().await;
            candidate.place(LONG, None).await.version
        }))
        .await;
        assert!(placed.iter().all(|version| *version == placed[0]), "{placed:?}");
    }
    Ok(())
}

pub(crate) async fn a_placed_record_is_claimed_after_it_has_expired<S: Subject>(
    bench: Bench<S>,
) -> Result<(), Unsupported> {
    bench.needs_clock()?;
    let mut candidate = bench.candidate("a candidate").await;
    let placed = candidate.place(LONG, None).await;
    let before = bench.record().await;
    let in_the_way = lost(candidate.claim_expired(&placed, LONG).await);
    assert_eq!(in_the_way.map(|lease| lease.version), Some(placed.version));
    assert_eq!(bench.record().await, before);

    let vacant = election("another election");
    let mut candidate = bench.candidate_of("a candidate", &vacant).await;
    let placed = candidate.place(SHORT, None).await;
    let expired = candidate.wait_for_expiry().await;
    let term = won(candidate.claim_expired(&expired, LONG).await);
    assert!(term.fence > placed.fence, "{term:?} follows {placed:?}");
    Ok(())
}

pub(crate) async fn a_deposed_leader_is_told_at_its_next_renewal<S: Subject>(
    bench: Bench<S>,
) -> Result<(), Unsupported> {
    bench.subject.administration()?;
    let mut leader = bench.candidate("the leader").await;
    let term = leader.lead(LONG).await;
    let deposed = bench.store.depose(&bench.election).await.expect_store("depose");
    let deposed = deposed.expect("there is a record");
    assert_eq!(deposed.holder, None);
    assert_eq!(deposed.fence, term.fence);
    assert_eq!(deposed.duration, term.duration);
    assert!(!deposed.released, "others must wait until the leader is certain to have stopped");
    assert_ne!(deposed.version, term.version);

    let before = bench.record().await;
    assert_eq!(before.lease.as_ref().map(|lease| &lease.version), Some(&deposed.version));
    assert_eq!(lost(leader.renew(term.fence, LONG).await).map(|lease| lease.holder), Some(None));
    lost(leader.release(term.fence).await);
    assert_eq!(bench.record().await, before);
    Ok(())
}

pub(crate) async fn a_deposed_record_is_claimed_after_it_has_expired<S: Subject>(
    bench: Bench<S>,
) -> Result<(), Unsupported> {
    bench.subject.administration()?;
    bench.needs_clock()?;
    let mut rival = bench.candidate("a rival").await;
    let term = bench.candidate("the leader").await.lead(LONG).await;
    let deposed = bench.store.depose(&bench.election).await.expect_store("depose");
    let deposed = deposed.expect("there is a record");
    assert!(deposed.ttl <= term.ttl, "{deposed:?} is not valid for longer than {term:?}");
    assert!(deposed.ttl > Some(LONG / 2), "{deposed:?} is valid for as long as {term:?}");
    lost(rival.claim_expired(&deposed, LONG).await);

    bench.candidate("the leader").await.lead(SHORT).await;
    bench.store.depose(&bench.election).await.expect_store("depose");
    let expired = rival.wait_for_expiry().await;
    let successor = won(rival.claim_expired(&expired, LONG).await);
    assert!(successor.fence > term.fence);
    Ok(())
}

pub(crate) async fn to_depose_nobody_creates_nothing<S: Subject>(
    bench: Bench<S>,
) -> Result<(), Unsupported> {
    bench.subject.administration()?;
    let answer = bench.store.depose(&bench.election).await.expect_store("depose");
    assert_eq!(answer, None);
    assert_eq!(bench.record().await.lease, None);
    Ok(())
}

pub(crate) async fn a_released_record_stays_released_when_it_is_deposed<S: Subject>(
    bench: Bench<S>,
) -> Result<(), Unsupported> {
    bench.subject.administration()?;
    let mut leader = bench.candidate("the leader").await;
    let term = leader.lead(LONG).await;
    won(leader.release(term.fence).await);
    let deposed = bench.store.depose(&bench.election).await.expect_store("depose");
    assert_eq!(deposed.map(|lease| (lease.fence, lease.released)), Some((term.fence, true)));
    Ok(())
}

pub(crate) async fn all_records_are_listed_by_name<S: Subject>(
    bench: Bench<S>,
) -> Result<(), Unsupported> {
    bench.subject.administration()?;
    assert_eq!(bench.store.leaders().await.expect_store("leaders"), []);
    let mut expected = Vec::new();
    for name in ["b", "a", "é", "B", "a b"].map(election) {
        let mut leader = bench.candidate_of("the leader", &name).await;
        let mut request = leader.request(None, LONG);
        request.payload = "an address".into();
        let term = won(leader.acquire(&request).await);
        expected.push((name, term.holder, term.fence, term.version, term.payload));
    }
    expected.sort_by(|earlier, later| earlier.0.cmp(&later.0));
    let listed = bench.store.leaders().await.expect_store("leaders").into_iter();
    let listed: Vec<_> = listed
        .map(|(name, lease)| (name, lease.holder, lease.fence, lease.version, lease.payload))
        .collect();
    assert_eq!(listed, expected);
    Ok(())
}

pub(crate) async fn a_store_that_can_be_reached_answers_a_ping<S: Subject>(
    bench: Bench<S>,
) -> Result<(), Unsupported> {
    bench.subject.administration()?;
    bench.store.ping().await.expect_store("ping");
    Ok(())
}
