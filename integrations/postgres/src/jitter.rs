//! Spreads what replicas would otherwise do all at once.

use std::time::Duration;

/// How finely.
const STEPS: u32 = 1_000;

/// Up to a tenth shorter.
pub(crate) fn shortened(duration: Duration) -> Duration {
    duration - duration / (10 * STEPS) * random_step()
}

/// Between a half and the whole.
pub(crate) fn halved(duration: Duration) -> Duration {
    duration - duration / (2 * STEPS) * random_step()
}

/// Without random bits nothing is spread, and nothing else is lost.
fn random_step() -> u32 {
    getrandom::u32().unwrap_or_default() % (STEPS + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_is_shortened_by_no_more_than_promised() {
        let hour = Duration::from_secs(3600);
        for _ in 0..1_000 {
            assert!((hour * 9 / 10..=hour).contains(&shortened(hour)));
            assert!((hour / 2..=hour).contains(&halved(hour)));
        }
        assert!(shortened(Duration::MAX) > hour);
    }
}
