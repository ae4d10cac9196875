//! Points in time, durations and fences of every size: nothing panics, nothing wraps, and uncertain means no.

use std::time::Duration;

use tenure::{Fence, Instant, Timing};

use crate::{
    input::Input,
    life::{self, Scale},
};

pub(crate) fn check(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    instants_saturate(input.instant(), input.instant(), input.duration());
    fences_rise_or_end(&mut input);
    let Some(timing) = timing(&mut input) else { return };
    deadlines_are_early(timing, input.instant(), input.duration());
    slow_stores_are_no_better(timing, input.duration());
    let start = input.instant();
    life::live(&mut input, timing, start, Scale::Extreme);
}

/// An accepted configuration with any drain and any pause.
fn timing(input: &mut Input<'_>) -> Option<Timing> {
    let lease = Duration::from_millis(500 + (input.number() >> 32) % 3_599_501);
    let builder = Timing::builder().lease_duration(lease);
    builder.drain_timeout(input.duration()).resign_pause(input.duration()).build().ok()
}

/// The same in numbers that are wide enough.
fn instants_saturate(one: Instant, other: Instant, duration: Duration) {
    let nanos = |instant: Instant| u128::from(instant.as_nanos());
    let later = (nanos(one) + duration.as_nanos()).min(u64::MAX.into());
    assert_eq!(nanos(one + duration), later);
    assert_eq!(nanos(one - duration), nanos(one).saturating_sub(duration.as_nanos()));
    let since = one.saturating_since(other);
    assert_eq!(since.as_nanos(), nanos(one).saturating_sub(nanos(other)));
    let _ = one.to_string();
}

fn fences_rise_or_end(input: &mut Input<'_>) {
    let record = input.flag().then(|| input.fence());
    let floor = input.flag().then(|| input.fence());
    let wall_clock = input.number() as i64;
    let above = record.max(floor).map_or(0, i64::from);
    let expected = (i128::from(above) + 1).max(wall_clock.into());
    let next = Fence::next(record, floor, wall_clock);
    assert_eq!(next.map(|fence| i128::from(i64::from(fence))), Some(expected).filter(fits));
    if let Some(next) = next {
        assert_eq!(next.to_string().parse(), Ok(next));
        assert_eq!(Fence::try_from(u64::from(next)), Ok(next));
    }
}

fn fits(fence: &i128) -> bool {
    i64::try_from(*fence).is_ok()
}

/// Never later than the reply allows, nor than the lease that was asked for.
fn deadlines_are_early(timing: Timing, sent: Instant, ttl: Duration) {
    for ttl in [None, Some(ttl)] {
        let valid = ttl.unwrap_or(Duration::MAX).min(timing.lease_duration());
        let valid = valid.as_nanos().saturating_sub(timing.safety_margin().as_nanos());
        let latest = (u128::from(sent.as_nanos()) + valid).min(u64::MAX.into());
        let deadline = timing.hold_deadline(sent, ttl);
        assert_eq!(u128::from(deadline.as_nanos()), latest, "{timing:?} {sent} {ttl:?}");
    }
}

fn slow_stores_are_no_better(timing: Timing, round_trip: Duration) {
    let (fast, slow) = (timing.worst_case(), timing.worst_case_with(round_trip));
    assert!(slow.fail_over >= fast.fail_over && slow.hand_over >= fast.hand_over, "{slow:?}");
    assert!(slow.recovery >= fast.recovery && slow.survived_outage <= fast.survived_outage);
}
