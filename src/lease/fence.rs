//! The numbers of terms.

use std::{fmt, str::FromStr};

use super::InvalidValue;

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

#[cfg(test)]
mod tests {
    use super::*;

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
}
