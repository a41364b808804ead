//! The members of an object: those its reader knows go to it one by one, the others together at the end.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use serde::Deserialize;
use serde::de::value::{BorrowedStrDeserializer, MapDeserializer, StrDeserializer, StringDeserializer};
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, Visitor};
use serde::forward_to_deserialize_any;
use serde_json::value::RawValue;

use super::{Objects, UNKNOWN};

pub(super) struct Collecting<'de, A> {
    map: A,
    known: &'static [&'static str],
    /// Where among the known the next one is looked for first: members mostly come in the order they are declared in.
    next: usize,
    found: Vec<(Cow<'de, str>, Box<RawValue>)>,
    at_the_end: bool,
}

impl<A> Collecting<'_, A> {
    pub(super) fn new(map: A, known: &'static [&'static str]) -> Self {
        Self { map, known, next: 0, found: Vec::new(), at_the_end: false }
    }

    fn knows(&mut self, name: &str) -> bool {
        let (before, after) = self.known.split_at(self.next);
        let place = after.iter().position(|known| *known == name).map(|place| self.next + place);
        let place = place.or_else(|| before.iter().position(|known| *known == name));
        self.next = place.map_or(self.next, |place| place + 1);
        place.is_some()
    }
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for Collecting<'de, A> {
    type Error = A::Error;

    fn next_key_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, A::Error> {
        while let Some(Name(name)) = self.map.next_key()? {
            if !self.knows(&name) {
                self.found.push((name, self.map.next_value()?));
                continue;
            }
            return match &name {
                Cow::Borrowed(name) => seed.deserialize(BorrowedStrDeserializer::new(name)),
                Cow::Owned(name) => seed.deserialize(StrDeserializer::new(name)),
            }
            .map(Some);
        }
        if self.found.is_empty() {
            return Ok(None);
        }
        self.at_the_end = true;
        seed.deserialize(BorrowedStrDeserializer::new(UNKNOWN)).map(Some)
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, A::Error> {
        if self.at_the_end {
            return seed.deserialize(Found(std::mem::take(&mut self.found), PhantomData));
        }
        self.map.next_value_seed(Objects(seed))
    }
}

/// A member's name, borrowed where it has no escapes.
struct Name<'de>(Cow<'de, str>);

impl<'de> Deserialize<'de> for Name<'de> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Spelled;

        impl<'de> Visitor<'de> for Spelled {
            type Value = Name<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a member's name")
            }

            fn visit_borrowed_str<E: Error>(self, name: &'de str) -> Result<Name<'de>, E> {
                Ok(Name(Cow::Borrowed(name)))
            }

            fn visit_str<E: Error>(self, name: &str) -> Result<Name<'de>, E> {
                Ok(Name(Cow::Owned(name.to_owned())))
            }
        }

        from.deserialize_identifier(Spelled)
    }
}

/// What was collected, as `Unknown` takes it: names, and values as their text.
struct Found<'de, E>(Vec<(Cow<'de, str>, Box<RawValue>)>, PhantomData<E>);

impl<'de, E: Error> Deserializer<'de> for Found<'de, E> {
    type Error = E;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, E> {
        let text = |value: Box<RawValue>| StringDeserializer::<E>::new(String::from(Box::<str>::from(value)));
        visitor.visit_map(MapDeserializer::new(self.0.into_iter().map(|(name, value)| (name, text(value)))))
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map struct enum identifier ignored_any
    }
}
