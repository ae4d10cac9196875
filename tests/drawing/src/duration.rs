//! Durations as people read them.

use std::time::Duration;

/// To three digits, in the unit that suits it: `4.2 ms`, `1.25 s`, `3 min 20 s`.
pub(crate) fn show(duration: Duration) -> String {
    let seconds = duration.as_secs_f64();
    if seconds == 0.0 {
        "0 s".to_owned()
    } else if seconds < 999.5e-6 {
        digits(seconds * 1e6) + " µs"
    } else if seconds < 0.9995 {
        digits(seconds * 1e3) + " ms"
    } else if seconds < 59.95 {
        digits(seconds) + " s"
    } else if seconds < 3599.5 {
        in_two(seconds.round() as u64, (60, " min"), (1, " s"))
    } else {
        in_two((seconds / 60.0).round() as u64, (60, " h"), (1, " min"))
    }
}

/// To the millisecond, in seconds: what is compared with other times.
pub(crate) fn exact(duration: Duration) -> String {
    format!("{:.3} s", duration.as_secs_f64())
}

/// Round numbers up to `length`, at most `most` and the zero, and what is written there.
pub(crate) fn ticks(length: Duration, most: u32) -> Vec<(Duration, String)> {
    let has_room = |step: &Duration| length.as_nanos() <= step.as_nanos() * u128::from(most);
    let step = steps().find(has_room).unwrap_or(length);
    (0..=most)
        .map(|number| step.saturating_mul(number))
        .take_while(|at| *at <= length)
        .map(|at| (at, mark(at, step)))
        .collect()
}

fn steps() -> impl Iterator<Item = Duration> {
    const DAY: u64 = 86_400;
    let small = (0..6).flat_map(|power| [1, 2, 5].map(|digit| digit * 10u64.pow(power)));
    let large = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1_800, 3_600, 7_200, 21_600, 43_200];
    let days = (0..32).map(|power| DAY << power);
    let seconds = large.into_iter().chain(days).map(Duration::from_secs);
    small.map(Duration::from_micros).chain(seconds)
}

fn mark(at: Duration, step: Duration) -> String {
    let seconds = at.as_secs();
    if at.is_zero() {
        "0".to_owned()
    } else if seconds == 0 {
        plain(at.as_secs_f64() * 1e3, 3) + " ms"
    } else if step < Duration::from_secs(1) {
        plain(at.as_secs_f64(), 6) + " s"
    } else if seconds < 60 {
        format!("{seconds} s")
    } else if seconds < 3_600 {
        in_two(seconds, (60, " min"), (1, " s"))
    } else {
        in_two(seconds / 60, (60, " h"), (1, " min"))
    }
}

/// A number of the small unit, in a larger one and the rest.
fn in_two(number: u64, large: (u64, &str), small: (u64, &str)) -> String {
    let parts = [(number / large.0, large.1), (number % large.0 / small.0, small.1)];
    let parts = parts.into_iter().filter(|(count, _)| *count > 0);
    parts.map(|(count, unit)| format!("{count}{unit}")).collect::<Vec<_>>().join(" ")
}

/// To three digits.
fn digits(number: f64) -> String {
    let places = match number {
        ..9.995 => 2,
        ..99.95 => 1,
        _ => 0,
    };
    plain(number, places)
}

/// Without zeros at its end.
fn plain(number: f64, places: usize) -> String {
    let text = format!("{number:.places$}");
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_the_unit_that_suits_them() {
        let shown = |nanos| show(Duration::from_nanos(nanos));
        assert_eq!(shown(0), "0 s");
        assert_eq!(shown(1), "0 µs");
        assert_eq!(shown(350_000), "350 µs");
        assert_eq!(shown(999_600), "1 ms");
        assert_eq!(shown(4_200_000), "4.2 ms");
        assert_eq!(shown(999_499_999), "999 ms");
        assert_eq!(shown(999_999_999), "1 s");
        assert_eq!(shown(12_340_000_000), "12.3 s");
        assert_eq!(shown(59_990_000_000), "1 min");
        assert_eq!(shown(200_000_000_000), "3 min 20 s");
        assert_eq!(shown(3_599_900_000_000), "1 h");
        assert_eq!(shown(5_400_000_000_000), "1 h 30 min");
    }

    #[test]
    fn an_axis_has_round_numbers_in_sensible_units() {
        let marks = |millis| -> Vec<String> {
            let marked = ticks(Duration::from_millis(millis), 8);
            marked.into_iter().map(|(_, mark)| mark).collect()
        };
        assert_eq!(marks(1), ["0", "0.2 ms", "0.4 ms", "0.6 ms", "0.8 ms", "1 ms"]);
        assert_eq!(marks(900), ["0", "200 ms", "400 ms", "600 ms", "800 ms"]);
        assert_eq!(marks(2_000), ["0", "500 ms", "1 s", "1.5 s", "2 s"]);
        assert_eq!(marks(30_000), ["0", "5 s", "10 s", "15 s", "20 s", "25 s", "30 s"]);
        assert_eq!(marks(90_000)[4..], ["1 min", "1 min 15 s", "1 min 30 s"]);
        assert_eq!(marks(600_000)[1..3], ["2 min", "4 min"]);
        assert_eq!(marks(7_200_000)[3..6], ["45 min", "1 h", "1 h 15 min"]);
    }

    #[test]
    fn no_axis_has_more_ticks_than_there_is_room_for() {
        for power in 0..60 {
            let length = Duration::from_nanos(1 << power);
            let marked = ticks(length, 10);
            assert!((1..=11).contains(&marked.len()), "{length:?}: {}", marked.len());
            assert!(marked.iter().all(|(at, _)| *at <= length));
        }
        assert!(ticks(Duration::MAX, 10).len() > 1);
    }
}
