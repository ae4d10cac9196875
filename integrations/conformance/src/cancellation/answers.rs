//! A call is dropped, and the next one on the same session must get its own answer: never the one that was meant for the
//! call before.

use tenure::{
    Lease, Payload, StoreError,
    store::{
        AcquireRequest, Observed, Outcome, PlaceRequest, ReleaseRequest, RenewRequest, Session,
    },
};

use super::{
    cuts::{Cut, Cuts},
    settled,
};
use crate::{
    bench::{Bench, Candidate, ExpectStore, LONG, Sess, with_ttl},
    subject::{Subject, Unsupported},
};

pub(crate) async fn the_next_call_gets_its_own_answer<S: Subject>(
    bench: Bench<S>,
) -> Result<(), Unsupported> {
    let mut witness = bench.candidate("the leader").await;
    let mut warm = bench.candidate("the leader").await;
    // One for each of the calls that come next.
    let (mut cold_cuts, mut warm_cuts) = (Cuts::in_rounds(1), Cuts::in_rounds(1));
    for dropped in Call::ALL {
        for next in Call::ALL {
            cold_cuts
                .everywhere(format!("{dropped:?}"), async |cut| {
                    let mut cold = bench.candidate("the leader").await;
                    attempt::<S>(cut, dropped, next, &mut cold, &mut witness).await
                })
                .await;
            warm_cuts
                .everywhere(format!("{dropped:?} connected"), async |cut| {
                    warm.inspect().await;
                    attempt::<S>(cut, dropped, next, &mut warm, &mut witness).await
                })
                .await;
        }
    }
    cold_cuts.report(bench.subject.cut_points());
    warm_cuts.report(1);
    Ok(())
}

/// Drops one call and makes the next one, on a record of which the candidate is the leader. Whether the first was done
/// before it was dropped.
async fn attempt<S: Subject>(
    cut: Cut,
    dropped: Call,
    next: Call,
    candidate: &mut Candidate<Sess<S>>,
    witness: &mut Candidate<Sess<S>>,
) -> bool {
    let before = with_ttl(settled(witness).await, None);
    // The payloads differ, so that each write is known by what it has written.
    let dropped = Write { call: dropped, before: &before, payload: Payload::from("dropped") };
    let next = Write { call: next, before: &before, payload: Payload::from("next") };

    let done = cut.apply(dropped.make(&mut candidate.session)).await;
    let is_done = done.is_some();
    if let Some(answer) = done {
        dropped.check(answer.expect_store("the first call"), None);
    }
    let answer = next.make(&mut candidate.session).await.expect_store("the next call");
    let written = next.check(answer, Some(&dropped));

    next.check_what_is_there(&witness.look().await, written, &dropped);
    is_done
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Call {
    Inspect,
    Place,
    Acquire,
    Renew,
    Release,
}

impl Call {
    const ALL: [Self; 5] = [Self::Inspect, Self::Place, Self::Acquire, Self::Renew, Self::Release];
}

#[derive(Debug)]
enum Answer {
    Record(Option<Lease>),
    Outcome(Outcome),
}

/// A call on the record as it was, and what it writes.
#[derive(Debug)]
struct Write<'a> {
    call: Call,
    before: &'a Lease,
    payload: Payload,
}

impl Write<'_> {
    async fn make(&self, session: &mut impl Session) -> Result<Answer, StoreError> {
        let holder = self.before.holder.clone().expect("it is the leader's");
        let fence = self.before.fence;
        Ok(match self.call {
            Call::Inspect => Answer::Record(session.inspect().await?),
            Call::Place => Answer::Record(Some(session.place(&PlaceRequest::new(LONG)).await?)),
            Call::Acquire => {
                let observed = Some(Observed::from(self.before));
                let mut request = AcquireRequest::new(holder, observed, LONG);
                request.payload = self.payload.clone();
                Answer::Outcome(session.acquire(&request).await?)
            }
            Call::Renew => {
                let mut request = RenewRequest::new(holder, fence, LONG);
                request.payload = Some(self.payload.clone());
                Answer::Outcome(session.renew(&request).await?)
            }
            Call::Release => {
                let request = ReleaseRequest::new(holder, fence);
                Answer::Outcome(session.release(&request).await?)
            }
        })
    }

    /// Checks the answer against the record as it was, or as the `dropped` call before it has left it, which may have been
    /// executed or not. Returns what was written.
    fn check(&self, answer: Answer, dropped: Option<&Self>) -> Option<Lease> {
        let by_dropped = |lease: &Lease| dropped.is_some_and(|dropped| dropped.explains(lease));
        match answer {
            Answer::Record(Some(lease)) => {
                let is_before = with_ttl(lease.clone(), None) == *self.before;
                assert!(
                    is_before || by_dropped(&lease),
                    "{self:?} after {dropped:?} is shown {lease:?}"
                );
                None
            }
            Answer::Outcome(Outcome::Won(lease)) => {
                let after = |dropped: &Self| self.explains_after(dropped, &lease);
                let is_own = self.explains(&lease) || dropped.is_some_and(after);
                assert!(is_own, "{self:?} after {dropped:?} reports {lease:?}");
                Some(lease)
            }
            Answer::Outcome(Outcome::Lost(Some(lease))) => {
                let is_in_the_way = dropped.is_some_and(|dropped| dropped.defeats(self));
                assert!(
                    is_in_the_way && by_dropped(&lease),
                    "{self:?} after {dropped:?} lost to {lease:?}"
                );
                None
            }
            Answer::Record(None) | Answer::Outcome(Outcome::Lost(None)) => {
                panic!("{self:?} after {dropped:?} finds no record");
            }
        }
    }

    /// Checks what somebody else sees after this call: what it has `written`, unless the `dropped` one was executed late,
    /// which is seen as a whole, too.
    fn check_what_is_there(&self, now: &Lease, written: Option<Lease>, dropped: &Self) {
        match written {
            Some(lease) if now.version == lease.version => {}
            Some(lease) => assert!(
                dropped.may_follow(self) && dropped.explains_after(self, now),
                "{self:?} reported {lease:?}, but there is {now:?}"
            ),
            None => assert!(
                now.version == self.before.version || dropped.explains(now),
                "nobody has written {now:?}"
            ),
        }
    }

    /// Whether the record is what this call, executed as a whole, makes of the one before.
    fn explains(&self, now: &Lease) -> bool {
        let payload = match self.call {
            Call::Acquire | Call::Renew => &self.payload,
            Call::Inspect | Call::Place | Call::Release => &self.before.payload,
        };
        self.is_of_call(now) && now.payload == *payload
    }

    /// Whether the record is what this call makes of what the `earlier` one has left: a release keeps the payload of the
    /// renewal before it, and every other write brings its own.
    fn explains_after(&self, earlier: &Self, now: &Lease) -> bool {
        if self.call == Call::Release && earlier.call == Call::Renew {
            self.is_of_call(now) && now.payload == earlier.payload
        } else {
            self.explains(now)
        }
    }

    fn is_of_call(&self, now: &Lease) -> bool {
        let before = self.before;
        let is_new = now.version != before.version;
        let is_same_term = now.holder == before.holder && now.fence == before.fence;
        now.duration == before.duration
            && match self.call {
                Call::Inspect | Call::Place => !is_new && is_same_term && !now.released,
                Call::Acquire => {
                    is_new
                        && now.holder == before.holder
                        && now.fence > before.fence
                        && !now.released
                }
                Call::Renew => is_new && is_same_term && !now.released,
                Call::Release => is_new && is_same_term && now.released,
            }
    }

    /// Whether this call, executed first, stands in the way of the `next` one.
    fn defeats(&self, next: &Self) -> bool {
        match self.call {
            Call::Inspect | Call::Place => false,
            Call::Renew => next.call == Call::Acquire,
            Call::Acquire | Call::Release => true,
        }
    }

    /// Whether it may be executed after the `next` one was.
    fn may_follow(&self, next: &Self) -> bool {
        next.call == Call::Renew && matches!(self.call, Call::Renew | Call::Release)
    }
}

#[cfg(test)]
mod tests {
    use tenure::{ElectionName, MemoryStore};

    use super::*;
    use crate::bench::identity;

    #[tokio::test]
    async fn a_call_that_is_executed_after_the_next_one_contradicts_nothing() {
        for call in Call::ALL {
            for next in Call::ALL {
                let election = ElectionName::new("an election").unwrap();
                let mut leader =
                    Candidate::new(identity("the leader"), &MemoryStore::new(), &election);
                let before = with_ttl(settled(&mut leader).await, None);
                let dropped = Write { call, before: &before, payload: Payload::from("dropped") };
                let next = Write { call: next, before: &before, payload: Payload::from("next") };

                let answer = next.make(&mut leader.session).await.unwrap();
                let written = next.check(answer, Some(&dropped));
                dropped.make(&mut leader.session).await.unwrap();
                next.check_what_is_there(&leader.look().await, written, &dropped);
            }
        }
    }
}
