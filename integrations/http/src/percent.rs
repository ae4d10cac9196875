//! Text of any kind in header values, which are ASCII.

use http::HeaderValue;
use percent_encoding::{AsciiSet, CONTROLS, percent_decode, utf8_percent_encode};

/// What gRPC asks to be encoded in `grpc-message`, and blanks, which proxies may trim at the ends of a value.
const ENCODED: &AsciiSet = &CONTROLS.add(b'%').add(b' ');

pub(crate) fn encode(text: &str) -> HeaderValue {
    let encoded = utf8_percent_encode(text, ENCODED).to_string();
    HeaderValue::try_from(encoded).expect("what is left is printable ASCII")
}

/// `None` if it is no text.
pub(crate) fn decode(value: &HeaderValue) -> Option<String> {
    let decoded = percent_decode(value.as_bytes()).decode_utf8().ok()?;
    Some(decoded.into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_text_comes_back_from_a_header() {
        for text in ["billing", " 100 %\r\nx: y ", "Wähler", "\u{7f}\t", ""] {
            assert_eq!(decode(&encode(text)).as_deref(), Some(text));
        }
        assert_eq!(encode("a b%\n"), "a%20b%25%0A");
        assert_eq!(decode(&HeaderValue::from_static("%ff")), None);
    }
}
