//! The stream behind a bucket: how it must be, and how it is made.

use std::{collections::BTreeSet, fmt, str::FromStr};

use serde_json::{Value, json};
use tenure::ElectionName;

use crate::{
    api::StreamInfo,
    error::NatsError,
    key::{election_of, key_of},
    link::Connection,
    setup::SetupError,
};

/// Revisions of a bucket begin at the time of its creation, in microseconds; those of one that nobody prepared, at one.
const FIRST_REVISION: u64 = 1_000_000_000_000_000;
/// The largest value there can be, with headers: 64 KiB of payload in base64, a holder, and the names of fields.
const LARGEST_MESSAGE: i64 = 100_000;

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
}

impl BucketError {
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
        }
    }
}

/// A setting of a bucket that is not as it must be.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Difference {
    /// Its name in the configuration of the stream.
    pub setting: &'static str,
    /// As it is.
    pub found: String,
    /// As it must be.
    pub wanted: String,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { setting, found, wanted } = self;
        write!(f, "`{setting}` is {found} and must be {wanted}")
    }
}

/// Where a bucket's messages are kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Storage {
    /// In files, so that leases outlive a restart of the server.
    #[default]
    File,
    /// In memory alone. A restart of a single server loses the bucket with all leases: every term ends, and nobody leads
    /// until [`ensure_schema`](crate::NatsStore::ensure_schema) is called again. Fences rise all the same.
    Memory,
}

impl Storage {
    fn as_str(self) -> &'static str {
        match self {
            Self::File => "file",
            Self::Memory => "memory",
        }
    }
}

impl FromStr for Storage {
    type Err = SetupError;

    fn from_str(name: &str) -> Result<Self, SetupError> {
        let found = [Self::File, Self::Memory].into_iter().find(|kind| kind.as_str() == name);
        found.ok_or_else(|| SetupError::UnknownStorage { name: name.to_owned() })
    }
}

impl fmt::Display for Storage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A setting of an existing bucket that [`ensure_schema`](crate::NatsStore::ensure_schema) may change, if it is told so by
/// [`with_adopted`](crate::NatsStore::with_adopted).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Setting {
    /// `max_age`: messages must not vanish by age.
    MaxAge,
    /// `discard`: a bucket that is full must refuse new messages, not drop old ones.
    Discard,
    /// `max_msgs_per_subject`: one message for each key suffices.
    History,
    /// `max_msg_size`: a lease with its payload must fit.
    MaxMessageSize,
    /// `max_bytes`, if [`with_max_bytes`](crate::NatsStore::with_max_bytes) says how many.
    MaxBytes,
    /// `num_replicas`, if [`with_replicas`](crate::NatsStore::with_replicas) says how many.
    Replicas,
}

impl Setting {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::MaxAge,
        Self::Discard,
        Self::History,
        Self::MaxMessageSize,
        Self::MaxBytes,
        Self::Replicas,
    ];

    fn as_str(self) -> &'static str {
        match self {
            Self::MaxAge => "max_age",
            Self::Discard => "discard",
            Self::History => "history",
            Self::MaxMessageSize => "max_message_size",
            Self::MaxBytes => "max_bytes",
            Self::Replicas => "replicas",
        }
    }

    pub(crate) fn names() -> String {
        Self::ALL.map(Self::as_str).join(", ")
    }
}

impl FromStr for Setting {
    type Err = SetupError;

    fn from_str(name: &str) -> Result<Self, SetupError> {
        let found = Self::ALL.into_iter().find(|setting| setting.as_str() == name);
        found.ok_or_else(|| SetupError::UnknownSetting { name: name.to_owned() })
    }
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
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
            Phase::Sealed => return Err(sealed(&info).into()),
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

    /// Each turn takes one step, of which everybody else may take the same at the same time.
    async fn make(
        &self,
        connection: &mut Connection,
        description: &str,
    ) -> Result<StreamInfo, NatsError> {
        let stream = self.stream();
        for _ in 0..8 {
            let Some(mut info) = connection.stream_info(&stream, None).await? else {
                connection.create_stream(&stream, &self.config(description)).await?;
                continue;
            };
            if phase(&info) == Phase::Sealed {
                return Err(sealed(&info).into());
            }
            if self.adopt(&mut info.config) {
                connection.update_stream(&stream, &info.config).await?;
                continue;
            }
            self.no_differences(&info.config)?;
            if phase(&info) == Phase::Unprepared {
                if info.state.messages > 0 {
                    return Err(BucketError::InUse { messages: info.state.messages }.into());
                }
                // The same number whoever does it, so that it never takes away what was written since.
                connection.begin_stream_at(&stream, info.created_us()?).await?;
                continue;
            }
            if info.state.messages == 0 {
                // nats-server 2.9 forgets where an empty stream stood.
                let note = format!("{READY}; this message keeps the bucket from being empty");
                connection.store(&stream, &self.subject_of_key("/note"), 0, note.into()).await?;
            }
            return Ok(info);
        }
        Err(NatsError::Contended)
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

    /// Changes what it was told to change, and nothing else; says whether there was anything.
    fn adopt(&self, config: &mut Value) -> bool {
        let mut changed = false;
        for rule in self.rules(config) {
            let adopted = rule.setting.is_some_and(|setting| self.adopted.contains(&setting));
            if adopted && !rule.kept {
                config[rule.name] = rule.wanted;
                changed = true;
            }
        }
        changed
    }

    fn no_differences(&self, config: &Value) -> Result<(), BucketError> {
        let broken = self.rules(config).into_iter().filter(|rule| !rule.kept);
        let differences = broken.map(|rule| Difference {
            setting: rule.name,
            found: config[rule.name].to_string(),
            wanted: rule.wanted.to_string(),
        });
        let differences: Vec<_> = differences.collect();
        if differences.is_empty() { Ok(()) } else { Err(BucketError::Differs(differences)) }
    }

    /// What a bucket must be like, and whether this one is.
    fn rules(&self, config: &Value) -> Vec<Rule> {
        let number = |name: &str| config[name].as_i64().unwrap_or_default();
        let absent = |name: &str| match &config[name] {
            Value::Null => true,
            Value::Array(items) => items.is_empty(),
            _ => false,
        };
        let is = |name, wanted: Value| Rule {
            name,
            kept: config[name] == wanted,
            wanted,
            setting: None,
        };
        let off = |name| Rule {
            name,
            kept: !config[name].as_bool().unwrap_or_default(),
            wanted: false.into(),
            setting: None,
        };
        let none = |name| Rule { name, kept: absent(name), wanted: Value::Null, setting: None };
        let limited = number("max_bytes") > 0 || number("max_msgs") > 0;
        let largest = number("max_msg_size");

        let mut rules = vec![
            is("subjects", json!([self.all_subjects()])),
            is("storage", self.storage.as_str().into()),
            is("retention", "limits".into()),
            off("no_ack"),
            off("discard_new_per_subject"),
            none("mirror"),
            none("sources"),
            none("subject_transform"),
            Rule {
                name: "max_age",
                kept: number("max_age") == 0,
                wanted: 0.into(),
                setting: Some(Setting::MaxAge),
            },
            Rule {
                name: "discard",
                kept: !limited || config["discard"] == "new",
                wanted: "new".into(),
                setting: Some(Setting::Discard),
            },
            Rule {
                name: "max_msgs_per_subject",
                kept: number("max_msgs_per_subject") > 0,
                wanted: 1.into(),
                setting: Some(Setting::History),
            },
            Rule {
                name: "max_msg_size",
                kept: largest <= 0 || largest >= LARGEST_MESSAGE,
                wanted: (-1).into(),
                setting: Some(Setting::MaxMessageSize),
            },
        ];
        rules.extend(self.max_bytes.map(|max_bytes| Rule {
            setting: Some(Setting::MaxBytes),
            ..is("max_bytes", max_bytes.into())
        }));
        rules.extend(self.replicas.map(|replicas| Rule {
            setting: Some(Setting::Replicas),
            ..is("num_replicas", replicas.into())
        }));
        rules
    }
}

struct Rule {
    name: &'static str,
    kept: bool,
    wanted: Value,
    /// What allows to change it, if anything may.
    setting: Option<Setting>,
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

fn sealed(info: &StreamInfo) -> BucketError {
    let description = info.config["description"].as_str().unwrap_or_default();
    BucketError::Sealed { description: description.to_owned() }
}

fn listed(differences: &[Difference]) -> String {
    differences.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}
