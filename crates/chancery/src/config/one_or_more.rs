//! Values that a config may give alone or as a list, and grants as they are written.

use std::fmt;
use std::marker::PhantomData;

use chancery_protocol::CallGrant;
use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{self, DeserializeOwned, Deserializer, IntoDeserializer as _, MapAccess, SeqAccess, Visitor};

/// One value, or a list of them. A value is a text or a table.
pub(super) struct OneOrMore<T>(pub(super) Vec<T>);

impl<T> Default for OneOrMore<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<'de, T: DeserializeOwned> Deserialize<'de> for OneOrMore<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(Either(PhantomData)).map(Self)
    }
}

struct Either<T>(PhantomData<T>);

impl<'de, T: DeserializeOwned> Visitor<'de> for Either<T> {
    type Value = Vec<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("one, or a list")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Vec<T>, E> {
        T::deserialize(text.into_deserializer()).map(|one| vec![one])
    }

    fn visit_map<A: MapAccess<'de>>(self, table: A) -> Result<Vec<T>, A::Error> {
        T::deserialize(MapAccessDeserializer::new(table)).map(|one| vec![one])
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Vec<T>, A::Error> {
        let mut read = Vec::new();
        while let Some(one) = list.next_element()? {
            read.push(one);
        }
        Ok(read)
    }
}

/// `AGENT`, or `AGENT/SKILL`.
pub(super) struct Granted(pub(super) CallGrant);

impl<'de> Deserialize<'de> for Granted {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        text.parse().map(Self).map_err(|fault| de::Error::custom(format!("{text:?} {fault}")))
    }
}
