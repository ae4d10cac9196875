//! How a record is written under its key.
//!
//! A value is JSON. Format 1:
//!
//! ```json
//! {"tenure": 1, "holder": "web-1-42-9f3a", "fence": 1790000000000, "settled": true,
//!  "duration_us": 15000000, "payload": "aHR0cHM6Ly9h", "released": false, "nonce": "5f0c7d1e90ab34c2"}
//! ```
//!
//! - `tenure`: the number of the format. Fields may be added to a format: those that it does not know, a reader ignores,
//!   and a writer leaves as they were.
//! - `holder`: who holds the lease, or `null`.
//! - `fence`, `settled`: the fence. A value that is not settled is that of an acquire, which could not know when it would
//!   be stored: its fence is the greater of `fence` and the time at which the server stored it, in milliseconds. Whoever
//!   reads it comes to the same number; and whatever is written on top of it carries that number, settled.
//! - `duration_us`: for how long the lease is valid, in microseconds.
//! - `payload`: any bytes, in base64.
//! - `released`: whether it was given back.
//! - `nonce`: drawn anew for each write. Together with the revision it is the record's version, so that none comes twice,
//!   also if the stream was restored from a backup and counts on from there.

use std::time::Duration;

use base64::{Engine, prelude::BASE64_STANDARD};
use serde::{Deserialize, Serialize};
use serde_json::Map;
use tenure::{Fence, Identity, InvalidValue, Lease, Payload, Version};

/// The one that is written.
const FORMAT: u32 = 1;

/// Why what stands under a key is not a record.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ValueError {
    /// It is not JSON, or lacks a field.
    #[error("it is not a record of tenure")]
    Json(#[from] serde_json::Error),
    /// A later version of tenure wrote it.
    #[error("it has format {found}, and this version of tenure reads format {FORMAT}")]
    Format {
        /// The number of its format.
        found: u32,
    },
    /// The payload is not base64.
    #[error("its payload is not base64")]
    Payload(#[from] base64::DecodeError),
    /// A name or a fence is not one.
    #[error("a field of it is not valid")]
    Field(#[from] InvalidValue),
}

/// A record, and where in the stream it was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Record {
    pub(crate) revision: u64,
    pub(crate) holder: Option<Identity>,
    pub(crate) fence: Fence,
    pub(crate) duration: Duration,
    pub(crate) payload: Payload,
    pub(crate) released: bool,
    pub(crate) nonce: String,
    /// What a later version of tenure has added.
    pub(crate) added: Map<String, serde_json::Value>,
}

impl Record {
    pub(crate) fn lease(&self) -> Lease {
        let version = [&self.revision.to_be_bytes(), self.nonce.as_bytes()].concat();
        let version = Version::from_bytes(&version);
        let mut lease = Lease::new(self.holder.clone(), self.fence, version, self.duration);
        lease.released = self.released;
        lease.payload = self.payload.clone();
        lease
    }

    /// Whether the term of this holder and fence goes on in it.
    pub(crate) fn is_term(&self, holder: &Identity, fence: Fence) -> bool {
        !self.released && self.holder.as_ref() == Some(holder) && self.fence == fence
    }

    /// Its value, with the fence that it has.
    pub(crate) fn settled(&self) -> Vec<u8> {
        self.encode(true)
    }

    /// Its value, with a fence that is also no lower than the time at which it will be stored.
    pub(crate) fn unsettled(&self) -> Vec<u8> {
        self.encode(false)
    }

    /// Reads the value that was stored as this revision, at this time. Never panics, whatever the bytes are.
    pub(crate) fn decode(bytes: &[u8], revision: u64, stored_ms: i64) -> Result<Self, ValueError> {
        let Format { tenure } = serde_json::from_slice(bytes)?;
        if tenure != FORMAT {
            return Err(ValueError::Format { found: tenure });
        }
        let value: Value = serde_json::from_slice(bytes)?;
        let fence = if value.settled { value.fence } else { value.fence.max(stored_ms) };
        Ok(Self {
            revision,
            holder: value.holder.map(Identity::new).transpose()?,
            fence: Fence::try_from(fence)?,
            duration: Duration::from_micros(value.duration_us),
            payload: Payload::from(BASE64_STANDARD.decode(&value.payload)?),
            released: value.released,
            nonce: value.nonce,
            added: value.added,
        })
    }

    fn encode(&self, settled: bool) -> Vec<u8> {
        // Rounded up: never shorter than what was asked.
        let duration = self.duration.as_nanos().div_ceil(1_000);
        let value = Value {
            tenure: FORMAT,
            holder: self.holder.as_ref().map(|holder| holder.as_str().to_owned()),
            fence: self.fence.into(),
            settled,
            duration_us: u64::try_from(duration).unwrap_or(u64::MAX),
            payload: BASE64_STANDARD.encode(self.payload.as_bytes()),
            released: self.released,
            nonce: self.nonce.clone(),
            added: self.added.clone(),
        };
        serde_json::to_vec(&value).expect("texts, numbers and truth values can be written")
    }
}

/// Whether these bytes are a record that was given back.
pub(crate) fn is_release(bytes: &[u8]) -> bool {
    #[derive(Deserialize)]
    struct Released {
        released: bool,
    }
    serde_json::from_slice(bytes).is_ok_and(|Released { released }| released)
}

/// Looked at before anything else, since another format may have other fields.
#[derive(Deserialize)]
struct Format {
    tenure: u32,
}

#[derive(Deserialize, Serialize)]
struct Value {
    tenure: u32,
    holder: Option<String>,
    fence: i64,
    settled: bool,
    duration_us: u64,
    payload: String,
    released: bool,
    nonce: String,
    #[serde(flatten)]
    added: Map<String, serde_json::Value>,
}

/// What has to hold for any bytes under a key: if they are a record at all, it survives being written, and so does what a
/// later version has added to it. `cargo xtask fuzz` looks for bytes that break it, and a test repeats what it has found.
#[cfg(any(test, fuzzing))]
#[allow(clippy::unwrap_used, missing_docs, unreachable_pub)] // a test, though one that a fuzzer calls
pub fn check_value(bytes: &[u8]) {
    let added = |value: &[u8]| {
        let mut value: Map<String, serde_json::Value> = serde_json::from_slice(value).unwrap();
        value.retain(|key, _| !FIELDS.contains(&key.as_str()));
        value
    };
    for stored_ms in [i64::MIN, 1_790_000_000_000, i64::MAX] {
        let Ok(record) = Record::decode(bytes, 7, stored_ms) else { return };
        for written in [record.settled(), record.unsettled()] {
            assert_eq!(Record::decode(&written, 7, i64::MIN).unwrap(), record);
            assert_eq!(added(&written), added(bytes));
            assert_eq!(is_release(&written), record.released);
        }
        assert_eq!(is_release(bytes), record.released);
    }
}

#[cfg(any(test, fuzzing))]
const FIELDS: [&str; 8] =
    ["tenure", "holder", "fence", "settled", "duration_us", "payload", "released", "nonce"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_fuzzer_has_found_is_kept_or_refused() {
        let corpus = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus/nats_value");
        let files: Vec<_> = std::fs::read_dir(corpus).unwrap().map(Result::unwrap).collect();
        assert!((1..=80).contains(&files.len()), "{} files in {corpus}", files.len());
        for file in files {
            eprintln!("{}", file.path().display());
            check_value(&std::fs::read(file.path()).unwrap());
        }
    }

    fn record() -> Record {
        Record {
            revision: 7,
            holder: Some(Identity::new("é").unwrap()),
            fence: Fence::try_from(40_i64).unwrap(),
            duration: Duration::from_secs(15),
            payload: Payload::from(vec![0, 0xff]),
            released: false,
            nonce: "5f".to_owned(),
            added: Map::new(),
        }
    }

    #[test]
    fn a_record_comes_back_as_it_was_written() {
        let mut record = record();
        assert_eq!(Record::decode(&record.settled(), 7, 1_000).unwrap(), record);
        record.released = true;
        record.holder = None;
        assert_eq!(Record::decode(&record.settled(), 7, 1_000).unwrap(), record);
        assert!(is_release(&record.settled()));
    }

    #[test]
    fn the_fence_of_an_acquire_is_settled_by_when_it_was_stored() {
        let fence = |ms| i64::from(Record::decode(&record().unsettled(), 7, ms).unwrap().fence);
        assert_eq!(fence(1_000), 1_000);
        assert_eq!(fence(-5), 40);
    }

    #[test]
    fn durations_are_rounded_up_to_microseconds() {
        let mut record = record();
        record.duration = Duration::from_nanos(1_001);
        let read = Record::decode(&record.settled(), 7, 0).unwrap();
        assert_eq!(read.duration, Duration::from_micros(2));
        record.duration = Duration::MAX;
        Record::decode(&record.settled(), 7, 0).unwrap();
    }

    #[test]
    fn fields_that_are_not_known_are_left_as_they_were() {
        let mut value: serde_json::Value = serde_json::from_slice(&record().settled()).unwrap();
        value["colour"] = "blue".into();
        let read = Record::decode(&serde_json::to_vec(&value).unwrap(), 7, 0).unwrap();
        assert_eq!(read.lease(), record().lease());
        let written: serde_json::Value = serde_json::from_slice(&read.settled()).unwrap();
        assert_eq!(written, value);
    }

    #[test]
    fn a_version_is_that_of_one_write() {
        let (one, mut other) = (record(), record());
        other.nonce = "60".to_owned();
        assert_ne!(one.lease().version, other.lease().version);
        other = Record { revision: 8, ..record() };
        assert_ne!(one.lease().version, other.lease().version);
    }

    #[test]
    fn a_later_format_is_named_whatever_its_fields_are() {
        let read = Record::decode(br#"{"tenure": 2, "fence": "forty"}"#, 7, 0);
        assert!(matches!(read, Err(ValueError::Format { found: 2 })), "{read:?}");
    }

    #[test]
    fn what_is_not_a_record_is_an_error_and_no_panic() {
        let whole = record().settled();
        for end in 0..whole.len() {
            Record::decode(&whole[..end], 7, 0).unwrap_err();
        }
        for at in 0..whole.len() {
            for byte in [0, b'"', b'9', b'}', 0xff] {
                let mut changed = whole.clone();
                changed[at] = byte;
                // Whichever it is, it is told.
                let _ = Record::decode(&changed, 7, 0);
            }
        }
        for bytes in [&b"web-1"[..], b"", b"null", b"[]", b"{}", b"\xff", b"1e999"] {
            Record::decode(bytes, 7, i64::MAX).unwrap_err();
            assert!(!is_release(bytes));
        }
        let value = |field: &str, value: serde_json::Value| {
            let mut record: serde_json::Value = serde_json::from_slice(&whole).unwrap();
            record[field] = value;
            Record::decode(&serde_json::to_vec(&record).unwrap(), 7, 0)
        };
        value("holder", "".into()).unwrap_err();
        value("holder", "a\0b".into()).unwrap_err();
        value("fence", 0.into()).unwrap_err();
        value("fence", (-1).into()).unwrap_err();
        value("duration_us", (-1).into()).unwrap_err();
        value("payload", "*".into()).unwrap_err();
    }
}
