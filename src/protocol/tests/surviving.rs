//! Every configuration that is accepted survives one lost renewal.

use std::time::Duration;

use proptest::prelude::*;

use super::{
    candidate::{Candidate, ME},
    lease, ms,
};
use crate::protocol::{Call, Phase, Timing, TimingBuilder};

const INSTANT_LESS: Duration = Duration::from_nanos(1);

/// Accepted configurations, many of them with `operation_timeout > renew_interval`, and many with no room to spare.
pub(in crate::protocol) fn accepted() -> impl Strategy<Value = TimingBuilder> {
    let shares = (1..60_u64, 1..40_u64, 1..60_u64, 1..30_u64);
    let configured =
        (500..60_000_u64, shares).prop_map(|(duration, (renew, call, retry, margin))| {
            let share = |percent: u64| ms((duration * percent / 100).max(5));
            Timing::builder()
                .lease_duration(ms(duration))
                .renew_interval(share(renew))
                .operation_timeout(share(call))
                .retry_period(share(retry))
                .safety_margin(share(margin))
        });
    let tight = (20..5_000_u64, 20..5_000_u64, 5..2_000_u64).prop_map(|(renew, call, margin)| {
        let retry_delay = (renew * 1_000 / 4).max(50_000);
        let needed = (renew.max(call) + 2 * call) * 1_000 + retry_delay;
        Timing::builder()
            .lease_duration(Duration::from_micros(needed) + ms(margin))
            .renew_interval(ms(renew))
            .operation_timeout(ms(call))
            .safety_margin(ms(margin))
    });
    prop_oneof![configured, tight].prop_filter("refused", |builder| builder.build().is_ok())
}

/// A leader whose last renewal before the loss was confirmed as late as possible, and whose second attempt is, too.
fn survives(timing: Timing, first_answer: Duration) {
    let mut candidate = Candidate::leading(timing);
    let own = |version| {
        let mut lease = lease(ME, 1, version);
        lease.duration = timing.lease_duration();
        lease.ttl = Some(timing.lease_duration());
        lease
    };
    candidate.advance_to_call();
    candidate.advance(first_answer);
    candidate.won(own(2));

    while !candidate.is_renewing() {
        candidate.advance_to_call();
    }
    let swallowed = candidate.now;
    candidate.advance_to_call();
    assert!(candidate.is_renewing(), "renews again after a renewal was lost: {candidate:?}");
    let again = candidate.now.saturating_since(swallowed);
    assert_eq!(again, timing.operation_timeout() + timing.retry_delay());
    candidate.advance(timing.operation_timeout() - INSTANT_LESS);
    assert!(matches!(candidate.asked(), Some(Call::Renew(_))), "the term has ended: {timing:?}");
    candidate.won(own(3));
    assert_eq!(candidate.phase(), Phase::Leading, "{timing:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn every_accepted_configuration_survives_one_lost_renewal(
        timing in accepted(),
        late in 0..=1_000_u32,
    ) {
        let timing = timing.build().unwrap();
        let latest = timing.operation_timeout() - INSTANT_LESS;
        survives(timing, latest * late / 1_000);
    }
}

#[test]
fn a_timeout_above_the_renew_interval_survives_one_lost_renewal_without_room_to_spare() {
    let timing = Timing::builder()
        .lease_duration(ms(6_250))
        .renew_interval(ms(1_000))
        .operation_timeout(ms(1_500))
        .safety_margin(ms(1_500))
        .build()
        .unwrap();
    survives(timing, timing.operation_timeout() - INSTANT_LESS);
}
