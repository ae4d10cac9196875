//! What a store's table holds beside its URL.

// Each kind of store reads its options in its own way.
#![cfg_attr(not(feature = "nats"), allow(dead_code))]

use std::collections::BTreeMap;

use crate::{
    error::{ElectionConfigError, ValueError},
    scalar::{Given, Scalar},
};

/// The options that were given. Only those that the store's kind has are ever in here.
#[derive(Clone, Default)]
pub(crate) struct Options(BTreeMap<String, Scalar>);

/// One option of a kind of store.
#[derive(Clone, Copy)]
pub(crate) struct Known {
    pub(crate) key: &'static str,
    /// Whether its value may hold a password.
    pub(crate) secret: bool,
    /// Whether it takes a list.
    pub(crate) list: bool,
}

impl Known {
    pub(crate) const fn plain(key: &'static str) -> Self {
        Self { key, secret: false, list: false }
    }

    pub(crate) const fn secret(key: &'static str) -> Self {
        Self { key, secret: true, list: false }
    }

    pub(crate) const fn list(key: &'static str) -> Self {
        Self { key, secret: false, list: true }
    }
}

impl Options {
    /// Sorts out what the kind does not have.
    pub(crate) fn checked(
        given: BTreeMap<String, Given>,
        kind: &'static str,
        known: &'static [Known],
    ) -> Result<Self, ElectionConfigError> {
        let mut options = BTreeMap::new();
        for (key, value) in given {
            let Some(known) = known.iter().find(|known| known.key == key) else {
                return Err(ElectionConfigError::UnknownOption {
                    key: format!("store.{key}"),
                    kind,
                    known: ["url"].into_iter().chain(known.iter().map(|known| known.key)).collect(),
                });
            };
            let value = match value {
                Given::One(value) => value,
                Given::List(value) if known.list => value,
                Given::List(_) => {
                    return Err(ValueError::new(
                        format!("store.{key}"),
                        None,
                        "takes one value, not a list",
                    )
                    .into());
                }
            };
            options.insert(key, value);
        }
        Ok(Self(options))
    }

    pub(crate) fn text(&self, option: Known) -> Option<&str> {
        self.0.get(option.key).map(Scalar::as_str)
    }

    /// The option's value, read by `read`, if it was given.
    pub(crate) fn read<T>(
        &self,
        option: Known,
        read: impl FnOnce(&Scalar) -> Result<T, String>,
    ) -> Result<Option<T>, ValueError> {
        let Some(value) = self.0.get(option.key) else {
            return Ok(None);
        };
        read(value).map(Some).map_err(|why| {
            let shown = (!option.secret).then_some(value.as_str());
            ValueError::new(format!("store.{}", option.key), shown, why)
        })
    }

    /// What the store's own check says against this option's value.
    pub(crate) fn refused(
        &self,
        option: Known,
        error: impl std::error::Error + Send + Sync + 'static,
    ) -> ValueError {
        let shown = self.text(option).filter(|_| !option.secret);
        ValueError::because(format!("store.{}", option.key), shown, error)
    }
}
