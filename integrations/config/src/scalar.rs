//! One value, whatever the format has made of it.

// Each kind of store reads its options in its own way.
#![cfg_attr(not(feature = "nats"), allow(dead_code))]

use std::{fmt, str::FromStr, time::Duration};

use serde::{Deserialize, Deserializer, de};
use tenure::protocol::Expiry;

/// A text, a number or a truth value, as text: an environment variable knows nothing else.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Scalar(String);

impl Scalar {
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    pub(crate) fn into_string(self) -> String {
        self.0
    }

    /// A number without a unit might mean anything.
    pub(crate) fn duration(&self) -> Result<Duration, String> {
        humantime::parse_duration(&self.0).map_err(|error| {
            format!("not a duration ({error}); write for example `15s` or `500ms`")
        })
    }

    pub(crate) fn flag(&self) -> Result<bool, String> {
        match self.0.as_str() {
            "true" => Ok(true),
            "false" => Ok(false),
            _ => Err("must be `true` or `false`".to_owned()),
        }
    }

    pub(crate) fn expiry(&self) -> Result<Expiry, String> {
        match self.0.as_str() {
            "either" => Ok(Expiry::Either),
            "observed" => Ok(Expiry::Observed),
            "both" => Ok(Expiry::Both),
            _ => Err("must be `either`, `observed` or `both`".to_owned()),
        }
    }

    /// Whatever reads itself from text, a number for example.
    pub(crate) fn parse<T>(&self) -> Result<T, String>
    where
        T: FromStr,
        T::Err: fmt::Display,
    {
        self.0.parse().map_err(|error: T::Err| error.to_string())
    }

    /// Several, between commas.
    pub(crate) fn parse_list<T>(&self) -> Result<Vec<T>, String>
    where
        T: FromStr,
        T::Err: fmt::Display,
    {
        let items = self.0.split(',').map(str::trim).filter(|item| !item.is_empty());
        items.map(|item| item.parse().map_err(|error: T::Err| error.to_string())).collect()
    }
}

impl From<String> for Scalar {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl<'de> Deserialize<'de> for Scalar {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Given::deserialize(deserializer)? {
            Given::One(scalar) => Ok(scalar),
            Given::List(_) => Err(de::Error::invalid_type(de::Unexpected::Seq, &Visitor)),
        }
    }
}

/// What was given for an option: one value, or a list of them.
#[derive(Clone)]
pub(crate) enum Given {
    One(Scalar),
    /// Between commas, as an environment variable says it.
    List(Scalar),
}

impl<'de> Deserialize<'de> for Given {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Visitor)
    }
}

struct Visitor;

impl<'de> de::Visitor<'de> for Visitor {
    type Value = Given;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text, a number, or `true` or `false`")
    }

    fn visit_str<E: de::Error>(self, value: &str) -> Result<Given, E> {
        self.visit_string(value.to_owned())
    }

    fn visit_string<E: de::Error>(self, value: String) -> Result<Given, E> {
        Ok(Given::One(Scalar(value)))
    }

    fn visit_bool<E: de::Error>(self, value: bool) -> Result<Given, E> {
        self.visit_string(value.to_string())
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<Given, E> {
        self.visit_string(value.to_string())
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<Given, E> {
        self.visit_string(value.to_string())
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<Given, E> {
        self.visit_string(value.to_string())
    }

    fn visit_seq<A: de::SeqAccess<'de>>(self, mut items: A) -> Result<Given, A::Error> {
        let mut list = Vec::new();
        while let Some(Scalar(item)) = items.next_element()? {
            list.push(item);
        }
        Ok(Given::List(Scalar(list.join(","))))
    }
}
