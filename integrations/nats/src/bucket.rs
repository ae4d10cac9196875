//! The stream behind a bucket: how it must be, and how it is made.

use std::{collections::BTreeSet, time::Duration};

use serde_json::{Value, json};
use tenure::ElectionName;

use crate::{
    api::StreamInfo,
    error::NatsError,
    key::{election_of, key_of},
    link::Connection,
    settings::{Difference, Setting, Storage},
};

/// Revisions of a bucket begin at the time of its creation, in microseconds; those of one that nobody prepared, at one.
const FIRST_REVISION: u64 = 1_000_000_000_000_000;

/// How many steps are taken to make a bucket, and how long is waited where the server was not ready for one: one second at
/// most, which a server under load was seen to need a small part of.
const TURNS: u32 = 20;
const PAUSE: Duration = Duration::from_millis(50);

const READY: &str = "leader elections of tenure";
const FILLING: &str = "tenure: elections are being moved here";

/// Why a bucket cannot carry elections.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BucketError {
    /// It is not there.
    #[error("the bucket is missing")]
    Missing,
    /// It was not made by [`ensure_schema`](crate::NatsStore::ensure_schema).
    #[error("the bucket was not prepared")]
    Unprepared,
    /// It was not made by tenure, and others use it.
    #[error("the bucket holds {messages} messages that are not tenure's")]
    InUse {
        /// How many messages there are.
        messages: u64,
    },
    /// Its settings would lose leases, or are not those that were asked for.
    #[error("the bucket's settings differ: {}", listed(.0))]
    Differs(Vec<Difference>),
    /// A migration into it has begun and not ended.
    #[error("elections are being moved into the bucket")]
    Filling,
    /// Nothing can be written to it any more.
    #[error("the bucket is sealed ({description:?})")]
    Sealed {
        /// What is written on it; after a migration, where its elections are now.
        description: String,
    },
    /// Its elections were, or are being, moved to another bucket than the one that was named.
    #[error("the bucket's elections move to the bucket {to:?}")]
    MovedElsewhere {
        /// The other bucket.
        to: String,
    },
    /// The bucket to move to carries elections already.
    #[error("the bucket to move to is in use")]
    Occupied,
    /// The bucket to move to has the name of the one to move from.
    #[error("a bucket cannot move to one of the same name")]
    SameName,
}

impl BucketError {
    pub(crate) fn sealed(info: &StreamInfo) -> Self {
        let description = info.config["description"].as_str().unwrap_or_default();
        Self::Sealed { description: description.to_owned() }
    }

    pub(crate) fn advice(&self) -> &'static str {
        match self {
            Self::Missing => "the bucket is missing: call `ensure_schema()`",
            Self::Unprepared => "the bucket was not prepared: call `ensure_schema()`",
            Self::InUse { .. } => {
                "the bucket is used by others: choose one of its own by `with_bucket()`"
            }
            Self::Differs(_) => {
                "the bucket's settings are not fit: change them, or have `ensure_schema()` do so by `with_adopted()`"
            }
            Self::Filling => "elections are being moved into the bucket: run `migrate` to its end",
            Self::Sealed { .. } => "the bucket is sealed: use the one to which its elections moved",
            Self::MovedElsewhere { .. } => "its elections have been sent to another bucket",
            Self::Occupied => {
                "the bucket to move to is in use: choose one that does not exist by `with_bucket()`"
            }
            Self::SameName => "the bucket to move to needs another name: see `with_bucket()`",
        }
    }
}

/// How far a bucket has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Its revisions do not begin where they must.
    Unprepared,
    /// A migration fills it.
    Filling,
    /// It carries elections.
    Ready,
    /// Nothing is written to it any more.
    Sealed,
}

/// A bucket as it is wanted.
#[derive(Clone, Debug)]
pub(crate) struct Bucket {
    pub(crate) name: String,
    pub(crate) storage: Storage,
    pub(crate) replicas: Option<usize>,
    pub(crate) max_bytes: Option<u64>,
    pub(crate) adopted: BTreeSet<Setting>,
}

impl Default for Bucket {
    fn default() -> Self {
        Self {
            name: "leader_election".to_owned(),
            storage: Storage::default(),
            replicas: None,
            max_bytes: None,
            adopted: BTreeSet::new(),
        }
    }
}

impl Bucket {
    pub(crate) fn stream(&self) -> String {
        format!("KV_{}", self.name)
    }

    pub(crate) fn all_subjects(&self) -> String {
        format!("$KV.{}.>", self.name)
    }

    pub(crate) fn subject(&self, election: &ElectionName) -> String {
        self.subject_of_key(&key_of(election))
    }

    /// Where it is noted to which bucket elections move.
    pub(crate) fn move_subject(&self) -> String {
        self.subject_of_key("/moved-to")
    }

    /// The key that a subject belongs to.
    fn key<'a>(&self, subject: &'a str) -> Option<&'a str> {
        subject.strip_prefix(&format!("$KV.{}.", self.name))
    }

    /// Fails unless it can carry elections. Answers when it was created.
    pub(crate) async fn check(&self, connection: &mut Connection) -> Result<String, NatsError> {
        let info = connection.stream_info(&self.stream(), None).await?;
        let info = info.ok_or(BucketError::Missing)?;
        match phase(&info) {
            Phase::Unprepared => return Err(BucketError::Unprepared.into()),
            Phase::Filling => return Err(BucketError::Filling.into()),
            Phase::Sealed => return Err(BucketError::sealed(&info).into()),
            Phase::Ready => {}
        }
        self.no_differences(&info.config)?;
        Ok(info.created)
    }

    /// Creates and prepares it, unless that was done.
    pub(crate) async fn ensure(&self, connection: &mut Connection) -> Result<(), NatsError> {
        let info = self.make(connection, READY).await?;
        match phase(&info) {
            Phase::Filling => Err(BucketError::Filling.into()),
            _ => Ok(()),
        }
    }

    /// The same for the target of a migration, which nobody may use before [`open`](Self::open).
    pub(crate) async fn ensure_filling(
        &self,
        connection: &mut Connection,
    ) -> Result<StreamInfo, NatsError> {
        self.make(connection, FILLING).await
    }

    /// Lets everybody use what a migration has filled.
    pub(crate) async fn open(&self, connection: &mut Connection) -> Result<(), NatsError> {
        self.change(connection, |config| config["description"] = READY.into()).await
    }

    /// Freezes it for good: reads are answered, nothing can be written, and it cannot be undone.
    pub(crate) async fn seal(
        &self,
        connection: &mut Connection,
        description: &str,
    ) -> Result<(), NatsError> {
        let seal = |config: &mut Value| {
            config["description"] = description.into();
            config["sealed"] = true.into();
            // The server wants these two to be said as well.
            config["deny_delete"] = true.into();
            config["deny_purge"] = true.into();
            config["allow_rollup_hdrs"] = false.into();
        };
        self.change(connection, seal).await
    }

    /// All elections that have an entry, ordered by name.
    pub(crate) async fn elections(
        &self,
        connection: &mut Connection,
    ) -> Result<Vec<ElectionName>, NatsError> {
        let mut elections = BTreeSet::new();
        let mut seen = 0;
        loop {
            let page = Some((&*self.all_subjects(), seen));
            let info = connection.stream_info(&self.stream(), page).await?;
            let info = info.ok_or(BucketError::Missing)?;
            let subjects = info.state.subjects.unwrap_or_default();
            let keys = subjects.keys().filter_map(|subject| self.key(subject));
            elections.extend(keys.filter_map(election_of));
            seen += subjects.len();
            if subjects.is_empty() || seen >= info.total {
                return Ok(elections.into_iter().collect());
            }
        }
    }

    async fn change(
        &self,
        connection: &mut Connection,
        change: impl FnOnce(&mut Value),
    ) -> Result<(), NatsError> {
        let info = connection.stream_info(&self.stream(), None).await?;
        let mut config = info.ok_or(BucketError::Missing)?.config;
        change(&mut config);
        connection.update_stream(&self.stream(), &config).await
    }

    /// Each turn takes one step, of which everybody else may take the same at the same time. A server answers requests about a
    /// stream before it has created the whole of it, in various ways; so it is given time, and asked again.
    async fn make(
        &self,
        connection: &mut Connection,
        description: &str,
    ) -> Result<StreamInfo, NatsError> {
        let mut reason = NatsError::Contended;
        for _ in 0..TURNS {
            match self.step(connection, description).await {
                Ok(Some(info)) => return Ok(info),
                Ok(None) => reason = NatsError::Contended,
                Err(error) if error.may_be_due_to_a_creation() => {
                    reason = error;
                    tokio::time::sleep(PAUSE).await;
                }
                Err(error) => return Err(error),
            }
        }
        Err(reason)
    }

    /// Does the first thing that there is to do. Answers how the bucket is when there is nothing left.
    async fn step(
        &self,
        connection: &mut Connection,
        description: &str,
    ) -> Result<Option<StreamInfo>, NatsError> {
        let stream = self.stream();
        let Some(mut info) = connection.stream_info(&stream, None).await? else {
            connection.create_stream(&stream, &self.config(description)).await?;
            return Ok(None);
        };
        if phase(&info) == Phase::Sealed {
            return Err(BucketError::sealed(&info).into());
        }
        if self.adopt(&mut info.config) {
            connection.update_stream(&stream, &info.config).await?;
            return Ok(None);
        }
        self.no_differences(&info.config)?;
        if phase(&info) == Phase::Unprepared {
            if info.state.messages > 0 {
                return Err(BucketError::InUse { messages: info.state.messages }.into());
            }
            // The same number whoever does it, so that it never takes away what was written since.
            let created = info.created_us()?.ok_or(NatsError::BeingCreated)?;
            connection.begin_stream_at(&stream, created).await?;
            return Ok(None);
        }
        if info.state.messages == 0 {
            // nats-server 2.9 forgets where an empty stream stood.
            let note = format!("{READY}; this message keeps the bucket from being empty");
            connection.store(&stream, &self.subject_of_key("/note"), 0, note.into()).await?;
        }
        Ok(Some(info))
    }

    fn subject_of_key(&self, key: &str) -> String {
        format!("$KV.{}.{key}", self.name)
    }

    /// As other clients make a bucket.
    fn config(&self, description: &str) -> Value {
        json!({
            "name": self.stream(),
            "description": description,
            "subjects": [self.all_subjects()],
            "retention": "limits",
            "storage": self.storage.as_str(),
            "num_replicas": self.replicas.unwrap_or(1),
            "max_msgs_per_subject": 1,
            "max_msgs": -1,
            "max_bytes": self.max_bytes.map_or(json!(-1), Value::from),
            "max_age": 0,
            "max_msg_size": -1,
            "max_consumers": -1,
            "discard": "new",
            "deny_delete": true,
            "allow_rollup_hdrs": true,
        })
    }
}

pub(crate) fn phase(info: &StreamInfo) -> Phase {
    if info.config["sealed"] == true {
        return Phase::Sealed;
    }
    if info.state.first_seq < FIRST_REVISION {
        return Phase::Unprepared;
    }
    if info.config["description"] == FILLING { Phase::Filling } else { Phase::Ready }
}

fn listed(differences: &[Difference]) -> String {
    differences.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}
