//! Why a value was refused.

use std::{convert::Infallible, num::ParseIntError};

use super::MAX_NAME_BYTES;

/// Why a name, an identity, a fence or a payload was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidValue {
    /// There is nothing in it.
    #[error("{what} is empty; give it 1 to {MAX_NAME_BYTES} bytes of UTF-8")]
    Empty {
        /// Which value: `election name`, `identity`, ...
        what: &'static str,
    },
    /// It does not fit into every store.
    #[error("{what} has {bytes} bytes, at most {limit} are allowed")]
    TooLong {
        /// Which value: `election name`, `identity`, `payload`.
        what: &'static str,
        /// How long it is.
        bytes: usize,
        /// How long it may be.
        limit: usize,
    },
    /// It contains a NUL character, which PostgreSQL's text cannot hold.
    #[error("{what} contains a NUL character at byte {at}")]
    Nul {
        /// Which value.
        what: &'static str,
        /// Where the first one stands.
        at: usize,
    },
    /// A fence lies outside `1..=i64::MAX`.
    #[error("{value} is not a fence: fences go from 1 to 9223372036854775807")]
    FenceOutOfRange {
        /// The number that was given.
        value: i128,
    },
    /// A fence was not written as a number.
    #[error("{text:?} is not a fence: expected a whole number from 1 to 9223372036854775807")]
    FenceNotANumber {
        /// What was given.
        text: String,
        /// What the parser said.
        #[source]
        source: ParseIntError,
    },
}

/// So that `TryInto<ElectionName>` also takes a name that needs no checking.
impl From<Infallible> for InvalidValue {
    fn from(never: Infallible) -> Self {
        match never {}
    }
}
