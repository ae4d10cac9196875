//! Whatever the jitter is, and whatever is answered: looks and renewals come when they are promised, and never in a hot loop.

use std::time::Duration;

use tenure::{Expiry, Instant, Timing};

use crate::{
    input::Input,
    life::{self, Scale},
};

pub(crate) fn check(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    let ms = |input: &mut Input<'_>| Duration::from_millis(1 + u64::from(input.small()) % 4_000);
    let mut builder = Timing::builder()
        .lease_duration(Duration::from_millis(500 + u64::from(input.small())))
        .expiry(input.one_of(&[Expiry::Either, Expiry::Observed, Expiry::Both]));
    if input.flag() {
        builder = builder.retry_period(ms(&mut input));
    }
    if input.flag() {
        builder = builder.renew_interval(ms(&mut input)).operation_timeout(ms(&mut input));
    }
    let Ok(timing) = builder.build() else { return };
    life::live(&mut input, timing, Instant::from_nanos(1), Scale::Usual);
}
