//! One value, whatever the format has made of it.

use std::{fmt, time::Duration};

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
}

impl From<&str> for Scalar {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

impl<'de> Deserialize<'de> for Scalar {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Visitor)
    }
}

struct Visitor;

impl de::Visitor<'_> for Visitor {
    type Value = Scalar;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text, a number, or `true` or `false`")
    }

    fn visit_str<E>(self, value: &str) -> Result<Scalar, E> {
        Ok(Scalar(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Scalar, E> {
        Ok(Scalar(value))
    }

    fn visit_bool<E>(self, value: bool) -> Result<Scalar, E> {
        Ok(Scalar(value.to_string()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Scalar, E> {
        Ok(Scalar(value.to_string()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Scalar, E> {
        Ok(Scalar(value.to_string()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Scalar, E> {
        Ok(Scalar(value.to_string()))
    }
}
