//! The figures, and what is refused.

use super::*;

fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

#[test]
fn the_default_is_the_table_in_the_design() {
    let timing = Timing::builder().build().unwrap();
    assert_eq!(timing.lease_duration(), ms(15_000));
    assert_eq!(timing.renew_interval(), ms(5_000));
    assert_eq!(timing.retry_period(), ms(3_000));
    assert_eq!(timing.operation_timeout(), ms(3_000));
    assert_eq!(timing.safety_margin(), ms(1_500));
    assert_eq!(timing.drain_timeout(), ms(10_000));
    assert_eq!(timing.resign_pause(), ms(9_000));
    assert_eq!(timing.retry_delay(), ms(1_250));
    assert_eq!(timing.shutdown_bound(), ms(16_000));
}

#[test]
fn derived_timings_pass_for_every_lease_from_half_a_second_to_an_hour() {
    for lease in (501..20_000).step_by(37).chain((20_000..=3_600_000).step_by(70_001)) {
        let built = Timing::builder().lease_duration(ms(lease)).build();
        assert!(built.is_ok(), "{lease} ms: {built:?}");
    }
}

#[test]
fn a_refusal_names_the_field_both_sides_and_what_would_pass() {
    let error = Timing::builder()
        .lease_duration(ms(10_000))
        .renew_interval(ms(5_000))
        .operation_timeout(ms(3_000))
        .safety_margin(ms(1_000))
        .build()
        .unwrap_err();
    let TimingError::NoRoomForALostRenewal { needed, available, .. } = &error else {
        panic!("{error:?}")
    };
    assert_eq!((*needed, *available), (ms(12_250), ms(9_000)));
    let text = error.to_string();
    for part in ["renew_interval", "12.25s", "9s", "lease_duration"] {
        assert!(text.contains(part), "{part} is missing in: {text}");
    }
}

#[test]
fn what_an_error_recommends_passes() {
    let tight = Timing::builder().lease_duration(ms(10_000)).operation_timeout(ms(4_000));
    let Err(TimingError::NoRoomForALostRenewal { remedy: Remedy::LongerLease(lease), .. }) =
        tight.build()
    else {
        panic!("expected a longer lease as the remedy")
    };
    assert!(tight.lease_duration(lease).build().is_ok());
    let shorter = lease / 11 * 10 - ms(5);
    assert!(
        tight.lease_duration(shorter).build().is_err(),
        "{shorter:?} would do, not only {lease:?}"
    );

    let hopeless = Timing::builder().operation_timeout(ms(3_600_000));
    let error = hopeless.build().unwrap_err();
    assert!(error.to_string().contains("set lease_duration alone"), "{error}");
    assert!(matches!(
        error,
        TimingError::NoRoomForALostRenewal { remedy: Remedy::DeriveTheRest, .. }
    ));
}

#[test]
fn absurd_timings_are_refused_without_overflow() {
    for builder in [
        Timing::builder().lease_duration(Duration::MAX),
        Timing::builder().lease_duration(Duration::ZERO),
        Timing::builder().lease_duration(ms(1)),
        Timing::builder().renew_interval(Duration::from_nanos(1)),
        Timing::builder().renew_interval(Duration::MAX),
        Timing::builder().operation_timeout(Duration::MAX),
        Timing::builder().safety_margin(Duration::MAX),
        Timing::builder().retry_period(Duration::ZERO),
        Timing::builder().retry_period(Duration::MAX),
    ] {
        assert!(builder.build().is_err(), "{builder:?}");
    }
    let patient = Timing::builder().drain_timeout(Duration::MAX).resign_pause(Duration::MAX);
    assert_eq!(patient.build().unwrap().shutdown_bound(), Duration::MAX);
}

#[test]
fn what_is_too_short_is_named() {
    let ns = Duration::from_nanos(999_999);
    for (field, builder) in [
        ("lease_duration", Timing::builder().lease_duration(ns)),
        ("renew_interval", Timing::builder().renew_interval(ns)),
        ("retry_period", Timing::builder().retry_period(ns)),
        ("operation_timeout", Timing::builder().operation_timeout(ns)),
        ("safety_margin", Timing::builder().safety_margin(ns)),
    ] {
        let error = builder.build().unwrap_err();
        assert_eq!(error, TimingError::TooShort { field, value: ns, limit: ms(1) });
    }
}

#[test]
fn the_shortest_and_the_longest_of_each_are_not_refused() {
    let builder = Timing::builder;
    for builder in [
        builder().lease_duration(ms(3_600_000)),
        builder().renew_interval(ms(1)),
        builder().retry_period(ms(1)),
        builder().retry_period(ms(3_600_000)),
        builder().operation_timeout(ms(1)),
        builder().safety_margin(ms(1)),
    ] {
        assert!(builder.build().is_ok(), "{builder:?}: {:?}", builder.build());
    }
}

#[test]
fn refused_timings_have_worst_cases_without_overflow() {
    let builder = Timing::builder().renew_interval(Duration::MAX);
    let error = builder.operation_timeout(Duration::MAX).build().unwrap_err();
    let TimingError::NoRoomForALostRenewal { refused, .. } = error else { panic!("{error:?}") };
    assert_eq!(refused.worst_case_with(Duration::MAX).recovery, Duration::MAX);
}

#[test]
fn a_deadline_counts_from_the_send_and_trusts_the_shorter_duration() {
    let timing = Timing::builder().build().unwrap();
    let sent = Instant::from_nanos(7);
    assert_eq!(timing.hold_deadline(sent, None), sent + ms(13_500));
    assert_eq!(timing.hold_deadline(sent, Some(ms(60_000))), sent + ms(13_500));
    assert_eq!(timing.hold_deadline(sent, Some(ms(5_000))), sent + ms(3_500));
    assert_eq!(timing.hold_deadline(sent, Some(ms(900))), sent);
}

#[test]
fn the_worst_cases_are_the_sums_in_the_design() {
    let worst = |expiry| {
        Timing::builder().lease_duration(ms(3_000)).expiry(expiry).build().unwrap().worst_case()
    };
    let about = |a: Duration, b: u64| a.as_millis().abs_diff(u128::from(b)) <= 5;
    let either = worst(Expiry::Either);
    assert!(about(either.fail_over, 3_008), "{either:?}");
    assert!(about(either.hand_over, 721), "{either:?}");
    assert!(about(either.survived_outage, 650), "{either:?}");
    assert!(about(worst(Expiry::Observed).fail_over, 3_729));
    assert!(about(worst(Expiry::Observed).recovery, 4_329));
    assert!(about(worst(Expiry::Both).recovery, 7_332));
}
