//! The life of one candidate to which anything may happen in any order.

use std::time::Duration;

use tenure::{
    Expiry, Fence, Identity, Instant, Lease, Phase, Timing, Version,
    protocol::{Call, Change, Input as Given, Jitter, Levels, Reply},
    store::Outcome,
};

use crate::{
    candidate::{Candidate, Led},
    input::Input,
};

/// Two looks that something other than the passing of time has caused lie this far apart.
const SPACING: Duration = Duration::from_millis(20);
/// What a look may lead to before the next one: a claim, and the release of what it has won.
const CALLS_PER_LOOK: usize = 2;
/// How far fractions of durations may be off.
const ROUNDING: Duration = Duration::from_nanos(10);
const MAX_EXPIRY_JITTER: Duration = Duration::from_millis(5);

/// How large durations get.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scale {
    /// As they are in practice: then everything comes when it is promised.
    Usual,
    /// As large as a `Duration` can be, up to the end of time.
    Extreme,
}

pub(crate) fn live(input: &mut Input<'_>, timing: Timing, start: Instant, scale: Scale) {
    let is_observer = input.flag();
    let mut life = Life {
        candidate: Candidate::new(timing, start, !is_observer),
        scale,
        last_look: None,
        due: None,
        since_look: 0,
        last_renewal: None,
        told: Told { ineligible: is_observer, ..Told::default() },
        version: 0,
    };
    life.give(Given::Wake);
    for _ in 0..400 {
        if input.is_used_up() {
            return;
        }
        life.go_on(input);
    }
}

struct Life {
    candidate: Candidate,
    scale: Scale,
    last_look: Option<Instant>,
    /// When the next one is due if nothing but time passes.
    due: Option<Instant>,
    /// How many calls the last look has led to.
    since_look: usize,
    last_renewal: Option<(Fence, Instant)>,
    told: Told,
    version: u64,
}

/// What it was told, apart from answers: each of these makes a look come at another time.
#[derive(Clone, Copy, Debug, Default)]
struct Told {
    hinted: bool,
    ineligible: bool,
    paused: bool,
    stopping: bool,
}

impl Life {
    fn go_on(&mut self, input: &mut Input<'_>) {
        self.candidate.jitter = Jitter::new(input.small());
        match input.below(12) {
            0..=2 => self.answer(input),
            3..=5 => self.advance_to_wake(),
            6 => {
                let by = self.duration(input);
                self.sleep(by);
            }
            7 => {
                self.told.hinted = true;
                self.give(Given::Hint);
            }
            8 => {
                let (guards, in_flight) = (input.below(2), input.below(2));
                self.candidate.levels = Levels { guards, in_flight };
                self.give(Given::Wake);
            }
            9 => {
                let eligible = input.flag();
                self.told.ineligible = !eligible;
                self.told.hinted |= eligible;
                self.give(Given::Eligible(eligible));
            }
            10 => {
                self.told.paused = true;
                self.give(Given::Resign);
            }
            _ => match input.below(4) {
                0 => self.give_over(),
                1 => {
                    self.told.stopping = true;
                    self.give(Given::Shutdown);
                }
                2 => {
                    self.told.stopping = true;
                    let drain = self.duration(input);
                    self.give(Given::ShutdownWithin { drain });
                }
                // Also if nothing was asked.
                _ => self.answered(Reply::Failed),
            },
        }
    }

    fn give(&mut self, input: Given) {
        let led = self.candidate.give(input);
        self.settle(&led);
    }

    /// Somebody with a later reading of the clock has seen the deadline pass.
    fn give_over(&mut self) {
        self.give(Given::Over);
        assert_eq!(self.candidate.protocol.term(), None, "it goes on leading");
    }

    fn advance_to_wake(&mut self) {
        if self.scale == Scale::Extreme && self.candidate.wake == Some(end_of_time()) {
            return;
        }
        let led = self.candidate.advance_to_wake();
        self.settle(&led);
    }

    /// Time passes unnoticed, as in a process that is frozen.
    fn sleep(&mut self, by: Duration) {
        self.candidate.now = self.candidate.now + by;
        self.give(Given::Wake);
    }

    fn duration(&self, input: &mut Input<'_>) -> Duration {
        match self.scale {
            Scale::Usual => Duration::from_micros(u64::from(input.small()) * 100),
            Scale::Extreme => input.duration(),
        }
    }

    /// Answers the call that is outstanding, with whatever.
    fn answer(&mut self, input: &mut Input<'_>) {
        let Some(call) = self.candidate.asked().cloned() else { return };
        let by = self.duration(input);
        // It comes before somebody notices that it is too late, or it is no answer.
        self.candidate.now = self.candidate.now + by.min(self.candidate.timing.operation_timeout());
        let reply = self.reply(&call, input);
        self.answered(reply);
    }

    fn answered(&mut self, reply: Reply) {
        let Some(call) = self.candidate.asked().cloned() else {
            return self.give(Given::Reply(reply));
        };
        let sent = self.candidate.sent();
        let end = self.candidate.protocol.term().map(|(_, deadline)| deadline);
        let expired = end.is_some_and(|end| self.candidate.now >= end);
        let led = self.candidate.give(Given::Reply(reply.clone()));
        self.settle(&led);
        self.judge_reply(&call, &reply, &led, sent, expired);
        // A hint that came meanwhile brings the next look forward, unless this one has failed.
        let by_hint = self.told.hinted && matches!(reply, Reply::Inspected(_));
        self.due = self.candidate.wake.filter(|_| !led.called && !by_hint);
    }

    fn reply(&mut self, call: &Call, input: &mut Input<'_>) -> Reply {
        if input.below(3) == 0 {
            return Reply::Failed;
        }
        let wins = input.below(3) > 0;
        let lease = self.lease(call, wins, input);
        let there = input.below(4) > 0;
        let outcome = if wins {
            Outcome::Won(lease.clone())
        } else {
            Outcome::Lost(there.then(|| lease.clone()))
        };
        match call {
            Call::Inspect => Reply::Inspected(there.then_some(lease)),
            Call::Place(_) => Reply::Placed(lease),
            Call::Acquire(_) => Reply::Acquired(outcome),
            Call::Renew(_) => Reply::Renewed(outcome),
            Call::Release(_) => Reply::Released(outcome),
        }
    }

    /// A record as it might be: mostly what the contract has it be, and sometimes anything.
    fn lease(&mut self, call: &Call, wins: bool, input: &mut Input<'_>) -> Lease {
        self.version += u64::from(input.below(4) > 0);
        let me = self.candidate.identity.clone();
        let (holder, fence) = match call {
            Call::Acquire(request) if wins && input.below(8) > 0 => {
                let observed = request.observed.as_ref().map(|observed| observed.fence);
                (Some(me), Fence::next(observed, request.floor, 0).unwrap_or(Fence::MIN))
            }
            Call::Renew(request) if wins && input.below(8) > 0 => (Some(me), request.fence),
            _ => {
                let holders = [None, Some(Identity::new("other").unwrap()), Some(me)];
                let fence = match self.scale {
                    Scale::Usual => Fence::try_from(1 + input.below(16) as u64).unwrap(),
                    Scale::Extreme => input.fence(),
                };
                (input.one_of(&holders), fence)
            }
        };
        let duration = match input.below(3) {
            0 => self.candidate.timing.lease_duration(),
            _ => self.duration(input),
        };
        let mut lease = Lease::new(holder, fence, Version::from(self.version), duration);
        lease.released = matches!(call, Call::Release(_)) && wins || input.below(6) == 0;
        lease.ttl = match input.below(4) {
            0 => None,
            1 => Some(Duration::ZERO),
            2 => Some(duration),
            _ => Some(self.duration(input)),
        };
        lease
    }

    /// What holds after every step: a call that was made came not too early, and not too many of them did.
    fn settle(&mut self, led: &Led) {
        if self.candidate.protocol.phase() != Phase::Following {
            self.told.hinted = false;
        }
        if self.scale == Scale::Extreme {
            return;
        }
        if led.abandoned {
            self.due = self.candidate.wake;
        }
        match self.candidate.asked().filter(|_| led.called) {
            None => {}
            Some(Call::Renew(request)) => {
                let (timing, sent) = (self.candidate.timing, self.candidate.sent());
                let last = self.last_renewal.replace((request.fence, sent));
                let last = last.filter(|(fence, _)| *fence == request.fence);
                let apart = last.map(|(_, at)| sent.saturating_since(at));
                let least = timing.renew_interval().min(timing.retry_delay());
                assert!(apart.is_none_or(|apart| apart >= least), "renewed after {apart:?}");
            }
            Some(Call::Inspect) => self.looks(),
            Some(other) => {
                self.since_look += 1;
                assert!(self.since_look <= CALLS_PER_LOOK, "{other:?} without a look");
            }
        }
    }

    /// Because it was time to, or long enough after the last look.
    fn looks(&mut self) {
        let sent = self.candidate.sent();
        let is_due = self.due.take().is_some_and(|due| sent >= due);
        let apart = self.last_look.replace(sent).map(|last| sent.saturating_since(last));
        let is_spaced = apart.is_none_or(|apart| apart >= SPACING);
        // One look may be owed before it can stop.
        assert!(is_due || is_spaced || self.told.stopping, "looked again after {apart:?}");
        self.told.hinted = false;
        self.since_look = 0;
    }

    /// The next call comes when it is promised.
    fn judge_reply(&self, call: &Call, reply: &Reply, led: &Led, sent: Instant, expired: bool) {
        self.uncertain_means_no(reply, led, expired);
        if self.scale == Scale::Extreme || self.told.stopping || led.called {
            return;
        }
        let Self { candidate, told, .. } = self;
        let (timing, now) = (candidate.timing, candidate.now);
        let Some(wake) = candidate.wake else { return };
        let wait = wake.saturating_since(now);
        let period = timing.retry_period();
        let around = (period / 5 * 4).saturating_sub(ROUNDING)..=period / 5 * 6 + ROUNDING;
        match (call, reply, candidate.protocol.phase()) {
            // One that came too late counts as failed as well, at the same instant.
            (Call::Inspect | Call::Place(_), Reply::Failed, Phase::Following) => {
                assert!(around.contains(&wait), "{wait:?} after a failed look: {timing:?}");
            }
            (Call::Acquire(_), Reply::Failed, Phase::Following) => {
                assert_eq!(wait, timing.retry_delay(), "after an acquire of unknown outcome");
            }
            (Call::Renew(_), Reply::Failed, Phase::Leading) => {
                let (_, deadline) = candidate.protocol.term().expect("it leads");
                assert_eq!(
                    wake,
                    deadline.min(now + timing.retry_delay()),
                    "after a failed renewal"
                );
            }
            (
                Call::Renew(_) | Call::Acquire(_),
                Reply::Renewed(Outcome::Won(_)) | Reply::Acquired(Outcome::Won(_)),
                Phase::Leading,
            ) => {
                let (_, deadline) = candidate.protocol.term().expect("it leads");
                assert_eq!(wake, deadline.min(sent + timing.renew_interval()), "after a success");
            }
            (Call::Acquire(_), Reply::Acquired(Outcome::Lost(_)), Phase::Following) => {
                let most = SPACING.max(*around.end());
                assert!((SPACING..=most).contains(&wait), "{wait:?} after a lost acquire");
            }
            (Call::Inspect, Reply::Inspected(lease), Phase::Following) => {
                assert!(wait <= SPACING.max(*around.end()), "{wait:?} after a look");
                let contends = !told.ineligible && !told.paused && !told.hinted;
                if let (Some(lease), true, Expiry::Either) = (lease, contends, timing.expiry()) {
                    let left = lease.ttl.unwrap_or(Duration::MAX).saturating_add(MAX_EXPIRY_JITTER);
                    assert!(wait <= left, "{wait:?} at {lease:?}");
                }
            }
            _ => {}
        }
    }

    /// Nobody leads on a success that came too late, is of somebody else's lease, or is about to expire.
    fn uncertain_means_no(&self, reply: &Reply, led: &Led, expired: bool) {
        let begun = led
            .changes
            .iter()
            .any(|change| matches!(change, Change::Started { .. } | Change::Extended { .. }));
        assert!(!(begun && expired), "a term went on after its deadline");
        let Some((fence, _)) = self.candidate.protocol.term().filter(|_| begun) else { return };
        let (Reply::Acquired(Outcome::Won(lease)) | Reply::Renewed(Outcome::Won(lease))) = reply
        else {
            panic!("{reply:?} confirmed a term");
        };
        assert!(lease.is_held_by(&self.candidate.identity) && lease.fence == fence, "{lease:?}");
        let margin = self.candidate.timing.safety_margin();
        assert!(lease.ttl.is_none_or(|ttl| ttl > margin), "a term on {lease:?}");
    }
}

const fn end_of_time() -> Instant {
    Instant::from_nanos(u64::MAX)
}
