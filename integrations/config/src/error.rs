//! What is wrong with a configuration.

use std::{error::Error as StdError, fmt};

/// Why a configuration gives no store, or no elector. No message contains what may be a password.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ElectionConfigError {
    /// A key that must be there is not.
    #[error("`{key}` is missing")]
    Missing {
        /// The key, with those of the tables around it: `store.url`.
        key: &'static str,
    },
    /// A value cannot be read, or is not allowed.
    #[error(transparent)]
    Value(#[from] ValueError),
    /// There is no such option.
    #[error("there is no `{key}` for a {kind}: store; there is {}", Listed(.known, "and"))]
    UnknownOption {
        /// The key.
        key: String,
        /// The scheme of the store's URL.
        kind: &'static str,
        /// The options that there are.
        known: Vec<&'static str>,
    },
    /// The URL is of no store that this crate knows.
    #[error("store.url: {}; write {}", unknown(.scheme), Listed(.known, "or"))]
    UnknownStore {
        /// What stands in front of the colon; nothing where that may be part of a password.
        scheme: String,
        /// What URLs look like.
        known: Vec<&'static str>,
    },
    /// The store is known, but this program was built without it.
    #[error(
        "store.url: this program was built without {kind}: stores; enable the feature `{kind}` of tenure-config"
    )]
    FeatureOff {
        /// The scheme of the store's URL, which is the name of its feature.
        kind: &'static str,
    },
    /// Two keys contradict each other.
    #[error("`{one}` and `{other}` exclude each other; leave one out")]
    Contradiction {
        /// One key.
        one: &'static str,
        /// The other.
        other: &'static str,
    },
    /// What the elector says against the values: its error names the field.
    #[error(transparent)]
    Elector(#[from] tenure::ConfigError),
}

/// A value that is wrong.
#[derive(Debug)]
pub struct ValueError {
    key: String,
    /// Not shown if it may be a secret.
    value: Option<String>,
    why: String,
    source: Option<Box<dyn StdError + Send + Sync>>,
}

impl ValueError {
    pub(crate) fn new(key: impl Into<String>, value: Option<&str>, why: impl Into<String>) -> Self {
        let value = value.map(str::to_owned);
        Self { key: key.into(), value, why: why.into(), source: None }
    }

    pub(crate) fn because(
        key: impl Into<String>,
        value: Option<&str>,
        source: impl StdError + Send + Sync + 'static,
    ) -> Self {
        let why = source.to_string();
        // Its message is ours, so that what is next to tell is its own cause.
        Self { source: Some(Box::new(source)), ..Self::new(key, value, why) }
    }

    /// The key, with those of the tables around it: `store.url`.
    #[must_use]
    pub fn key(&self) -> &str {
        &self.key
    }

    /// The value, unless it may hold a password.
    #[must_use]
    pub fn value(&self) -> Option<&str> {
        self.value.as_deref()
    }
}

impl fmt::Display for ValueError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.value {
            Some(value) => write!(f, "{} = {value:?}: {}", self.key, self.why),
            None => write!(f, "{}: {}", self.key, self.why),
        }
    }
}

impl StdError for ValueError {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.source.as_deref().and_then(StdError::source)
    }
}

fn unknown(scheme: &str) -> String {
    match scheme {
        "" => "it names no store".to_owned(),
        scheme => format!("{scheme:?} is the scheme of no store"),
    }
}

/// Names in a sentence: `a`, `b` and `c`.
struct Listed<'a>(&'a [&'static str], &'static str);

impl fmt::Display for Listed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(names, word) = self;
        for (at, name) in names.iter().enumerate() {
            match at {
                0 => {}
                at if at + 1 == names.len() => write!(f, " {word} ")?,
                _ => f.write_str(", ")?,
            }
            write!(f, "`{name}`")?;
        }
        Ok(())
    }
}
