//! Under which term a request was made.

use http::{HeaderMap, HeaderName, HeaderValue};
use tenure::{ElectionName, Fence, InvalidValue, Term};

use crate::{ELECTION, FENCE, percent};

/// The term under which a request was made, in two headers: [`ELECTION`] names the election, [`FENCE`] the term.
///
/// A service that stores what leaders send it refuses requests whose fence is lower than the highest it has seen: they
/// are of a leader that was frozen, or held up in the network, while another one took over.
///
/// ```
/// use http::HeaderMap;
/// use tenure::{ElectionName, Fence};
/// use tenure_http::{FENCE, Stamp};
///
/// let stamp = Stamp::new(ElectionName::new("billing")?, Fence::try_from(42_u64)?);
/// let mut headers = HeaderMap::new();
/// stamp.write(&mut headers);
/// assert_eq!(headers[FENCE], "42");
/// assert_eq!(Stamp::read(&headers)?, Some(stamp));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Stamp {
    election: ElectionName,
    fence: Fence,
}

impl Stamp {
    /// Of the term with this fence.
    #[must_use]
    pub fn new(election: ElectionName, fence: Fence) -> Self {
        Self { election, fence }
    }

    /// Of this term.
    #[must_use]
    pub fn of(term: &Term) -> Self {
        Self::new(term.election().clone(), term.fence())
    }

    /// The election.
    #[must_use]
    pub fn election(&self) -> &ElectionName {
        &self.election
    }

    /// The term's number.
    #[must_use]
    pub fn fence(&self) -> Fence {
        self.fence
    }

    /// Puts it into the headers of a request, in place of one that is there.
    pub fn write(&self, headers: &mut HeaderMap) {
        headers.insert(ELECTION, percent::encode(self.election.as_str()));
        headers.insert(FENCE, HeaderValue::from(i64::from(self.fence)));
    }

    /// Reads it from the headers of a request; `None` if it has none.
    ///
    /// # Errors
    /// [`StampError`] if what is there is not exactly one stamp.
    pub fn read(headers: &HeaderMap) -> Result<Option<Self>, StampError> {
        let election = only(headers, &ELECTION)?;
        let fence = only(headers, &FENCE)?;
        let (Some(election), Some(fence)) = (election, fence) else {
            return if election.is_none() && fence.is_none() {
                Ok(None)
            } else {
                Err(StampError::Incomplete)
            };
        };
        let election = percent::decode(election).ok_or(StampError::NotText)?;
        let fence = fence.to_str().map_err(|_| StampError::NotText)?;
        Ok(Some(Self::new(ElectionName::new(election)?, fence.parse()?)))
    }
}

/// The value of a header that may not be repeated: which of two would be meant?
fn only<'a>(
    headers: &'a HeaderMap,
    name: &HeaderName,
) -> Result<Option<&'a HeaderValue>, StampError> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (value, None) => Ok(value),
        _ => Err(StampError::Repeated),
    }
}

/// Headers that are no stamp.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StampError {
    /// One of the two headers is missing.
    #[error("only one of the headers `tenure-election` and `tenure-fence` is there")]
    Incomplete,
    /// One of the headers is there more than once.
    #[error("`tenure-election` or `tenure-fence` is there more than once")]
    Repeated,
    /// A value is not percent-encoded UTF-8.
    #[error("`tenure-election` or `tenure-fence` is no text")]
    NotText,
    /// A value is no name of an election, or no fence.
    #[error("`tenure-election` or `tenure-fence` is not valid")]
    Invalid(#[from] InvalidValue),
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(headers: &[(&HeaderName, &'static str)]) -> Result<Option<Stamp>, StampError> {
        let mut map = HeaderMap::new();
        for &(name, value) in headers {
            map.append(name, HeaderValue::from_static(value));
        }
        Stamp::read(&map)
    }

    #[test]
    fn names_of_all_kinds_survive_the_journey() {
        for name in ["billing", "Wähler 100 %\r\n", " ", "\u{1f41d}"] {
            let stamp = Stamp::new(ElectionName::new(name).unwrap(), Fence::MIN);
            let mut headers = HeaderMap::new();
            stamp.write(&mut headers);
            assert_eq!(Stamp::read(&headers).unwrap(), Some(stamp));
        }
    }

    #[test]
    fn writing_replaces_what_is_there() {
        let mut headers = HeaderMap::new();
        headers.append(FENCE, HeaderValue::from_static("1"));
        headers.append(FENCE, HeaderValue::from_static("2"));
        let stamp = Stamp::new(ElectionName::new("billing").unwrap(), Fence::MIN);
        stamp.write(&mut headers);
        assert_eq!(Stamp::read(&headers).unwrap(), Some(stamp));
    }

    #[test]
    fn what_is_not_exactly_one_stamp_is_none() {
        let (election, fence) = (&ELECTION, &FENCE);
        assert_eq!(read(&[]).unwrap(), None);
        assert!(matches!(read(&[(fence, "1")]), Err(StampError::Incomplete)));
        assert!(matches!(read(&[(election, "billing")]), Err(StampError::Incomplete)));
        let twice = read(&[(election, "billing"), (fence, "1"), (fence, "2")]);
        assert!(matches!(twice, Err(StampError::Repeated)));
        assert!(matches!(read(&[(election, "%ff"), (fence, "1")]), Err(StampError::NotText)));
        for wrong in ["", "0", "-1", "+-1", "1.5", "1,2", " 1", "9223372036854775808"] {
            let read = read(&[(election, "billing"), (fence, wrong)]);
            assert!(matches!(read, Err(StampError::Invalid(_))), "{wrong}");
        }
    }
}
