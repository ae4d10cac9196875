//! One protocol on virtual time, and what must hold in every step of it.

use tenure::{
    Identity, Instant, Phase, Timing,
    protocol::{Call, Change, Input as Given, Jitter, Levels, Protocol, Step},
};

/// A protocol, its clock, and what it has asked for.
#[derive(Debug)]
pub(crate) struct Candidate {
    pub(crate) protocol: Protocol,
    pub(crate) identity: Identity,
    pub(crate) timing: Timing,
    pub(crate) now: Instant,
    pub(crate) jitter: Jitter,
    pub(crate) levels: Levels,
    pub(crate) wake: Option<Instant>,
    call: Option<Call>,
    /// When the last call was made.
    sent: Instant,
}

/// What a step led to, with those that it asked for.
#[derive(Debug, Default)]
pub(crate) struct Led {
    pub(crate) abandoned: bool,
    pub(crate) called: bool,
    pub(crate) changes: Vec<Change>,
}

impl Candidate {
    /// Before its first step.
    pub(crate) fn new(timing: Timing, now: Instant, eligible: bool) -> Self {
        let identity = Identity::new("me").unwrap();
        Self {
            protocol: Protocol::new(identity.clone(), timing, eligible),
            identity,
            timing,
            now,
            jitter: Jitter::default(),
            levels: Levels::default(),
            wake: None,
            call: None,
            sent: Instant::ORIGIN,
        }
    }

    pub(crate) fn asked(&self) -> Option<&Call> {
        self.call.as_ref()
    }

    pub(crate) fn sent(&self) -> Instant {
        self.sent
    }

    /// Goes on by one input, and steps again for as long as the levels have to be read again.
    pub(crate) fn give(&mut self, input: Given) -> Led {
        let answered = match &input {
            Given::Reply(_) => self.call.take().map(|_| self.sent),
            _ => None,
        };
        let mut led = Led::default();
        let mut step = self.protocol.step(self.now, self.jitter, self.levels, input);
        loop {
            let recount = step.recount;
            self.take(step, answered, &mut led);
            if !recount {
                break;
            }
            step = self.protocol.step(self.now, self.jitter, self.levels, Given::Wake);
        }
        self.has_settled();
        led
    }

    /// Goes on at the instant at which it wants to be woken, if it does. Something is due then.
    pub(crate) fn advance_to_wake(&mut self) -> Led {
        let Some(wake) = self.wake else { return Led::default() };
        self.now = wake;
        let led = self.give(Given::Wake);
        let did = led.abandoned || led.called || !led.changes.is_empty();
        assert!(did, "woken for nothing: {self:?}");
        led
    }

    fn take(&mut self, step: Step, answered: Option<Instant>, led: &mut Led) {
        if step.abandon {
            assert!(self.call.take().is_some(), "there is nothing to abandon: {step:?}");
            led.abandoned = true;
        }
        for change in &step.changes {
            if let Change::Started { deadline, .. } | Change::Extended { deadline } = change {
                let sent = answered.expect("nothing was confirmed");
                let valid = self.timing.lease_duration() - self.timing.safety_margin();
                assert!(*deadline <= sent + valid, "{deadline} counts from after {sent}");
            }
        }
        led.changes.extend(step.changes);
        self.wake = step.wake;
        if let Some(call) = step.call {
            assert!(self.call.is_none(), "two calls are outstanding");
            let over_a_guard = matches!(call, Call::Release(_)) && self.levels.guards > 0;
            assert!(!over_a_guard, "released over a guard");
            self.call = Some(call);
            self.sent = self.now;
            led.called = true;
        }
    }

    fn has_settled(&self) {
        if let Some((_, deadline)) = self.protocol.term() {
            assert!(self.now < deadline, "a term at its deadline: {self:?}");
            assert!(self.wake.is_some_and(|wake| wake <= deadline), "nothing ends it: {self:?}");
        }
        let has_stopped = self.protocol.phase() == Phase::Stopped;
        assert_eq!(self.wake.is_none(), has_stopped, "nothing wakes it: {self:?}");
        let end_of_time = self.now == Instant::from_nanos(u64::MAX);
        let later = self.wake.is_none_or(|wake| wake > self.now);
        assert!(later || end_of_time, "it must be woken at once, a hot loop: {self:?}");
    }
}
