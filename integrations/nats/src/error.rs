//! Which failures pass by themselves, and what to do about those that don't.

use std::{error::Error as _, fmt, io, time::Duration};

use async_nats::{ConnectErrorKind, RequestErrorKind};
use serde::Deserialize;
use tenure::store::{
    StoreError,
    StoreErrorKind::{self, Fatal, Transient},
};

use crate::{bucket::BucketError, link::Source, value::ValueError};

/// What NATS, the driver, or a look at the bucket said: the source of every [`StoreError`] that one of them caused.
///
#[doc = include_str!("errors.md")]
///
/// ```
/// use std::error::Error;
/// use tenure::StoreError;
/// use tenure_nats::{BucketError, NatsError};
///
/// fn needs_its_bucket(error: &StoreError) -> bool {
///     let cause = error.source().and_then(|source| source.downcast_ref::<NatsError>());
///     matches!(cause, Some(NatsError::Bucket(BucketError::Missing)))
/// }
/// # assert!(!needs_its_bucket(&StoreError::transient("of another kind")));
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NatsError {
    /// No connection could be made.
    #[error("no connection could be made")]
    Connect(#[from] async_nats::ConnectError),
    /// The credentials could not be read.
    #[error("the file of credentials cannot be read")]
    Credentials(#[source] io::Error),
    /// There is no connection; nothing was sent.
    #[error("the connection is down")]
    Disconnected,
    /// There was no reply in time.
    #[error("there was no reply within {0:?}")]
    NoReply(Duration),
    /// The request was not answered.
    #[error("the request failed")]
    Request(#[from] async_nats::RequestError),
    /// The server has no JetStream.
    #[error("the server has no JetStream")]
    NoJetStream,
    /// The server does not permit the request, or its reply.
    #[error("{0}")]
    Refused(String),
    /// JetStream refused the request.
    #[error("{0}")]
    JetStream(Refusal),
    /// The reply is not one that JetStream gives.
    #[error("the reply cannot be read")]
    Reply(#[from] serde_json::Error),
    /// The bucket is not one that can carry elections.
    #[error(transparent)]
    Bucket(#[from] BucketError),
    /// What stands under the election's key is not a record.
    #[error("what stands under the key {key:?} is not a record")]
    Value {
        /// The key.
        key: String,
        /// What is wrong with it.
        source: ValueError,
    },
    /// The record has the highest fence there is.
    #[error("there is no higher fence")]
    LastFence,
    /// The operating system has no random bits.
    #[error("there are no random bits")]
    NoRandomness(#[from] getrandom::Error),
    /// Another request to create the bucket did not come to its end.
    #[error("the bucket is still being created")]
    BeingCreated,
    /// Somebody else kept writing in between.
    #[error("it was changed by somebody else, again and again")]
    Contended,
}

/// JetStream's own words.
#[derive(Clone, Debug, Deserialize)]
#[non_exhaustive]
pub struct Refusal {
    /// The kind of error, as in HTTP.
    pub code: u16,
    /// Which error it is.
    #[serde(default)]
    pub err_code: u64,
    /// What it says.
    #[serde(default)]
    pub description: String,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { code, err_code, description } = self;
        write!(f, "{description} (JetStream error {err_code}, {code})")
    }
}

impl NatsError {
    pub(crate) fn reply(what: &'static str) -> Self {
        Self::Reply(serde::de::Error::custom(what))
    }

    /// JetStream's number of the error, if it was JetStream that refused.
    #[must_use]
    pub fn jetstream_code(&self) -> Option<u64> {
        match self {
            Self::JetStream(refusal) => Some(refusal.err_code),
            _ => None,
        }
    }

    /// Whether the connection broke, at the latest while the request was under way. That may be tried again on a fresh
    /// one within the same call: nothing that tenure sends does harm if it is executed twice.
    pub(crate) fn is_disconnect(&self) -> bool {
        match self {
            Self::Disconnected => true,
            Self::Request(error) => error.kind() == RequestErrorKind::Other,
            _ => false,
        }
    }

    /// Whether the server has answered, so that its connection is fit to be used again.
    pub(crate) fn is_answer(&self) -> bool {
        match self {
            Self::NoJetStream
            | Self::JetStream(_)
            | Self::Reply(_)
            | Self::Bucket(_)
            | Self::Value { .. }
            | Self::LastFence
            | Self::NoRandomness(_)
            | Self::BeingCreated
            | Self::Contended => true,
            Self::Request(error) => is_no_responders(error),
            _ => false,
        }
    }

    /// Whether there is no such bucket.
    pub(crate) fn is_missing_stream(&self) -> bool {
        self.jetstream_code() == Some(10059)
    }

    /// Whether the bucket takes nothing any more.
    pub(crate) fn is_sealed(&self) -> bool {
        self.jetstream_code() == Some(10109)
    }

    /// Whether a server may say this because somebody else's request to create the same bucket is under way: what there is
    /// of it has no time of creation, takes no messages, or is taken for another stream with the same subjects or files.
    pub(crate) fn may_be_due_to_a_creation(&self) -> bool {
        matches!(self, Self::BeingCreated)
            || matches!(self.jetstream_code(), Some(10049 | 10065))
            || self.is_no_responders()
    }

    /// Whether nobody takes what is sent to this subject.
    pub(crate) fn is_no_responders(&self) -> bool {
        matches!(self, Self::Request(error) if is_no_responders(error))
    }
}

fn is_no_responders(error: &async_nats::RequestError) -> bool {
    error.kind() == RequestErrorKind::NoResponders
}

/// What JetStream's numbers mean here. All that is not listed is judged by its kind.
#[rustfmt::skip] // a table
const BY_CODE: &[(u64, StoreErrorKind, &str)] = &[
    (10002, Fatal,     "the account has no storage left for JetStream"),
    (10004, Transient, "the cluster is not complete"),
    (10005, Fatal,     "there are not enough servers for this many replicas: see `with_replicas()`"),
    (10006, Transient, "the cluster is not active just now"),
    (10008, Transient, "JetStream is not available just now"),
    (10009, Transient, "the cluster has no leader just now"),
    (10023, Fatal,     "the server has no storage left for JetStream"),
    (10026, Fatal,     "the account may have no more consumers, which hints need: see `without_hints()`"),
    (10027, Fatal,     "the account may have no more streams"),
    (10028, Fatal,     "the account has no memory left for JetStream"),
    (10035, Fatal,     "JetStream is not enabled for this account"),
    (10039, Fatal,     "JetStream is not enabled for this account"),
    (10047, Fatal,     "the server has no storage left for JetStream"),
    (10052, Fatal,     "the server refuses the bucket's settings"),
    (10054, Fatal,     "the bucket refuses a value of this size"),
    (10059, Fatal,     "the bucket is missing: call `ensure_schema()`"),
    (10065, Fatal,     "another stream has the bucket's subjects: choose another name by `with_bucket()`"),
    (10074, Fatal,     "this server keeps one replica: see `with_replicas()`"),
    (10076, Fatal,     "JetStream is not enabled on this server"),
    (10077, Fatal,     "the bucket is full, or the server cannot write its files"),
    (10109, Fatal,     "the bucket is sealed: its elections were moved to another one, or somebody froze it"),
    (10113, Fatal,     "the account wants a limit of bytes on every bucket: see `with_max_bytes()`"),
    (10122, Fatal,     "the account allows no bucket of this size: see `with_max_bytes()`"),
];

/// Makes a [`StoreError`] of what went wrong while `attempt` ("renew the lease of ..") was under way.
pub(crate) fn store_error(attempt: &str, source: &Source, error: NatsError) -> StoreError {
    let (kind, advice) = judge(&error);
    let advice = advice.replace("{server}", &source.server());
    StoreError::new(kind, format!("could not {attempt}: {advice}")).with_source(error)
}

fn judge(error: &NatsError) -> (StoreErrorKind, &str) {
    match error {
        NatsError::Connect(error) if is_tls(error) => judge_connect(ConnectErrorKind::Tls),
        NatsError::Connect(error) => judge_connect(error.kind()),
        NatsError::Credentials(_) => (Fatal, "the file of credentials cannot be read"),
        NatsError::Disconnected => {
            (Transient, "there is no connection to {server}; nothing was sent")
        }
        NatsError::NoReply(_) => (
            Transient,
            "no answer from {server} in time; if this lasts, look also at the permissions of the user",
        ),
        NatsError::Request(error) => judge_request(error.kind()),
        NatsError::Refused(_) => (
            Fatal,
            "the user lacks a permission: the crate's documentation lists the subjects it needs",
        ),
        NatsError::NoJetStream => (Fatal, "JetStream is not enabled on {server}"),
        NatsError::JetStream(refusal) => judge_refusal(refusal),
        NatsError::Reply(_) => (Fatal, "the reply is not one of JetStream"),
        NatsError::Bucket(error) => (Fatal, error.advice()),
        NatsError::Value { .. } => (
            Fatal,
            "its key holds what tenure did not write, and is left as it is: delete the key, or choose another bucket by \
             `with_bucket()`",
        ),
        NatsError::LastFence => (Fatal, "its fence is the highest there is"),
        NatsError::NoRandomness(_) => (Fatal, "the operating system gives no random bits"),
        NatsError::BeingCreated => (Transient, "somebody else is creating it just now"),
        NatsError::Contended => (Transient, "somebody else changed it again and again"),
    }
}

/// A handshake that failed is an error of I/O to the driver.
fn is_tls(error: &async_nats::ConnectError) -> bool {
    let cause = error.source().and_then(|cause| cause.downcast_ref::<io::Error>());
    cause.and_then(io::Error::get_ref).is_some_and(|cause| cause.is::<async_nats::rustls::Error>())
}

/// What the driver's kinds of failed connections mean. All that is not listed passes.
#[rustfmt::skip] // a table
const BY_CONNECT_KIND: &[(ConnectErrorKind, StoreErrorKind, &str)] = &[
    (ConnectErrorKind::AuthorizationViolation, Fatal, "the server refuses the login: the user, the password or the token is wrong"),
    (ConnectErrorKind::Authentication,         Fatal, "the key or the credentials are not valid"),
    (ConnectErrorKind::Tls,                    Fatal, "no encrypted connection: look at the certificates"),
    (ConnectErrorKind::ServerParse,            Fatal, "the server gave an address that is none"),
];

fn judge_connect(kind: ConnectErrorKind) -> (StoreErrorKind, &'static str) {
    let known = BY_CONNECT_KIND.iter().find(|(known, ..)| *known == kind);
    let unreachable = "{server} cannot be reached: look at the URL, and whether it runs";
    known.map_or((Transient, unreachable), |&(_, kind, advice)| (kind, advice))
}

/// The same of requests that failed.
#[rustfmt::skip] // a table
const BY_REQUEST_KIND: &[(RequestErrorKind, StoreErrorKind, &str)] = &[
    (RequestErrorKind::NoResponders,       Transient, "JetStream does not answer: it has no leader just now, or is not enabled for this account"),
    (RequestErrorKind::MaxPayloadExceeded, Fatal,     "the server refuses messages of this size: raise its `max_payload`"),
    (RequestErrorKind::InvalidSubject,     Fatal,     "the bucket's name is not valid"),
];

fn judge_request(kind: RequestErrorKind) -> (StoreErrorKind, &'static str) {
    let known = BY_REQUEST_KIND.iter().find(|(known, ..)| *known == kind);
    let broken = "the conversation with {server} broke off";
    known.map_or((Transient, broken), |&(_, kind, advice)| (kind, advice))
}

fn judge_refusal(refusal: &Refusal) -> (StoreErrorKind, &'static str) {
    let known = BY_CODE.iter().find(|(code, ..)| *code == refusal.err_code);
    match known {
        Some(&(_, kind, advice)) => (kind, advice),
        None if refusal.code < 500 => (Fatal, "JetStream refuses the request"),
        None => (Transient, "JetStream failed"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_code_is_listed_twice() {
        assert!(BY_CODE.windows(2).all(|pair| pair[0].0 < pair[1].0));
    }

    /// Write what this expects into the file, and read it.
    #[test]
    fn the_documents_table_is_that_of_the_code() {
        let rows = BY_CODE.iter().map(|&(code, kind, advice)| {
            let passes = if kind == Fatal { "no" } else { "yes" };
            format!("| {code} | {passes} | {advice} |\n")
        });
        let expected: String = rows.collect();
        let documented = include_str!("errors.md");
        assert!(documented.contains(&expected), "expected in errors.md:\n{expected}");
    }

    #[test]
    fn what_passes_is_told_from_what_someone_must_mend() {
        let kind = |code, err_code| {
            judge_refusal(&Refusal { code, err_code, description: String::new() }).0
        };
        assert_eq!(kind(503, 10008), Transient);
        assert_eq!(kind(503, 10077), Fatal);
        assert_eq!(kind(500, 1), Transient);
        assert_eq!(kind(400, 1), Fatal);
        assert_eq!(judge(&NatsError::Disconnected).0, Transient);
        assert_eq!(judge(&NatsError::LastFence).0, Fatal);
        assert_eq!(judge(&NatsError::NoRandomness(getrandom::Error::UNSUPPORTED)).0, Fatal);
        assert_eq!(judge_connect(ConnectErrorKind::Dns).0, Transient);
        assert_eq!(judge_connect(ConnectErrorKind::Tls).0, Fatal);
        assert_eq!(judge_request(RequestErrorKind::TimedOut).0, Transient);
        assert_eq!(judge_request(RequestErrorKind::InvalidSubject).0, Fatal);
    }

    #[test]
    fn only_a_request_that_broke_off_is_worth_another_connection() {
        let request = |kind| NatsError::Request(async_nats::RequestError::from(kind));
        assert!(request(RequestErrorKind::Other).is_disconnect());
        assert!(!request(RequestErrorKind::NoResponders).is_disconnect());
        assert!(request(RequestErrorKind::NoResponders).is_answer());
        assert!(NatsError::Disconnected.is_disconnect() && !NatsError::LastFence.is_disconnect());
    }

    #[test]
    fn a_refusal_is_told_with_its_numbers() {
        let description = "stream not found".to_owned();
        let refusal = Refusal { code: 404, err_code: 10059, description };
        assert_eq!(refusal.to_string(), "stream not found (JetStream error 10059, 404)");
    }
}
