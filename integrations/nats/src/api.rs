//! What is asked of JetStream, as it is sent.
//!
//! The driver has all of this as well. What it lacks is what matters here: one deadline for a whole call, reads from the
//! stream's leader alone, configurations that are changed without losing what a later server added to them, and replies
//! of nats-server 2.9, some of which it cannot read.

use async_nats::{HeaderMap, Message, header};
use base64::{Engine, prelude::BASE64_STANDARD};
use bytes::Bytes;
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Value, json};
use time::{OffsetDateTime, format_description::well_known::Rfc3339};

use crate::{
    error::{NatsError, Refusal},
    link::Connection,
};

/// Codes of errors that are outcomes here.
mod code {
    pub(super) const NO_MESSAGE: u64 = 10037;
    pub(super) const NAME_IN_USE: u64 = 10058;
    pub(super) const NO_STREAM: u64 = 10059;
    /// The second one is that of later servers, for streams with replicas.
    pub(super) const WRONG_SEQUENCE: [u64; 2] = [10071, 10164];
}

/// When a stream was created of which the server has not got so far: the zero of its time.
const UNFINISHED: &str = "0001-01-01T00:00:00Z";

/// The part of a stream's description that is used. The configuration is kept as it came.
#[derive(Debug, Deserialize)]
pub(crate) struct StreamInfo {
    pub(crate) config: Value,
    pub(crate) created: String,
    pub(crate) state: StreamState,
    #[serde(default)]
    pub(crate) total: usize,
}

#[derive(Debug, Deserialize)]
pub(crate) struct StreamState {
    pub(crate) messages: u64,
    pub(crate) first_seq: u64,
    /// How many messages there are, by subject.
    #[serde(default)]
    pub(crate) subjects: Option<serde_json::Map<String, Value>>,
}

impl StreamInfo {
    /// When it was created, in microseconds of the server's clock; `None` while that is being done.
    pub(crate) fn created_us(&self) -> Result<Option<u64>, NatsError> {
        if self.created == UNFINISHED {
            return Ok(None);
        }
        let ns = parse_time(&self.created)?.unix_timestamp_nanos();
        let us = u64::try_from(ns / 1_000);
        us.map(Some).map_err(|_| NatsError::reply("a stream created before 1970"))
    }
}

/// The last message of a subject.
pub(crate) enum Last {
    /// There is none, or one that says that the key was deleted, as other clients of a bucket do. A write that is to
    /// come next expects this revision.
    Vacant { revision: u64 },
    /// There is one.
    Stored { revision: u64, stored_ms: i64, data: Vec<u8> },
}

impl Connection {
    /// Describes a stream, with its subjects below `filter`; `None` if there is no such stream.
    pub(crate) async fn stream_info(
        &mut self,
        stream: &str,
        filter: Option<(&str, usize)>,
    ) -> Result<Option<StreamInfo>, NatsError> {
        let request = match filter {
            None => json!({}),
            Some((filter, offset)) => json!({"subjects_filter": filter, "offset": offset}),
        };
        or_missing(self.ask(&format!("STREAM.INFO.{stream}"), &request).await, code::NO_STREAM)
    }

    /// Creates a stream. It may turn out to be there already, also with another configuration.
    pub(crate) async fn create_stream(
        &mut self,
        stream: &str,
        config: &Value,
    ) -> Result<(), NatsError> {
        let created: Result<Value, _> = self.ask(&format!("STREAM.CREATE.{stream}"), config).await;
        or_missing(created, code::NAME_IN_USE).map(drop)
    }

    pub(crate) async fn update_stream(
        &mut self,
        stream: &str,
        config: &Value,
    ) -> Result<(), NatsError> {
        self.ask(&format!("STREAM.UPDATE.{stream}"), config).await.map(|_: Value| ())
    }

    /// Has an empty stream give this number to its next message. Does nothing to a stream that has come further.
    pub(crate) async fn begin_stream_at(
        &mut self,
        stream: &str,
        revision: u64,
    ) -> Result<(), NatsError> {
        let request = json!({"seq": revision});
        self.ask(&format!("STREAM.PURGE.{stream}"), &request).await.map(|_: Value| ())
    }

    /// Has what is stored under `subject` from now on sent to `inbox`, with a sign of life now and then.
    pub(crate) async fn create_consumer(
        &mut self,
        stream: &str,
        config: Value,
    ) -> Result<(), NatsError> {
        let request = json!({"stream_name": stream, "config": config});
        self.ask(&format!("CONSUMER.CREATE.{stream}"), &request).await.map(|_: Value| ())
    }

    /// Reads the last message of a subject from the stream's leader: a replica might lag behind.
    pub(crate) async fn last(&mut self, stream: &str, subject: &str) -> Result<Last, NatsError> {
        let request = json!({"last_by_subj": subject});
        let found = self.ask(&format!("STREAM.MSG.GET.{stream}"), &request).await;
        match or_missing::<Got>(found, code::NO_MESSAGE)? {
            None => Ok(Last::Vacant { revision: 0 }),
            Some(Got { message }) => message.read(),
        }
    }

    /// Stores a message if the last one of its subject has still this revision, zero meaning that there is none. Answers
    /// the new revision, or `None` if it has another.
    pub(crate) async fn store(
        &mut self,
        stream: &str,
        subject: &str,
        expected: u64,
        data: Vec<u8>,
    ) -> Result<Option<u64>, NatsError> {
        let mut headers = HeaderMap::new();
        headers.insert(header::NATS_EXPECTED_STREAM, stream);
        headers.insert(header::NATS_EXPECTED_LAST_SUBJECT_SEQUENCE, expected.to_string());
        let reply = self.request(subject.to_owned(), Some(headers), data.into()).await?;
        match read::<Stored>(&reply) {
            Ok(Stored { seq }) => Ok(Some(seq)),
            Err(NatsError::JetStream(refusal))
                if code::WRONG_SEQUENCE.contains(&refusal.err_code) =>
            {
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    async fn ask<T: DeserializeOwned>(
        &mut self,
        api: &str,
        request: &Value,
    ) -> Result<T, NatsError> {
        let payload = Bytes::from(request.to_string());
        read(&self.request(format!("$JS.API.{api}"), None, payload).await?)
    }
}

#[derive(Deserialize)]
struct Stored {
    seq: u64,
}

#[derive(Deserialize)]
struct Got {
    message: GotMessage,
}

#[derive(Deserialize)]
struct GotMessage {
    seq: u64,
    time: String,
    #[serde(default)]
    data: String,
    #[serde(default)]
    hdrs: String,
}

impl GotMessage {
    fn read(self) -> Result<Last, NatsError> {
        let base64 = |text: &str| {
            BASE64_STANDARD.decode(text).map_err(|_| NatsError::reply("a message without base64"))
        };
        if says_deleted(&base64(&self.hdrs)?) {
            return Ok(Last::Vacant { revision: self.seq });
        }
        let stored_ns = parse_time(&self.time)?.unix_timestamp_nanos();
        let stored_ms = i64::try_from(stored_ns / 1_000_000);
        Ok(Last::Stored {
            revision: self.seq,
            stored_ms: stored_ms.map_err(|_| NatsError::reply("a message out of all time"))?,
            data: base64(&self.data)?,
        })
    }
}

/// A deletion by another client of the bucket, or a mark that the server left.
fn says_deleted(headers: &[u8]) -> bool {
    let headers = String::from_utf8_lossy(headers);
    headers.lines().any(|line| {
        let (name, value) = line.split_once(':').unwrap_or((line, ""));
        name.eq_ignore_ascii_case("Nats-Marker-Reason")
            || (name.eq_ignore_ascii_case("KV-Operation")
                && matches!(value.trim(), "DEL" | "PURGE"))
    })
}

/// Reads a reply, which is an error if it has one inside.
fn read<T: DeserializeOwned>(reply: &Message) -> Result<T, NatsError> {
    #[derive(Deserialize)]
    struct Refused {
        error: Option<Refusal>,
    }
    let refused: Refused = serde_json::from_slice(&reply.payload)?;
    match refused.error {
        Some(refusal) => Err(NatsError::JetStream(refusal)),
        None => Ok(serde_json::from_slice(&reply.payload)?),
    }
}

/// Takes one error as the answer that there is nothing.
fn or_missing<T>(answer: Result<T, NatsError>, code: u64) -> Result<Option<T>, NatsError> {
    match answer {
        Err(NatsError::JetStream(refusal)) if refusal.err_code == code => Ok(None),
        answer => answer.map(Some),
    }
}

fn parse_time(text: &str) -> Result<OffsetDateTime, NatsError> {
    OffsetDateTime::parse(text, &Rfc3339).map_err(|_| NatsError::reply("a time that is none"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deletions_of_other_clients_are_vacancies() {
        assert!(says_deleted(b"NATS/1.0\r\nKV-Operation: DEL\r\n\r\n"));
        assert!(says_deleted(b"NATS/1.0\r\nkv-operation:PURGE\r\nNats-Rollup: sub\r\n\r\n"));
        assert!(says_deleted(b"NATS/1.0\r\nNats-Marker-Reason: MaxAge\r\n\r\n"));
        assert!(!says_deleted(b"NATS/1.0\r\nKV-Operation: PUT\r\n\r\n"));
        assert!(!says_deleted(b"\xff"));
    }

    #[test]
    fn times_are_those_of_the_server() {
        let info = |created: &str| StreamInfo {
            config: json!({}),
            created: created.to_owned(),
            state: StreamState { messages: 0, first_seq: 0, subjects: None },
            total: 0,
        };
        let us = info("2026-11-29T22:21:53.751908196Z").created_us().unwrap();
        assert_eq!(us, Some(1_795_990_913_751_908));
        assert_eq!(info("0001-01-01T00:00:00Z").created_us().unwrap(), None);
        assert!(info("1969-11-29T22:21:53Z").created_us().is_err());
        assert!(info("now").created_us().is_err());
    }
}
