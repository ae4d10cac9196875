//! The settings of a bucket: what they must be, and what may be changed.

use std::{fmt, str::FromStr};

use serde_json::{Value, json};

use crate::{
    bucket::{Bucket, BucketError},
    setup::SetupError,
};

/// The largest value there can be, with headers: 64 KiB of payload in base64, a holder, and the names of fields.
const LARGEST_MESSAGE: i64 = 100_000;

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
    pub(crate) fn as_str(self) -> &'static str {
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

impl Bucket {
    /// Changes what it was told to change, and nothing else; says whether there was anything.
    pub(crate) fn adopt(&self, config: &mut Value) -> bool {
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

    pub(crate) fn no_differences(&self, config: &Value) -> Result<(), BucketError> {
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
        let absent =
            |name: &str| config[name].as_array().map_or(config[name].is_null(), Vec::is_empty);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::NatsStore;

    #[test]
    fn what_can_be_chosen_is_called_as_it_is_shown() {
        for storage in [Storage::File, Storage::Memory] {
            assert_eq!(storage.to_string().parse::<Storage>().unwrap(), storage);
        }
        for setting in Setting::ALL {
            assert_eq!(setting.to_string().parse::<Setting>().unwrap(), setting);
            assert!(Setting::names().contains(&setting.to_string()));
        }
        let unknown = "tape".parse::<Storage>().unwrap_err();
        assert!(matches!(unknown, SetupError::UnknownStorage { name } if name == "tape"));
        let unknown = "max_msgs".parse::<Setting>().unwrap_err();
        assert!(matches!(unknown, SetupError::UnknownSetting { name } if name == "max_msgs"));
    }

    #[test]
    fn a_bucket_gets_its_messages_from_nowhere_else() {
        let store = NatsStore::new("nats://db").unwrap();
        let mut config = json!({
            "subjects": [store.bucket.all_subjects()], "storage": "file", "retention": "limits",
            "max_msgs_per_subject": 1, "sources": [],
        });
        store.bucket.no_differences(&config).unwrap();
        for (name, value) in [("mirror", json!({"name": "x"})), ("sources", json!([{"name": "x"}]))]
        {
            let before = config[name].take();
            config[name] = value;
            let error = store.bucket.no_differences(&config).unwrap_err();
            assert!(error.to_string().contains(name), "{error}");
            config[name] = before;
        }
        store.bucket.no_differences(&config).unwrap();
    }

    #[test]
    fn all_that_is_not_as_it_must_be_is_told_at_once() {
        let difference = |setting, found: &str, wanted: &str| {
            let (found, wanted) = (found.to_owned(), wanted.to_owned());
            Difference { setting, found, wanted }
        };
        let differences =
            vec![difference("max_age", "7", "0"), difference("discard", "old", "new")];
        let told = BucketError::Differs(differences).to_string();
        assert!(
            told.contains("`max_age` is 7 and must be 0; `discard` is old and must be new"),
            "{told}"
        );
    }
}
