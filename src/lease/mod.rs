//! What stands in the store: names, identities, fences, and the lease itself.

mod fence;
mod invalid;
mod name;
mod payload;

use std::{fmt, sync::Arc, time::Duration};

pub use self::{
    fence::Fence,
    invalid::InvalidValue,
    name::{ElectionName, Identity, MAX_NAME_BYTES},
    payload::{MAX_PAYLOAD_BYTES, Payload},
};

/// The record of one election as a store reports it.
///
/// It holds no point in time: how long it is still valid is a duration, from two readings of the store's own clock
/// (rule S12). Made with [`Lease::new`]; the public fields may be assigned afterwards.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Lease {
    /// Who holds it, or held it last; nobody if it was placed or deposed.
    pub holder: Option<Identity>,
    /// The fence of the term it belongs to.
    pub fence: Fence,
    /// Changes with every write.
    pub version: Version,
    /// For how long its last write made it valid.
    pub duration: Duration,
    /// Given back by its holder: claimable at once.
    pub released: bool,
    /// How long it is still valid on the store's clock, zero if it has expired; never longer than `duration`. `None` if
    /// the store has no clock to show: then it is judged by watching alone.
    pub ttl: Option<Duration>,
    /// What the holder published.
    pub payload: Payload,
}

impl Lease {
    /// A lease that is not released, whose remaining time the store does not know, without a payload.
    #[must_use]
    pub fn new(
        holder: Option<Identity>,
        fence: Fence,
        version: Version,
        duration: Duration,
    ) -> Self {
        Self {
            holder,
            fence,
            version,
            duration,
            released: false,
            ttl: None,
            payload: Payload::default(),
        }
    }

    /// Whether `identity` holds it: named in it, and not given back. Says nothing about whether it is still valid.
    #[must_use]
    pub fn is_held_by(&self, identity: &Identity) -> bool {
        !self.released && self.holder.as_ref() == Some(identity)
    }
}

/// Changes with every write to a record and never repeats; what it consists of is the store's own business.
///
/// Only equality means something: an acquire succeeds if the record still carries the version that was observed.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Version(Arc<[u8]>);

impl Version {
    /// A version that consists of these bytes.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Self {
        Self(bytes.into())
    }

    /// The bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The number, if this version was made from one.
    #[must_use]
    pub fn as_u64(&self) -> Option<u64> {
        Some(u64::from_be_bytes((*self.0).try_into().ok()?))
    }
}

impl From<u64> for Version {
    fn from(number: u64) -> Self {
        Self(number.to_be_bytes().as_slice().into())
    }
}

impl fmt::Debug for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.as_u64() {
            Some(number) => write!(f, "Version({number})"),
            None => write!(f, "Version({:02x?})", self.0),
        }
    }
}

/// Why a term is over, or is about to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TermEnd {
    /// No renewal was confirmed before the deadline.
    Expired,
    /// The store gave proof that the lease is not this term's any more.
    Lost,
    /// The candidate handed over: it was asked to, or is not eligible any more.
    Resigned,
    /// The elector was shut down, or dropped.
    Shutdown,
}

impl fmt::Display for TermEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Expired => "expired",
            Self::Lost => "lost",
            Self::Resigned => "resigned",
            Self::Shutdown => "shutdown",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_a_number_only_if_it_was_made_from_one() {
        let (number, bytes) = (Version::from(7), Version::from_bytes(&[0xab, 1]));
        assert_eq!((number.as_u64(), bytes.as_u64()), (Some(7), None));
        assert_eq!(bytes.as_bytes(), [0xab, 1]);
        assert_eq!(format!("{number:?} {bytes:?}"), "Version(7) Version([ab, 01])");
        assert_ne!(number, bytes);
    }

    #[test]
    fn the_end_of_a_term_is_named_by_a_word() {
        use TermEnd::{Expired, Lost, Resigned, Shutdown};

        let words = [Expired, Lost, Resigned, Shutdown].map(|end| end.to_string());
        assert_eq!(words, ["expired", "lost", "resigned", "shutdown"]);
    }
}
