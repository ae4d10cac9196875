//! Values as SQL text that means the same whatever the session's settings are.
//!
//! The simple query protocol has no parameters. Hexadecimal digits need no quoting, so there is nothing to inject, nor
//! does it matter how the server treats backslashes.

use std::time::Duration;

pub(crate) fn text(value: &str) -> String {
    format!("convert_from({}, 'UTF8')", bytes(value.as_bytes()))
}

pub(crate) fn bytes(value: &[u8]) -> String {
    format!("decode('{}', 'hex')", hex(value))
}

pub(crate) fn bigint(value: i64) -> String {
    format!("({value})::bigint")
}

/// Rounded up to whole microseconds, which is what the server counts in: never shorter than what was asked. What does
/// not fit, the server refuses.
pub(crate) fn micros(duration: Duration) -> String {
    bigint(i64::try_from(duration.as_nanos().div_ceil(1_000)).unwrap_or(i64::MAX))
}

/// Quoted, so that any name is taken as it is.
pub(crate) fn identifier(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digit = |value: u8| char::from(DIGITS[usize::from(value)]);
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

/// The bytes that these digits stand for; `None` if they don't.
pub(crate) fn from_hex(digits: &str) -> Option<Vec<u8>> {
    let value = |digit: u8| u8::try_from(char::from(digit).to_digit(16)?).ok();
    let byte = |pair: &[u8]| Some(value(pair[0])? << 4 | value(pair[1])?);
    let pairs = digits.as_bytes().chunks_exact(2);
    pairs.remainder().is_empty().then(|| pairs.map(byte).collect())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hex_holds_every_byte() {
        let all: Vec<u8> = (0..=255).collect();
        assert_eq!(from_hex(&hex(&all)).unwrap(), all);
        assert_eq!(hex(b"\x00'\xff"), "0027ff");
        assert_eq!((from_hex("0"), from_hex("0g"), from_hex("")), (None, None, Some(vec![])));
    }

    #[test]
    fn durations_are_rounded_up_and_never_wrap() {
        assert_eq!(micros(Duration::from_nanos(1_001)), "(2)::bigint");
        assert_eq!(micros(Duration::MAX), format!("({})::bigint", i64::MAX));
    }

    #[test]
    fn identifiers_cannot_end_their_own_quotes() {
        assert_eq!(identifier(r#"a"; drop table b; --"#), r#""a""; drop table b; --""#);
    }
}
