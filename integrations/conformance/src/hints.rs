//! Wake-ups: releases give them, little else does, and nothing but speed depends on them.

use std::{pin::pin, time::Duration};

use futures::{FutureExt, StreamExt};
use tenure::{
    Candidacy, Elector, Store,
    store::{Hints, Session},
};
use tokio::time::sleep;

use crate::{
    bench::{Bench, Candidate, LONG, Sess, election, won},
    cancellation::{self, Cuts},
    freshness,
    subject::{Subject, Unsupported},
    take_over,
};

/// Given to a hint, before it counts as lost and something else is tried.
const A_MOMENT: Duration = Duration::from_millis(500);
const ATTEMPTS: usize = 24;
/// How often is written what is not to wake anybody, and how many hints are too many then.
const WRITES: usize = 100;
const TOO_MANY: usize = 20;

/// A store either declares that it gives hints, and a release gives one, or neither.
pub(crate) async fn a_release_wakes_who_listens_if_it_is_declared<S: Subject>(
    bench: Bench<S>,
) -> Result<(), Unsupported> {
    let mut listener = bench.candidate("a follower").await;
    let mut hints = listener.session.hints();
    if bench.store.capabilities().hints {
        wake(&bench, &mut hints).await;
        return Ok(());
    }
    release(&mut bench.candidate("the leader").await).await;
    assert_eq!(
        hints.next().now_or_never(),
        None,
        "there are hints, which the store does not declare"
    );
    Err(Unsupported("the store gives no hints"))
}

pub(crate) async fn renewals_wake_nobody<S: Subject>(bench: Bench<S>) -> Result<(), Unsupported> {
    let (_listener, mut hints) = listen(&bench).await?;
    let mut leader = bench.candidate("the leader").await;
    let term = leader.lead(LONG).await;
    for _ in 0..WRITES {
        won(leader.renew(term.fence, LONG).await);
    }
    // Whatever they gave has come by the time that the release's has.
    let given = given_until_a_release(&bench, &mut hints).await;
    assert!(given < TOO_MANY, "{given} hints after {WRITES} renewals");
    Ok(())
}

pub(crate) async fn releases_of_other_elections_are_no_storm<S: Subject>(
    bench: Bench<S>,
) -> Result<(), Unsupported> {
    let (_listener, mut hints) = listen(&bench).await?;
    let mut other = bench.candidate_of("a leader", &election("another election")).await;
    for _ in 0..WRITES {
        release(&mut other).await;
    }
    let given = given_until_a_release(&bench, &mut hints).await;
    assert!(given < TOO_MANY, "{given} hints after {WRITES} releases in another election");
    Ok(())
}

/// The elector does so after a stream has ended, or when it replaces its session.
pub(crate) async fn a_stream_that_was_dropped_can_be_asked_for_again<S: Subject>(
    bench: Bench<S>,
) -> Result<(), Unsupported> {
    let (mut listener, hints) = listen(&bench).await?;
    drop(hints);
    for _ in 0..3 {
        let mut again = listener.session.hints();
        listener.inspect().await;
        wake(&bench, &mut again).await;
    }
    Ok(())
}

/// A stream is dropped while it connects or listens. Another one gives hints all the same, and calls are served as ever.
pub(crate) async fn a_stream_may_be_dropped_at_any_point<S: Subject>(
    bench: Bench<S>,
) -> Result<(), Unsupported> {
    if !bench.store.capabilities().hints {
        return Err(Unsupported("the store gives no hints"));
    }
    let mut leader = bench.candidate("the leader").await;
    let mut cuts = Cuts::in_rounds(1);
    cuts.everywhere("hints", async |cut| {
        let mut hints = leader.session.hints();
        // Most stores give one when listening has begun.
        let first = async {
            tokio::select! {
                hint = hints.next() => assert!(hint.is_some(), "nobody listens"),
                () = sleep(A_MOMENT) => {}
            }
        };
        let done = cut.apply(first).await.is_some();
        drop(hints);
        let term = leader.lead(LONG).await;
        assert_eq!(leader.look().await.version, term.version);

        let mut again = leader.session.hints();
        assert!(is_heard(&mut leader, &mut again).await, "no hint comes after one was dropped");
        done
    })
    .await;
    cuts.report(1);
    Ok(())
}

/// Whether somebody who listens hears of releases.
async fn is_heard<Se: Session>(leader: &mut Candidate<Se>, hints: &mut Hints) -> bool {
    for _ in 0..ATTEMPTS {
        let term = leader.lead(LONG).await;
        leader.release(term.fence).await;
        tokio::select! {
            hint = hints.next() => return hint.is_some(),
            () = sleep(A_MOMENT) => {}
        }
    }
    false
}

pub(crate) async fn all_who_listen_are_woken<S: Subject>(
    bench: Bench<S>,
) -> Result<(), Unsupported> {
    let (_first, mut first) = listen(&bench).await?;
    let (_second, mut second) = listen(&bench).await?;
    for _ in 0..3 {
        wake(&bench, &mut first).await;
        wake(&bench, &mut second).await;
    }
    Ok(())
}

/// With whole electors: the successor would otherwise look again in an hour.
pub(crate) async fn a_hand_over_waits_for_no_polling_period<S: Subject>(
    bench: Bench<S>,
) -> Result<(), Unsupported> {
    declares(&bench)?;
    let leader = candidacy(&bench, Duration::from_millis(100)).await;
    leader.leadership().leading().await.expect("it was not stopped");
    let patient = candidacy(&bench, Duration::from_secs(3_600)).await;
    let sees_a_leader = |status: &tenure::Status| status.leader().is_some();
    patient.leadership().watch().wait_for(sees_a_leader).await.expect("it was not stopped");
    for _ in 0..ATTEMPTS {
        // The first of them may be lost to somebody who does not listen yet.
        leader.resign().await;
        tokio::select! {
            term = patient.leadership().leading() => {
                term.expect("it was not stopped");
                return Ok(());
            }
            () = sleep(A_MOMENT) => {}
        }
        tokio::select! {
            term = leader.leadership().leading() => drop(term),
            term = patient.leadership().leading() => {
                term.expect("it was not stopped");
                return Ok(());
            }
        }
    }
    panic!("no hand-over woke the follower");
}

/// A part of the suite once more, with each candidate listening.
pub(crate) async fn who_listens_wins_and_loses_as_others_do<S: Subject>(
    mut bench: Bench<S>,
) -> Result<(), Unsupported> {
    declares(&bench)?;
    bench.listening = true;
    take_over::one_candidate_wins_a_released_lease(bench).await
}

pub(crate) async fn calls_may_be_dropped_while_somebody_listens<S: Subject>(
    mut bench: Bench<S>,
) -> Result<(), Unsupported> {
    declares(&bench)?;
    bench.listening = true;
    cancellation::a_release_may_be_dropped_at_any_point(bench).await
}

pub(crate) async fn writes_are_fresh_while_somebody_listens<S: Subject>(
    mut bench: Bench<S>,
) -> Result<(), Unsupported> {
    declares(&bench)?;
    bench.listening = true;
    freshness::every_write_changes_the_version_and_none_comes_twice(bench).await
}

fn declares<S: Subject>(bench: &Bench<S>) -> Result<(), Unsupported> {
    if bench.store.capabilities().hints {
        Ok(())
    } else {
        Err(Unsupported("the store gives no hints"))
    }
}

/// A follower, and its hints, which are seen to come.
async fn listen<S: Subject>(bench: &Bench<S>) -> Result<(Candidate<Sess<S>>, Hints), Unsupported> {
    declares(bench)?;
    let mut listener = bench.candidate("a follower").await;
    let mut hints = listener.session.hints();
    wake(bench, &mut hints).await;
    Ok((listener, hints))
}

/// Releases until a hint comes: the first ones may be lost while the store begins to listen.
async fn wake<S: Subject>(bench: &Bench<S>, hints: &mut Hints) {
    given_until_a_release(bench, hints).await;
}

/// How many hints were given until one came after a release.
async fn given_until_a_release<S: Subject>(bench: &Bench<S>, hints: &mut Hints) -> usize {
    let mut leader = bench.candidate("the leader").await;
    let mut given = 0;
    for _ in 0..ATTEMPTS {
        release(&mut leader).await;
        given = given_within(hints, A_MOMENT).await;
        if given > 0 {
            break;
        }
    }
    assert!(given > 0, "{ATTEMPTS} releases woke nobody");
    // And those that were still on their way.
    given + given_within(hints, A_MOMENT / 5).await
}

/// How many hints there are already, or else whether one comes within this time.
async fn given_within(hints: &mut Hints, time: Duration) -> usize {
    let given = hints.by_ref().take(10 * WRITES);
    let mut given = pin!(given.ready_chunks(10 * WRITES));
    tokio::select! {
        chunk = given.next() => chunk.expect("the stream goes on").len(),
        () = sleep(time) => 0,
    }
}

async fn release<Se: Session>(leader: &mut Candidate<Se>) {
    let term = leader.lead(LONG).await;
    won(leader.release(term.fence).await);
}

async fn candidacy<S: Subject>(bench: &Bench<S>, retry_period: Duration) -> Candidacy {
    Elector::builder(&bench.election, bench.subject.store().await)
        .lease_duration(LONG)
        .retry_period(retry_period)
        .resign_pause(A_MOMENT)
        .build()
        .expect("the settings are valid")
        .spawn()
}
