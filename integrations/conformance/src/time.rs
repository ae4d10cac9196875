//! For how long a lease is valid: what was asked, never longer, and counted by the store.

use std::time::Duration;

use tenure::{Clock, Store, store::Outcome};
use tokio::time::sleep;

use crate::{
    bench::{Bench, LONG, SHORT, lost, won},
    subject::{Subject, Unsupported},
};

const DURATIONS: [Duration; 5] = [
    Duration::from_secs(15),
    Duration::from_millis(300),
    Duration::from_secs(3_600),
    Duration::from_micros(1_234_567),
    Duration::from_secs(2),
];

pub(crate) async fn the_duration_asked_is_written<S: Subject>(
    bench: Bench<S>,
) -> Result<(), Unsupported> {
    let mut leader = bench.candidate("the leader").await;
    for duration in DURATIONS {
        let term = leader.lead(duration).await;
        assert_eq!(term.duration, duration);
        assert_eq!(leader.look().await.duration, duration);
    }
    let term = leader.lead(LONG).await;
    for duration in DURATIONS.into_iter().filter(|duration| *duration > Duration::from_secs(10)) {
        assert_eq!(won(leader.renew(term.fence, duration).await).duration, duration);
        assert_eq!(leader.look().await.duration, duration);
    }
    Ok(())
}

pub(crate) async fn a_lease_is_never_valid_for_longer_than_asked<S: Subject>(
    bench: Bench<S>,
) -> Result<(), Unsupported> {
    bench.needs_clock()?;
    let mut leader = bench.candidate("the leader").await;
    for duration in DURATIONS {
        let term = leader.lead(duration).await;
        assert!(term.ttl <= Some(duration), "{term:?}");
        assert!(leader.look().await.ttl <= Some(duration));
    }
    let term = leader.lead(LONG).await;
    for _ in 0..20 {
        let renewed = won(leader.renew(term.fence, LONG).await);
        assert!(renewed.ttl <= Some(LONG), "{renewed:?}");
    }
    Ok(())
}

pub(crate) async fn what_is_left_of_a_lease_runs_down<S: Subject>(
    bench: Bench<S>,
) -> Result<(), Unsupported> {
    const PAUSE: Duration = Duration::from_millis(120);
    /// What a clock of whole milliseconds, and another rate, may hide.
    const UNSEEN: Duration = Duration::from_millis(20);
    bench.needs_clock()?;
    let mut leader = bench.candidate("the leader").await;
    let term = leader.lead(LONG).await;
    let mut left = term.ttl;
    for _ in 0..3 {
        sleep(PAUSE).await;
        let shown = bench.candidate("a follower").await.look().await;
        assert!(shown.ttl <= left.map(|left| left - PAUSE + UNSEEN), "{shown:?}, before: {left:?}");
        left = shown.ttl;
    }
    let renewed = won(leader.renew(term.fence, LONG).await);
    assert!(renewed.ttl > left, "{renewed:?} begins anew");
    assert!(renewed.ttl > Some(LONG / 2), "{renewed:?} is valid for what was asked");
    Ok(())
}

/// A candidate that was given a shorter lease must not find an older, longer one still running.
pub(crate) async fn a_shorter_renewal_shortens_the_lease<S: Subject>(
    bench: Bench<S>,
) -> Result<(), Unsupported> {
    let mut leader = bench.candidate("the leader").await;
    let term = leader.lead(LONG).await;
    let renewed = won(leader.renew(term.fence, SHORT).await);
    assert_eq!(renewed.duration, SHORT);
    assert!(renewed.ttl <= Some(SHORT), "{renewed:?}");
    bench.needs_clock()?;
    let expired = leader.wait_for_expiry().await;
    won(bench.candidate("a rival").await.claim_expired(&expired, LONG).await);
    Ok(())
}

pub(crate) async fn a_lease_of_300_ms_expires_and_is_taken<S: Subject>(
    bench: Bench<S>,
) -> Result<(), Unsupported> {
    bench.needs_clock()?;
    let mut leaders = [bench.candidate("a").await, bench.candidate("b").await];
    leaders[0].lead(SHORT).await;
    for next in [1, 0, 1] {
        let expired = leaders[next].wait_for_expiry().await;
        let term = won(leaders[next].claim_expired(&expired, SHORT).await);
        assert!(term.ttl <= Some(SHORT), "{term:?}");
        assert_eq!(term.duration, SHORT);
    }
    Ok(())
}

/// The claims are made all the time, not only when the lease is seen to have expired.
pub(crate) async fn a_renewed_lease_of_300_ms_is_not_taken<S: Subject>(
    bench: Bench<S>,
) -> Result<(), Unsupported> {
    bench.needs_clock()?;
    let mut leader = bench.candidate("the leader").await;
    let mut rival = bench.candidate("a rival").await;
    let term = leader.lead(SHORT).await;
    let clock = Clock::system();
    for _ in 0..10 {
        sleep(SHORT / 10).await;
        let Outcome::Won(renewed) = leader.renew(term.fence, SHORT).await else {
            return Ok(()); // this machine was too slow to renew it in time
        };
        let before = clock.now();
        let left = rival.look().await.ttl.unwrap_or_default();
        let claim = rival.claim_expired(&renewed, LONG).await;
        if clock.now().saturating_since(before) >= left {
            return Ok(()); // this machine was too slow to claim it in time
        }
        assert_eq!(lost(claim).and_then(|lease| lease.holder), Some(leader.identity.clone()));
    }
    Ok(())
}

pub(crate) async fn an_expired_lease_shows_that_nothing_is_left<S: Subject>(
    bench: Bench<S>,
) -> Result<(), Unsupported> {
    bench.needs_clock()?;
    let mut leader = bench.candidate("the leader").await;
    let term = leader.lead(SHORT).await;
    let expired = leader.wait_for_expiry().await;
    assert_eq!(expired.version, term.version, "to expire is no write");
    assert_eq!(expired.duration, SHORT);
    assert!(!expired.released);
    Ok(())
}

pub(crate) async fn looking_writes_nothing<S: Subject>(bench: Bench<S>) -> Result<(), Unsupported> {
    let mut onlooker = bench.candidate("an onlooker").await;
    for _ in 0..3 {
        assert_eq!(onlooker.inspect().await, None, "there was no record, and a look makes none");
    }
    let mut leader = bench.candidate("the leader").await;
    let term = leader.lead(LONG).await;
    let before = bench.record().await;
    for _ in 0..10 {
        assert_eq!(onlooker.look().await.version, term.version);
        assert_eq!(leader.look().await.version, term.version);
    }
    assert_eq!(bench.record().await, before);
    Ok(())
}

pub(crate) async fn only_a_store_with_a_clock_shows_what_is_left<S: Subject>(
    bench: Bench<S>,
) -> Result<(), Unsupported> {
    let term = bench.candidate("the leader").await.lead(LONG).await;
    let shown = bench.candidate("a follower").await.look().await;
    let clock = bench.store.capabilities().clock;
    assert_eq!(term.ttl.is_some(), clock, "{term:?}");
    assert_eq!(shown.ttl.is_some(), clock, "{shown:?}");
    Ok(())
}
