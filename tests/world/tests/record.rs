//! The record of the world answers as the store does that passes the conformance suite.

#![allow(clippy::unwrap_used)] // in what the test is made of

use std::time::Duration;

use futures::executor::block_on;
use tenure::{
    Clock, ElectionName, Fence, Identity, Lease, ManualClock, MemoryStore,
    protocol::{Call, Reply},
    store::{
        AcquireRequest, Observed, Outcome, PlaceRequest, ReleaseRequest, RenewRequest, Session,
        Store as _, When,
    },
};
use tenure_world::{Choices, Moment, Seeded, Skew, Store, StoreKind, Write};

/// Both stores, side by side.
struct Pair {
    name: ElectionName,
    memory: MemoryStore,
    clock: ManualClock,
    world: Store,
    /// What was seen of either record at some time: the same at the same place.
    seen: Vec<(Option<Lease>, Option<Lease>)>,
    now: Duration,
}

impl Pair {
    fn new() -> Self {
        let (clock, hand) = Clock::manual();
        let began = Duration::from_nanos(clock.now().as_nanos());
        Self {
            name: ElectionName::new("e").unwrap(),
            memory: MemoryStore::with_clock(clock),
            clock: hand,
            world: Store::new(StoreKind::Memory, Skew::new(began, 0)),
            seen: vec![(None, None)],
            now: Duration::ZERO,
        }
    }

    fn at(&self) -> Moment {
        Moment::START + self.now
    }

    fn advance(&mut self, by: Duration) {
        self.now += by;
        self.clock.advance(by);
    }

    fn step(&mut self, choices: &mut Seeded) {
        self.advance(choices.duration(Duration::ZERO, Duration::from_secs(6)));
        match choices.below(20) {
            0 => {
                let deposed = block_on(self.memory.depose(&self.name)).unwrap();
                let own = self.world.depose(self.at());
                self.compare(deposed, own);
            }
            1 => {
                self.memory.forget(&self.name);
                if self.world.row().is_some() {
                    self.world.delete(self.at());
                }
            }
            _ => {
                let (theirs, ours) = self.calls(choices);
                let answer = self.ask(&theirs);
                let own = self.world.execute(&ours, self.at());
                match (answer, own) {
                    (Reply::Inspected(one), Reply::Inspected(other)) => self.compare(one, other),
                    (Reply::Placed(one), Reply::Placed(other)) => {
                        self.compare(Some(one), Some(other));
                    }
                    (Reply::Acquired(one), Reply::Acquired(other))
                    | (Reply::Renewed(one), Reply::Renewed(other))
                    | (Reply::Released(one), Reply::Released(other)) => {
                        let won = |outcome: &Outcome| matches!(outcome, Outcome::Won(_));
                        assert_eq!(won(&one), won(&other), "{one:?} {other:?}");
                        self.compare(one.lease().cloned(), other.lease().cloned());
                    }
                    (answer, own) => panic!("{answer:?} {own:?}"),
                }
            }
        }
    }

    /// The same call to both: what was observed carries each one's own version.
    fn calls(&self, choices: &mut Seeded) -> (Call, Call) {
        let duration = choices.duration(Duration::from_secs(1), Duration::from_secs(9));
        let holder = Identity::new(["a", "b", "c"][choices.below(3) as usize]).unwrap();
        // Mostly what is there now.
        let behind = if choices.chance(70) { 0 } else { choices.below(6) as usize };
        let (theirs, ours) = &self.seen[self.seen.len().saturating_sub(1 + behind)];
        let fence = theirs.as_ref().map_or(Fence::MIN, |lease| lease.fence);
        let same = |call: Call| (call.clone(), call);
        match choices.below(6) {
            0 => same(Call::Inspect),
            1 => {
                let mut request = PlaceRequest::new(duration);
                request.floor = choices.chance(50).then_some(fence);
                same(Call::Place(request))
            }
            2 => same(Call::Renew(RenewRequest::new(holder, fence, duration))),
            3 => same(Call::Release(ReleaseRequest::new(holder, fence))),
            _ => {
                let when = if choices.chance(50) { When::Expired } else { When::Unchanged };
                let floor = choices.chance(50).then_some(fence);
                let call = |observed: &Option<Lease>| {
                    let observed = observed.as_ref().map(Observed::from);
                    let mut request = AcquireRequest::new(holder.clone(), observed, duration);
                    request.when = when;
                    request.floor = floor;
                    Call::Acquire(request)
                };
                (call(theirs), call(ours))
            }
        }
    }

    fn ask(&self, call: &Call) -> Reply {
        let mut session = self.memory.session(&self.name);
        block_on(async {
            match call {
                Call::Inspect => Reply::Inspected(session.inspect().await.unwrap()),
                Call::Place(request) => Reply::Placed(session.place(request).await.unwrap()),
                Call::Acquire(request) => Reply::Acquired(session.acquire(request).await.unwrap()),
                Call::Renew(request) => Reply::Renewed(session.renew(request).await.unwrap()),
                Call::Release(request) => Reply::Released(session.release(request).await.unwrap()),
            }
        })
    }

    /// The same but for the versions, which need only be the same as before in both or in none.
    fn compare(&mut self, theirs: Option<Lease>, ours: Option<Lease>) {
        let same_but_version = |one: &Lease, other: &Lease| {
            let mut one = one.clone();
            one.version = other.version.clone();
            one == *other
        };
        match (&theirs, &ours) {
            (None, None) => {}
            (Some(one), Some(other)) => {
                assert!(same_but_version(one, other), "{one:?} {other:?}");
                for (earlier, own) in &self.seen {
                    if let (Some(earlier), Some(own)) = (earlier, own) {
                        let changed = earlier.version != one.version;
                        assert_eq!(own.version != other.version, changed, "{one:?} {other:?}");
                    }
                }
            }
            _ => panic!("{theirs:?} {ours:?}"),
        }
        self.seen.push((theirs, ours));
        if self.seen.len() > 40 {
            self.seen.remove(0);
        }
    }
}

#[test]
fn the_record_answers_as_the_memory_store_does() {
    let mut kinds = [0_u32; 4];
    for seed in 0..200 {
        let mut choices = Seeded::new(seed);
        let mut pair = Pair::new();
        for _ in 0..100 {
            pair.step(&mut choices);
        }
        for commit in pair.world.log() {
            match commit.write {
                Write::Acquired { .. } => kinds[0] += 1,
                Write::Renewed => kinds[1] += 1,
                Write::Released => kinds[2] += 1,
                _ => kinds[3] += 1,
            }
        }
    }
    // Random calls that never win would compare nothing but refusals.
    assert!(kinds.iter().all(|count| *count > 50), "{kinds:?}");
}
