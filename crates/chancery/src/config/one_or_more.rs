//! Values that a config may give alone or as a list, and grants as they are written.

use chancery_protocol::Grant;
use serde::Deserialize;
use serde::de::{self, DeserializeOwned, Deserializer};

/// One value, or a list of them.
pub(super) struct OneOrMore<T>(pub(super) Vec<T>);

impl<T> Default for OneOrMore<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<'de, T: DeserializeOwned> Deserialize<'de> for OneOrMore<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let values = match toml::Value::deserialize(from)? {
            toml::Value::Array(values) => values,
            one => vec![one],
        };
        values.into_iter().map(T::deserialize).collect::<Result<_, _>>().map(Self).map_err(de::Error::custom)
    }
}

/// `AGENT`, or `AGENT/SKILL`.
pub(super) struct Granted(pub(super) Grant);

impl<'de> Deserialize<'de> for Granted {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        text.parse().map(Self).map_err(|fault| de::Error::custom(format!("{text:?} {fault}")))
    }
}
