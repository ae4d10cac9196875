//! Values as SQL text that means the same whatever the session's settings are.
//!
//! A message of several statements has no parameters. Hexadecimal digits need no quoting, so there is nothing to inject,
//! nor does it matter how the server treats quotes and backslashes.

use std::{fmt::Write, time::Duration};

pub(crate) fn text(value: &str) -> String {
    bytes(value.as_bytes())
}

pub(crate) fn bytes(value: &[u8]) -> String {
    let mut literal = String::with_capacity(value.len() * 2 + 3);
    literal.push_str("X'");
    for byte in value {
        // Writing to a string does not fail.
        let _ = write!(literal, "{byte:02x}");
    }
    literal.push('\'');
    literal
}

/// Rounded up to whole microseconds, which is what the server counts in: never shorter than what was asked. What does
/// not fit, the server refuses.
pub(crate) fn micros(duration: Duration) -> i64 {
    i64::try_from(duration.as_nanos().div_ceil(1_000)).unwrap_or(i64::MAX)
}

/// Quoted, so that any name is taken as it is, also where double quotes are for identifiers.
pub(crate) fn identifier(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_is_written_as_two_digits() {
        assert_eq!(bytes(b"\x00'\\\xff"), "X'00275cff'");
        assert_eq!(text(""), "X''");
    }

    #[test]
    fn durations_are_rounded_up_and_never_wrap() {
        assert_eq!(micros(Duration::from_nanos(1_001)), 2);
        assert_eq!(micros(Duration::MAX), i64::MAX);
    }

    #[test]
    fn identifiers_cannot_end_their_own_quotes() {
        assert_eq!(identifier("a`; drop table b; -- "), "`a``; drop table b; -- `");
    }
}
