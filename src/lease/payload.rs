//! What a leader publishes.

use std::{fmt, sync::Arc};

use super::InvalidValue;

/// The most bytes that a payload may have.
pub const MAX_PAYLOAD_BYTES: usize = 64 * 1024;

/// What a leader publishes beside its lease, for example the address at which it can be reached: 0 to 64 KiB, any
/// bytes. The builder refuses longer ones.
///
/// ```
/// use tenure::Payload;
///
/// let payload = Payload::from("https://leader.eu-west.internal:8443");
/// assert_eq!(payload.as_str(), Some("https://leader.eu-west.internal:8443"));
/// assert_eq!(Payload::from(&[0xff]).as_str(), None);
/// ```
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub struct Payload(Option<Arc<[u8]>>);

impl Payload {
    /// The bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        self.0.as_deref().unwrap_or_default()
    }

    /// The text, if the bytes are UTF-8.
    #[must_use]
    pub fn as_str(&self) -> Option<&str> {
        std::str::from_utf8(self.as_bytes()).ok()
    }

    /// Whether there is nothing in it.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.as_bytes().is_empty()
    }

    /// Refuses what is too long for a store.
    pub(crate) fn checked(self) -> Result<Self, InvalidValue> {
        let bytes = self.as_bytes().len();
        if bytes > MAX_PAYLOAD_BYTES {
            return Err(InvalidValue::TooLong { what: "payload", bytes, limit: MAX_PAYLOAD_BYTES });
        }
        Ok(self)
    }
}

impl From<&[u8]> for Payload {
    fn from(bytes: &[u8]) -> Self {
        Self((!bytes.is_empty()).then(|| bytes.into()))
    }
}

impl<const N: usize> From<&[u8; N]> for Payload {
    fn from(bytes: &[u8; N]) -> Self {
        bytes.as_slice().into()
    }
}

impl From<Vec<u8>> for Payload {
    fn from(bytes: Vec<u8>) -> Self {
        bytes.as_slice().into()
    }
}

impl From<&str> for Payload {
    fn from(text: &str) -> Self {
        text.as_bytes().into()
    }
}

impl From<String> for Payload {
    fn from(text: String) -> Self {
        text.as_bytes().into()
    }
}

impl fmt::Debug for Payload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.as_str() {
            Some(text) if text.len() <= 256 => write!(f, "{text:?}"),
            _ => write!(f, "<{} bytes>", self.as_bytes().len()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn payloads_hold_any_bytes_up_to_the_limit() {
        assert!(Payload::from(vec![0; MAX_PAYLOAD_BYTES]).checked().is_ok());
        assert!(Payload::from(vec![0; MAX_PAYLOAD_BYTES + 1]).checked().is_err());
        assert_eq!(Payload::from(""), Payload::default());
    }

    #[test]
    fn a_payload_is_made_of_text_or_bytes_and_tells_which_it_was() {
        let (text, bytes) = (Payload::from("é".to_owned()), Payload::from(b"\xff"));
        assert_eq!((text.as_str(), text.as_bytes()), (Some("é"), "é".as_bytes()));
        assert_eq!((bytes.as_str(), bytes.as_bytes()), (None, &[0xff][..]));
        assert!(Payload::default().is_empty() && !text.is_empty());
    }

    #[test]
    fn a_short_text_is_shown_and_anything_else_is_counted() {
        assert_eq!(format!("{:?}", Payload::from("web-1:80")), "\"web-1:80\"");
        assert_eq!(format!("{:?}", Payload::from("x".repeat(257))), "<257 bytes>");
        assert_eq!(format!("{:?}", Payload::from(b"\xff\xfe")), "<2 bytes>");
    }
}
