//! Who says that a lease has expired.

use std::time::Duration;

use super::Jitter;
use crate::{
    instant::Instant,
    lease::{Lease, Version},
    store::When,
};

/// Who says that a lease has expired.
///
/// A *watching* candidate has seen one version of the record unchanged for the whole duration that stands in the record,
/// counted on its own clock from the reply in which it first saw that version. Since that was after the version was
/// written, and the holder counts the same duration from before, watching is safe under any clock of the store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Expiry {
    /// The store's clock says so, or this candidate has watched: a candidate that has just started can take over an
    /// expired lease at once, and a store clock that was set back is repaired by watching.
    ///
    /// Assumes that the store's clock does not jump forward by more than the safety margin within one lease.
    #[default]
    Either,
    /// Watching alone. Safe under any store clock; a candidate that has just started watches for one whole lease first.
    Observed,
    /// The store's clock says so and this candidate has watched; or it has watched for twice the duration, else a store
    /// clock that was set back would stall it for ever. Adds to `Observed` a guard against a candidate's own clock that
    /// runs too fast.
    Both,
}

impl Expiry {
    /// The condition under which the watched lease may be taken now, if it may.
    pub(super) fn verdict(self, lease: &Lease, watched: Duration) -> Option<When> {
        let by_clock = lease.ttl == Some(Duration::ZERO);
        let by_watching = watched >= lease.duration;
        match self {
            Self::Either if by_clock => Some(When::Expired),
            Self::Either | Self::Observed => by_watching.then_some(When::Unchanged),
            Self::Both if by_clock && by_watching => Some(When::Expired),
            Self::Both => (watched >= lease.duration.saturating_mul(2)).then_some(When::Unchanged),
        }
    }

    /// How long it takes until the verdict can change, if nobody writes.
    fn wait(self, lease: &Lease, watched: Duration) -> Duration {
        let watching = lease.duration.saturating_sub(watched);
        let clock = lease.ttl.unwrap_or(Duration::MAX);
        match self {
            Self::Either => clock.min(watching),
            Self::Observed => watching,
            Self::Both => {
                clock.max(watching).min(lease.duration.saturating_mul(2).saturating_sub(watched))
            }
        }
    }
}

/// One version of the record, and since when this candidate has been looking at it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Watch {
    version: Version,
    pub(super) since: Instant,
}

impl Watch {
    /// Goes on watching if the record is still the same, and starts anew, from the reply on, if it is another one.
    pub(super) fn follow(watch: Option<Self>, lease: &Lease, received: Instant) -> Self {
        match watch {
            Some(watch) if watch.version == lease.version => watch,
            _ => Self { version: lease.version.clone(), since: received },
        }
    }

    pub(super) fn watched(&self, now: Instant) -> Duration {
        now.saturating_since(self.since)
    }

    /// When to look again at a lease that may not be taken yet: not before it can have expired, a few milliseconds
    /// later so that candidates do not all come at once.
    pub(super) fn expires_at(
        &self,
        expiry: Expiry,
        lease: &Lease,
        now: Instant,
        jitter: Jitter,
    ) -> Instant {
        now + expiry.wait(lease, self.watched(now)).saturating_add(jitter.after_expiry())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lease::Fence;

    const D: Duration = Duration::from_secs(10);

    fn lease(ttl: Option<u64>) -> Lease {
        let mut lease = Lease::new(None, Fence::MIN, Version::from(1), D);
        lease.ttl = ttl.map(Duration::from_secs);
        lease
    }

    fn secs(n: u64) -> Duration {
        Duration::from_secs(n)
    }

    #[test]
    fn either_takes_the_word_of_the_clock_or_of_its_own_eyes() {
        assert_eq!(Expiry::Either.verdict(&lease(Some(0)), secs(0)), Some(When::Expired));
        assert_eq!(Expiry::Either.verdict(&lease(Some(1)), secs(9)), None);
        assert_eq!(Expiry::Either.verdict(&lease(Some(7200)), secs(10)), Some(When::Unchanged));
        assert_eq!(Expiry::Either.verdict(&lease(None), secs(10)), Some(When::Unchanged));
    }

    #[test]
    fn observed_ignores_the_clock() {
        assert_eq!(Expiry::Observed.verdict(&lease(Some(0)), secs(9)), None);
        assert_eq!(Expiry::Observed.verdict(&lease(Some(9)), secs(10)), Some(When::Unchanged));
    }

    #[test]
    fn both_needs_both_or_twice_the_duration() {
        assert_eq!(Expiry::Both.verdict(&lease(Some(0)), secs(9)), None);
        assert_eq!(Expiry::Both.verdict(&lease(Some(3)), secs(19)), None);
        assert_eq!(Expiry::Both.verdict(&lease(Some(0)), secs(10)), Some(When::Expired));
        assert_eq!(Expiry::Both.verdict(&lease(Some(3)), secs(20)), Some(When::Unchanged));
    }

    #[test]
    fn the_verdict_changes_when_the_wait_is_over() {
        for expiry in [Expiry::Either, Expiry::Observed, Expiry::Both] {
            for ttl in [None, Some(0), Some(3), Some(10), Some(500)] {
                for watched in 0..25 {
                    let before = lease(ttl);
                    let wait = expiry.wait(&before, secs(watched));
                    let verdict = expiry.verdict(&before, secs(watched));
                    assert_eq!(verdict.is_some(), wait.is_zero(), "{expiry:?} {ttl:?} {watched}");
                    let mut after = before.clone();
                    after.ttl = ttl.map(|ttl| secs(ttl).saturating_sub(wait));
                    assert!(expiry.verdict(&after, secs(watched) + wait).is_some());
                }
            }
        }
    }

    #[test]
    fn watching_starts_anew_with_each_version() {
        let at = Instant::from_nanos;
        let first = Watch::follow(None, &lease(None), at(5));
        let same = Watch::follow(Some(first.clone()), &lease(None), at(9));
        assert_eq!(same, first);
        let mut renewed = lease(None);
        renewed.version = Version::from(2);
        assert_eq!(Watch::follow(Some(same), &renewed, at(11)).since, at(11));
    }
}
