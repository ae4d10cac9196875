//! A call may be dropped at every await point. Its outcome is unknown then; the session and the record are not harmed.

mod answers;
mod cuts;
mod tasks;

pub(crate) use self::{
    answers::the_next_call_gets_its_own_answer, cuts::Cuts,
    tasks::dropped_calls_leave_no_task_behind,
};

use tenure::{
    Lease, Store,
    store::{Outcome, PlaceRequest, ReleaseRequest, RenewRequest, Session},
};

use crate::{
    bench::{Bench, Candidate, ExpectStore, LONG, dropped_after, election, won},
    subject::{Subject, Unsupported},
};

/// No call is polled more often than that before it is done.
const MOST_POLLS: usize = 400;

pub(crate) async fn a_look_may_be_dropped_at_any_point<S: Subject>(
    bench: Bench<S>,
) -> Result<(), Unsupported> {
    let mut warm = bench.candidate("a candidate").await;
    let term = warm.lead(LONG).await;
    at_every_point(async |polls| {
        let mut cold = bench.candidate("a candidate").await;
        let mut done = true;
        for candidate in [&mut cold, &mut warm] {
            done &= dropped_after(polls, candidate.session.inspect()).await.is_some();
            assert_eq!(candidate.look().await.version, term.version);
        }
        done
    })
    .await;
    Ok(())
}

pub(crate) async fn a_claim_may_be_dropped_at_any_point<S: Subject>(
    bench: Bench<S>,
) -> Result<(), Unsupported> {
    let mut warm = bench.candidate("a candidate").await;
    warm.lead(LONG).await;
    at_every_point(async |polls| {
        let mut cold = bench.candidate("another candidate").await;
        let seen = warm.look().await;
        let request = cold.request(Some(&seen), LONG);
        let done = dropped_after(polls, cold.session.acquire(&request)).await.is_some();
        claimed_or_not(&mut cold, &seen).await;

        let seen = settled(&mut warm).await;
        let request = warm.request(Some(&seen), LONG);
        let done = done & dropped_after(polls, warm.session.acquire(&request)).await.is_some();
        claimed_or_not(&mut warm, &seen).await;
        settled(&mut warm).await;
        done
    })
    .await;
    Ok(())
}

pub(crate) async fn a_renewal_may_be_dropped_at_any_point<S: Subject>(
    bench: Bench<S>,
) -> Result<(), Unsupported> {
    let mut warm = bench.candidate("the leader").await;
    let term = warm.lead(LONG).await;
    let request = RenewRequest::new(warm.identity.clone(), term.fence, LONG);
    at_every_point(async |polls| {
        let mut cold = bench.candidate("the leader").await;
        let mut done = true;
        for candidate in [&mut cold, &mut warm] {
            done &= dropped_after(polls, candidate.session.renew(&request)).await.is_some();
            let shown = candidate.look().await;
            assert_eq!((&shown.holder, shown.fence), (&term.holder, term.fence));
            assert_eq!(shown.duration, LONG);
            won(candidate.renew(term.fence, LONG).await);
        }
        done
    })
    .await;
    Ok(())
}

pub(crate) async fn a_release_may_be_dropped_at_any_point<S: Subject>(
    bench: Bench<S>,
) -> Result<(), Unsupported> {
    let mut warm = bench.candidate("the leader").await;
    at_every_point(async |polls| {
        let mut cold = bench.candidate("the leader").await;
        let mut done = true;
        for candidate in [&mut cold, &mut warm] {
            let term = settled(candidate).await;
            let request = ReleaseRequest::new(candidate.identity.clone(), term.fence);
            done &= dropped_after(polls, candidate.session.release(&request)).await.is_some();
            let shown = candidate.look().await;
            assert_eq!((&shown.holder, shown.fence), (&term.holder, term.fence));
            // The dropped one may come late, and is then what stands in the way of this one.
            match candidate.release(term.fence).await {
                Outcome::Won(lease) | Outcome::Lost(Some(lease)) => assert!(lease.released),
                Outcome::Lost(None) => panic!("a release removed the record"),
            }
        }
        done
    })
    .await;
    Ok(())
}

pub(crate) async fn a_placing_may_be_dropped_at_any_point<S: Subject>(
    bench: Bench<S>,
) -> Result<(), Unsupported> {
    at_every_point(async |polls| {
        let vacant = election(&format!("election {polls}"));
        let mut candidate = bench.candidate_of("a candidate", &vacant).await;
        let request = PlaceRequest::new(LONG);
        let done = dropped_after(polls, candidate.session.place(&request)).await.is_some();
        let placed = candidate.place(LONG, None).await;
        assert_eq!((&placed.holder, placed.released), (&None, false));
        assert_eq!(candidate.look().await.version, placed.version);
        done
    })
    .await;
    Ok(())
}

pub(crate) async fn administration_may_be_dropped_at_any_point<S: Subject>(
    bench: Bench<S>,
) -> Result<(), Unsupported> {
    bench.subject.administration()?;
    let term = bench.candidate("the leader").await.lead(LONG).await;
    let (store, election) = (&bench.store, &bench.election);
    at_every_point(async |polls| {
        let done = dropped_after(polls, store.ensure_schema()).await.is_some()
            & dropped_after(polls, store.ping()).await.is_some()
            & dropped_after(polls, store.leaders()).await.is_some()
            & dropped_after(polls, store.depose(election)).await.is_some();
        store.ping().await.expect_store("ping");
        let listed = store.leaders().await.expect_store("leaders");
        assert_eq!(listed.iter().map(|(_, lease)| lease.fence).collect::<Vec<_>>(), [term.fence]);
        done
    })
    .await;
    Ok(())
}

/// Tries with one poll, with two, and so on, until the call is done in that many.
async fn at_every_point(mut attempt: impl AsyncFnMut(usize) -> bool) {
    for polls in 0..MOST_POLLS {
        if attempt(polls).await {
            return;
        }
    }
    panic!("the call is not done after {MOST_POLLS} polls");
}

/// The record is as it was seen, or what the candidate's claim of it makes of it.
async fn claimed_or_not<Se: Session>(candidate: &mut Candidate<Se>, seen: &Lease) {
    let shown = candidate.look().await;
    if shown.version != seen.version {
        assert!(shown.is_held_by(&candidate.identity), "{shown:?}");
        assert!(shown.fence > seen.fence, "{shown:?} follows {seen:?}");
        assert_eq!(shown.duration, LONG);
    }
}

/// A new term: the claim that was dropped may still be executed, but at most once.
async fn settled<Se: Session>(candidate: &mut Candidate<Se>) -> Lease {
    for _ in 0..10 {
        let seen = candidate.inspect().await;
        if let Outcome::Won(term) = candidate.claim(seen.as_ref(), LONG).await {
            return term;
        }
    }
    panic!("somebody else writes to the record");
}
