//! Any combination of durations: what is accepted lets a leader lose a renewal, and what is refused says why.

use std::{mem, time::Duration};

use tenure::{
    Expiry, Fence, Instant, Lease, Phase, Timing, TimingError, Version,
    protocol::{Call, Input as Given, Remedy, Reply, TimingBuilder},
    store::Outcome,
};

use crate::{candidate::Candidate, input::Input};

const FIELDS: [Field; 5] = [
    Field { name: "lease_duration", set: TimingBuilder::lease_duration },
    Field { name: "renew_interval", set: TimingBuilder::renew_interval },
    Field { name: "retry_period", set: TimingBuilder::retry_period },
    Field { name: "operation_timeout", set: TimingBuilder::operation_timeout },
    Field { name: "safety_margin", set: TimingBuilder::safety_margin },
];
const EXPIRIES: [Expiry; 3] = [Expiry::Either, Expiry::Observed, Expiry::Both];
const INSTANT_LESS: Duration = Duration::from_nanos(1);

/// What errors can be about.
#[derive(Clone, Copy)]
struct Field {
    name: &'static str,
    set: fn(TimingBuilder, Duration) -> TimingBuilder,
}

pub(crate) fn check(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    let late = input.small();
    let (builder, set) = builder(&mut input);
    match builder.build() {
        Ok(timing) => survives_a_lost_renewal(timing, late),
        Err(error) => says_why(&error, builder, &set),
    }
}

/// Some of the fields set, and to what.
fn builder(input: &mut Input<'_>) -> (TimingBuilder, Vec<(Field, Duration)>) {
    let mut builder = Timing::builder().expiry(input.one_of(&EXPIRIES));
    let mut set = Vec::new();
    for field in FIELDS {
        let value = match input.below(4) {
            0 => continue,
            // Where most of what is accepted lies, down to the nanosecond.
            1 => Duration::from_micros(u64::from(input.small()) * 50),
            2 => Duration::from_nanos(input.number() >> 24),
            _ => input.duration(),
        };
        builder = (field.set)(builder, value);
        set.push((field, value));
    }
    for set in [TimingBuilder::drain_timeout, TimingBuilder::resign_pause] {
        if input.flag() {
            builder = set(builder, input.duration());
        }
    }
    (builder, set)
}

/// Drives the protocol itself: its last renewal before the loss is confirmed somewhat late, the next one gets no answer at
/// all, and the one after that is answered at the last moment.
fn survives_a_lost_renewal(timing: Timing, late: u16) {
    let latest = timing.operation_timeout() - INSTANT_LESS;
    let mut leader = Leader::new(timing);
    leader.renew();
    leader.wait(latest * u32::from(late) / u32::from(u16::MAX));
    leader.confirm();
    let lost = leader.renew();
    let again = leader.renew();
    let pause = again.saturating_since(lost);
    assert_eq!(pause, timing.operation_timeout() + timing.retry_delay(), "{timing:?}");
    leader.wait(latest);
    leader.confirm();
}

/// A candidate that was elected at once, and may not stop leading.
struct Leader {
    timing: Timing,
    candidate: Candidate,
    version: u64,
    /// The last confirmation came when the next renewal was due already.
    renews_already: bool,
}

impl Leader {
    fn new(timing: Timing) -> Self {
        let start = Instant::from_nanos(1_000_000_000);
        let mut candidate = Candidate::new(timing, start, true);
        candidate.give(Given::Wake);
        candidate.give(Given::Reply(Reply::Inspected(None)));
        let mut leader = Self { timing, candidate, version: 0, renews_already: false };
        leader.answer(Reply::Acquired);
        leader
    }

    /// Waits until it sends a renewal, and tells when that was.
    fn renew(&mut self) -> Instant {
        while !mem::take(&mut self.renews_already) {
            self.renews_already = self.candidate.advance_to_wake().called;
            self.leads();
        }
        assert!(matches!(self.candidate.asked(), Some(Call::Renew(_))));
        self.candidate.now
    }

    /// Lets time pass in which nothing may become due.
    fn wait(&mut self, by: Duration) {
        let until = self.candidate.now + by;
        while self.candidate.wake.is_some_and(|wake| wake <= until) {
            self.candidate.advance_to_wake();
            self.leads();
            assert!(self.candidate.asked().is_some(), "the call was given up: {:?}", self.timing);
        }
        self.candidate.now = until;
    }

    fn confirm(&mut self) {
        self.answer(Reply::Renewed);
    }

    fn answer(&mut self, reply: fn(Outcome) -> Reply) {
        self.version += 1;
        let holder = Some(self.candidate.identity.clone());
        let duration = self.timing.lease_duration();
        let mut lease = Lease::new(holder, Fence::MIN, Version::from(self.version), duration);
        lease.ttl = Some(duration);
        self.renews_already = self.candidate.give(Given::Reply(reply(Outcome::Won(lease)))).called;
        self.leads();
    }

    fn leads(&self) {
        let phase = self.candidate.protocol.phase();
        assert_eq!(phase, Phase::Leading, "the term did not survive: {:?}", self.timing);
    }
}

fn says_why(error: &TimingError, builder: TimingBuilder, set: &[(Field, Duration)]) {
    let said = error.to_string();
    match *error {
        TimingError::TooShort { field, value, limit } => {
            assert!(value < limit, "{said}");
            is_about(field, value, limit, builder, set);
            names(&said, [field.to_owned(), format!("{value:?}"), format!("{limit:?}")]);
        }
        TimingError::TooLong { field, value, limit } => {
            assert!(value > limit, "{said}");
            is_about(field, value, limit, builder, set);
            names(&said, [field.to_owned(), format!("{value:?}"), format!("{limit:?}")]);
        }
        TimingError::NoRoomForALostRenewal { needed, available, ref refused, remedy } => {
            assert!(needed > available, "{said}");
            names(
                &said,
                ["renew_interval".to_owned(), format!("{needed:?}"), format!("{available:?}")],
            );
            helps(remedy, refused.lease_duration(), builder, &said);
        }
        ref other => panic!("{other:?} is not known here"),
    }
}

/// The field was set to this value, and is no longer at fault when it is set to the limit.
fn is_about(
    name: &str,
    value: Duration,
    limit: Duration,
    builder: TimingBuilder,
    set: &[(Field, Duration)],
) {
    let (field, _) = set
        .iter()
        .find(|(field, given)| field.name == name && *given == value)
        .unwrap_or_else(|| panic!("{name} was not set to {value:?}"));
    let at_limit = (field.set)(builder, limit).build();
    if let Err(TimingError::TooShort { field, .. } | TimingError::TooLong { field, .. }) = at_limit
    {
        assert_ne!(field, name, "the limit itself is refused");
    }
}

fn helps(remedy: Remedy, refused: Duration, builder: TimingBuilder, said: &str) {
    const LONGEST: Duration = Duration::from_secs(3_600);
    match remedy {
        Remedy::LongerLease(lease) => {
            assert!(lease > refused, "{said}");
            assert!(said.contains(&format!("{lease:?}")), "{said}");
            let mended = builder.lease_duration(lease).build();
            assert!(mended.is_ok(), "{said}: but {mended:?}");
        }
        Remedy::DeriveTheRest => {
            let longest = builder.lease_duration(LONGEST).build();
            assert!(longest.is_err(), "a longer lease would have done: {said}");
            for lease in [Duration::from_millis(500), refused, LONGEST] {
                let lease = lease.clamp(Duration::from_millis(500), LONGEST);
                let alone = Timing::builder().lease_duration(lease).build();
                assert!(alone.is_ok(), "{said}: but {alone:?}");
            }
        }
        other => panic!("{other:?} is not known here"),
    }
}

fn names<const N: usize>(said: &str, parts: [String; N]) {
    for part in parts {
        assert!(said.contains(&part), "{part} is missing in: {said}");
    }
}
