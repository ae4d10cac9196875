//! Which store, and its options.

use std::{collections::BTreeMap, fmt};

use serde::{
    Deserialize, Deserializer,
    de::{self, MapAccess, value::MapAccessDeserializer},
};
use tenure::DynStore;

use crate::{
    error::ElectionConfigError,
    kinds::{self, Kind},
    options::Options,
    scalar::Given,
};

/// Which store, and its options: a URL, or a table of `url` and what stands in the [crate's table](crate#stores).
///
/// Its `Debug` shows neither the URL nor the values, which may contain passwords.
#[derive(Clone)]
pub struct StoreConfig {
    kind: &'static Kind,
    url: String,
    options: Options,
}

impl StoreConfig {
    /// The store at this URL, with all its options left at their defaults.
    ///
    /// # Errors
    /// [`ElectionConfigError::UnknownStore`] if no store has such a URL.
    pub fn new(url: impl Into<String>) -> Result<Self, ElectionConfigError> {
        Self::from_table(url.into(), BTreeMap::new())
    }

    /// Which kind of store it is: the scheme of its URL, `postgres` for example, and the name of its feature.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        self.kind.name
    }

    /// Makes the store. No I/O.
    ///
    /// # Errors
    /// [`ElectionConfigError`] if the URL or an option is not valid, or this program was built without such a store.
    pub fn connect(&self) -> Result<DynStore, ElectionConfigError> {
        (self.kind.connect)(&self.url, &self.options)
    }

    fn from_table(
        url: String,
        options: BTreeMap<String, Given>,
    ) -> Result<Self, ElectionConfigError> {
        let kind = kinds::of_url(&url)?;
        let options = Options::checked(options, kind.name, kind.options)?;
        Ok(Self { kind, url, options })
    }
}

impl fmt::Debug for StoreConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoreConfig")
            .field("kind", &self.kind.name)
            .field("options", &self.options.keys().collect::<Vec<_>>())
            .finish_non_exhaustive()
    }
}

impl<'de> Deserialize<'de> for StoreConfig {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Visitor)
    }
}

struct Visitor;

impl<'de> de::Visitor<'de> for Visitor {
    type Value = StoreConfig;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the URL of a store, or a table with its `url` and its options")
    }

    fn visit_str<E: de::Error>(self, url: &str) -> Result<StoreConfig, E> {
        StoreConfig::new(url).map_err(E::custom)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<StoreConfig, A::Error> {
        let mut table: BTreeMap<String, Given> =
            Deserialize::deserialize(MapAccessDeserializer::new(map))?;
        let Some(Given::One(url)) = table.remove("url") else {
            return Err(de::Error::custom(ElectionConfigError::Missing { key: "store.url" }));
        };
        StoreConfig::from_table(url.into_string(), table).map_err(de::Error::custom)
    }
}
