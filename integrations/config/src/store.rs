//! Which store, and its options.

use std::{collections::BTreeMap, fmt};

use serde::{
    Deserialize, Deserializer,
    de::{self, MapAccess, value::MapAccessDeserializer},
};
use tenure::DynStore;

use crate::{error::ElectionConfigError, kinds, options::Options, scalar::Given};

/// Which store, and its options: a URL, or a table of `url` and what stands in the [crate's table](crate#stores).
///
/// Reading one finds fault with nothing that it contains, [`connect`](Self::connect) does: some formats quote the text around
/// an error, and with it the password that may stand there. Its `Debug` shows neither the URL nor the values.
#[derive(Clone)]
pub struct StoreConfig {
    given: BTreeMap<String, Given>,
}

impl StoreConfig {
    /// The store at this URL, with all its options left at their defaults.
    ///
    /// # Errors
    /// [`ElectionConfigError::UnknownStore`] if no store has such a URL.
    pub fn new(url: impl Into<String>) -> Result<Self, ElectionConfigError> {
        let url = url.into();
        kinds::of_url(&url)?;
        Ok(Self::at(url))
    }

    /// Which kind of store it is: the scheme of its URL, `postgres` for example, and the name of its feature. `None` if there
    /// is no such store.
    #[must_use]
    pub fn kind(&self) -> Option<&'static str> {
        Some(kinds::of_url(self.url()?).ok()?.name)
    }

    /// Makes the store. No I/O.
    ///
    /// # Errors
    /// [`ElectionConfigError`] if the URL is missing or of no store, if it or an option is not valid, or this program was built
    /// without such a store.
    pub fn connect(&self) -> Result<DynStore, ElectionConfigError> {
        let url = self.url().ok_or(ElectionConfigError::Missing { key: "store.url" })?;
        let kind = kinds::of_url(url)?;
        let mut given = self.given.clone();
        given.remove(URL);
        let options = Options::checked(given, kind.name, kind.options)?;
        (kind.connect)(url, &options)
    }

    fn at(url: String) -> Self {
        Self { given: [(URL.to_owned(), Given::One(url.into()))].into() }
    }

    fn url(&self) -> Option<&str> {
        match self.given.get(URL)? {
            Given::One(url) => Some(url.as_str()),
            Given::List(_) => None,
        }
    }
}

const URL: &str = "url";

impl fmt::Debug for StoreConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let options = self.given.keys().filter(|key| *key != URL);
        f.debug_struct("StoreConfig")
            .field("kind", &self.kind())
            .field("options", &options.collect::<Vec<_>>())
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
        Ok(StoreConfig::at(url.to_owned()))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<StoreConfig, A::Error> {
        let given = Deserialize::deserialize(MapAccessDeserializer::new(map))?;
        Ok(StoreConfig { given })
    }
}
