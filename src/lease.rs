//! What stands in the store: names, identities, fences, and the lease itself.

use std::{convert::Infallible, fmt, num::ParseIntError, str::FromStr, sync::Arc, time::Duration};

/// The most bytes that an election's name, an identity or an identity's label may have.
pub const MAX_NAME_BYTES: usize = 255;
/// The most bytes that a payload may have.
pub const MAX_PAYLOAD_BYTES: usize = 64 * 1024;

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

fn checked_name(what: &'static str, text: &str) -> Result<(), InvalidValue> {
    if text.is_empty() {
        return Err(InvalidValue::Empty { what });
    }
    if text.len() > MAX_NAME_BYTES {
        return Err(InvalidValue::TooLong { what, bytes: text.len(), limit: MAX_NAME_BYTES });
    }
    match text.bytes().position(|byte| byte == 0) {
        Some(at) => Err(InvalidValue::Nul { what, at }),
        None => Ok(()),
    }
}

/// Two string newtypes share everything but their meaning.
macro_rules! name {
    ($(#[$docs:meta])* $name:ident, $what:literal) => {
        $(#[$docs])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Arc<str>);

        impl $name {
            #[doc = concat!("Checks the text and makes it an ", $what, ".")]
            ///
            /// # Errors
            /// [`InvalidValue`] unless it has 1 to 255 bytes and no NUL character.
            pub fn new(text: impl AsRef<str>) -> Result<Self, InvalidValue> {
                let text = text.as_ref();
                checked_name($what, text)?;
                Ok(Self(text.into()))
            }

            /// The text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl TryFrom<&str> for $name {
            type Error = InvalidValue;

            fn try_from(text: &str) -> Result<Self, InvalidValue> {
                Self::new(text)
            }
        }

        impl TryFrom<String> for $name {
            type Error = InvalidValue;

            fn try_from(text: String) -> Result<Self, InvalidValue> {
                Self::new(text)
            }
        }

        impl TryFrom<&String> for $name {
            type Error = InvalidValue;

            fn try_from(text: &String) -> Result<Self, InvalidValue> {
                Self::new(text)
            }
        }

        impl From<&$name> for $name {
            fn from(name: &$name) -> Self {
                name.clone()
            }
        }

        impl FromStr for $name {
            type Err = InvalidValue;

            fn from_str(text: &str) -> Result<Self, InvalidValue> {
                Self::new(text)
            }
        }

        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{:?}", &*self.0)
            }
        }
    };
}

name! {
    /// What is contended for. Elections with different names have nothing to do with each other, also in one table.
    ///
    /// 1 to 255 bytes of UTF-8 without NUL, compared byte by byte: `Foo`, `foo` and `foo ` are three elections.
    ///
    /// ```
    /// use tenure::ElectionName;
    ///
    /// assert_eq!(ElectionName::new("invoice-reconciler")?.as_str(), "invoice-reconciler");
    /// assert!(ElectionName::new("").is_err());
    /// # Ok::<(), tenure::InvalidValue>(())
    /// ```
    ElectionName, "election name"
}

name! {
    /// Names one candidate, that is, one elector that was built: never a machine, nor a process over its restarts.
    ///
    /// The builder draws it as `hostname-pid-random`, with 128 random bits from the operating system (rule S11): two
    /// candidates with one identity would both believe that the lease is theirs.
    Identity, "identity"
}

/// The number of a term. It rises strictly from term to term of an election, whoever leads, and is never used twice
/// (rule S5); not necessarily by one.
///
/// Hand it to whatever the leader writes to, and let the receiving side refuse numbers lower than the highest it has
/// seen: that alone stops a write of a leader that was frozen between its last check and the write.
///
/// It lies in `1..=i64::MAX`, so that it fits every database's integer; `i64::from` and `u64::from` never fail.
///
/// ```
/// use tenure::Fence;
///
/// let fence: Fence = "42".parse()?;
/// assert_eq!(i64::from(fence), 42);
/// assert!(Fence::try_from(0_i64).is_err());
/// # Ok::<(), tenure::InvalidValue>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fence(i64);

impl Fence {
    /// The lowest fence.
    pub const MIN: Self = Self(1);

    /// The fence of a new term (rule S5): above the record's and above the floor, and not below the store's wall clock
    /// in milliseconds, a number here and never read as a time. `None` if there is no higher number left.
    ///
    /// Stores that compute in SQL say the same there; this is for those that compute here.
    #[must_use]
    pub fn next(record: Option<Self>, floor: Option<Self>, wall_clock_ms: i64) -> Option<Self> {
        let above = record.max(floor).map_or(0, |fence| fence.0);
        Some(Self(above.checked_add(1)?.max(wall_clock_ms)))
    }
}

impl TryFrom<i64> for Fence {
    type Error = InvalidValue;

    fn try_from(value: i64) -> Result<Self, InvalidValue> {
        if value < 1 {
            return Err(InvalidValue::FenceOutOfRange { value: value.into() });
        }
        Ok(Self(value))
    }
}

impl TryFrom<u64> for Fence {
    type Error = InvalidValue;

    fn try_from(value: u64) -> Result<Self, InvalidValue> {
        let out_of_range = |_| InvalidValue::FenceOutOfRange { value: value.into() };
        i64::try_from(value).map_err(out_of_range)?.try_into()
    }
}

impl From<Fence> for i64 {
    fn from(fence: Fence) -> Self {
        fence.0
    }
}

impl From<Fence> for u64 {
    fn from(fence: Fence) -> Self {
        fence.0.unsigned_abs()
    }
}

impl FromStr for Fence {
    type Err = InvalidValue;

    fn from_str(text: &str) -> Result<Self, InvalidValue> {
        let not_a_number = |source| InvalidValue::FenceNotANumber { text: text.to_owned(), source };
        text.parse::<i64>().map_err(not_a_number)?.try_into()
    }
}

impl fmt::Display for Fence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
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

/// So that `TryInto<ElectionName>` also takes a name that needs no checking.
impl From<Infallible> for InvalidValue {
    fn from(never: Infallible) -> Self {
        match never {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_refused_with_what_is_wrong() {
        let long = "é".repeat(128);
        assert_eq!(ElectionName::new(""), Err(InvalidValue::Empty { what: "election name" }));
        assert_eq!(
            Identity::new(&long),
            Err(InvalidValue::TooLong { what: "identity", bytes: 256, limit: 255 })
        );
        assert_eq!(
            ElectionName::new("a\0b"),
            Err(InvalidValue::Nul { what: "election name", at: 1 })
        );
        assert!(ElectionName::new(&long[..254]).is_ok());
    }

    #[test]
    fn fences_are_positive_and_fit_every_database() {
        assert!(Fence::try_from(0_u64).is_err());
        assert!(Fence::try_from(-1_i64).is_err());
        assert!(Fence::try_from(u64::MAX).is_err());
        assert!("9223372036854775808".parse::<Fence>().is_err());
        let highest = Fence::try_from(i64::MAX).unwrap();
        assert_eq!(u64::from(highest), i64::MAX as u64);
        assert_eq!("7".parse::<Fence>().unwrap().to_string(), "7");
    }

    #[test]
    fn a_new_fence_is_above_everything_known() {
        let fence = |n: i64| Fence::try_from(n).unwrap();
        assert_eq!(Fence::next(None, None, 0), Some(Fence::MIN));
        assert_eq!(Fence::next(Some(fence(4)), None, 0), Some(fence(5)));
        assert_eq!(Fence::next(Some(fence(4)), Some(fence(9)), 0), Some(fence(10)));
        assert_eq!(Fence::next(Some(fence(4)), None, 1_000), Some(fence(1_000)));
        assert_eq!(Fence::next(Some(fence(i64::MAX)), None, 0), None);
    }

    #[test]
    fn payloads_hold_any_bytes_up_to_the_limit() {
        assert!(Payload::from(vec![0; MAX_PAYLOAD_BYTES]).checked().is_ok());
        assert!(Payload::from(vec![0; MAX_PAYLOAD_BYTES + 1]).checked().is_err());
        assert_eq!(Payload::from(""), Payload::default());
    }
}
