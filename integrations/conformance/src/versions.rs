//! Old and new versions of tenure side by side on one schema, to which columns are only ever added.

use tenure::{
    Store,
    store::{Outcome, Session},
};

use crate::{
    bench::{Bench, Candidate, ExpectStore, LONG, at_once, lost, won},
    subject::{Subject, Unsupported},
};

/// Also of sessions that were at work before it came: their statements are prepared.
pub(crate) async fn a_column_that_was_added_is_in_nobodys_way<S: Subject>(
    bench: Bench<S>,
) -> Result<(), Unsupported> {
    let mut before = bench.candidate("from before").await;
    for _ in 0..3 {
        is_served(&bench, &mut before).await;
    }
    bench.subject.upgrade().await?;
    for _ in 0..3 {
        is_served(&bench, &mut before).await;
    }
    bench.store.ensure_schema().await.expect_store("ensure_schema");
    let mut after = bench.candidate("from after").await;
    for candidate in [&mut before, &mut after] {
        is_served(&bench, candidate).await;
    }
    Ok(())
}

pub(crate) async fn what_was_written_to_an_added_column_stays<S: Subject>(
    bench: Bench<S>,
) -> Result<(), Unsupported> {
    let mut leader = bench.candidate("the leader").await;
    leader.lead(LONG).await;
    bench.subject.upgrade().await?;
    bench.subject.write_added(&bench.election, 42).await?;
    is_served(&bench, &mut leader).await;
    bench.store.ensure_schema().await.expect_store("ensure_schema");
    is_served(&bench, &mut bench.candidate("a successor").await).await;
    assert_eq!(bench.subject.read_added(&bench.election).await, Ok(42));
    Ok(())
}

pub(crate) async fn sessions_from_before_and_after_an_upgrade_elect_one_leader<S: Subject>(
    bench: Bench<S>,
) -> Result<(), Unsupported> {
    let mut candidates = bench.candidates(3).await;
    let mut highest = won(candidates[0].claim(None, LONG).await);
    bench.subject.upgrade().await?;
    candidates.extend(bench.candidates(3).await);
    for round in 0..10 {
        let onlooker = round % candidates.len();
        let seen = candidates[onlooker].look().await;
        let claims = candidates.into_iter().map(|mut candidate| {
            let seen = seen.clone();
            async move {
                let outcome = candidate.claim(Some(&seen), LONG).await;
                (candidate, outcome)
            }
        });
        let (back, outcomes): (Vec<_>, Vec<_>) = at_once(claims).await.into_iter().unzip();
        candidates = back;
        let (winners, losers): (Vec<_>, Vec<_>) =
            outcomes.into_iter().partition(|outcome| matches!(outcome, Outcome::Won(_)));
        let [winner] = <[_; 1]>::try_from(winners).expect("one wins").map(won);
        assert!(winner.fence > highest.fence, "{winner:?} follows {highest:?}");
        for loser in losers {
            assert_eq!(lost(loser).map(|lease| lease.version).as_ref(), Some(&winner.version));
        }
        highest = winner;
    }
    Ok(())
}

/// Whoever has not the privilege to change a table goes on with the one that is there.
pub(crate) async fn the_first_schema_is_served_as_it_is<S: Subject>(
    bench: Bench<S>,
) -> Result<(), Unsupported> {
    bench.subject.first_schema().await?;
    let mut unprepared = bench.candidate("a candidate").await;
    assert_eq!(unprepared.inspect().await, None);
    is_served(&bench, &mut unprepared).await;
    let before = bench.record().await;
    bench.store.ensure_schema().await.expect_store("ensure_schema");
    assert_eq!(bench.record().await, before);
    is_served(&bench, &mut unprepared).await;
    Ok(())
}

/// Goes through everything that is done with a record.
async fn is_served<S: Subject, Se: Session>(bench: &Bench<S>, candidate: &mut Candidate<Se>) {
    let before = candidate.inspect().await.map(|lease| lease.fence);
    let term = candidate.lead(LONG).await;
    assert!(Some(term.fence) > before, "{term:?} follows {before:?}");
    let renewed = won(candidate.renew(term.fence, LONG).await);
    assert_eq!(candidate.look().await.version, renewed.version);
    won(candidate.release(term.fence).await);
    let next = candidate.lead(LONG).await;
    assert!(next.fence > term.fence, "{next:?} follows {term:?}");
    assert_eq!(candidate.place(LONG, None).await.version, next.version);
    if bench.subject.administration().is_ok() {
        bench.store.ping().await.expect_store("ping");
        let listed = bench.store.leaders().await.expect_store("leaders");
        assert!(
            listed
                .iter()
                .any(|(name, lease)| { *name == bench.election && lease.version == next.version })
        );
        let deposed = bench.store.depose(&bench.election).await.expect_store("depose");
        assert_eq!(deposed.map(|lease| (lease.holder, lease.fence)), Some((None, next.fence)));
        lost(candidate.renew(next.fence, LONG).await);
    }
}
