//! Members that no version of the protocol has, preserved so that the node can forward them.

use std::collections::HashSet;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use serde::de::{self, Deserializer, MapAccess, Visitor};
use serde::ser::{SerializeMap, Serializer};
use serde::{Deserialize, Serialize};

use crate::Json;

/// An object of the protocol that may have members unknown to this node.
pub trait OpenObject {
    /// What any version has here, in any of its JSON forms and spellings. None of these is ever an unknown member, so that
    /// none can be read as something its sender did not say once another version has written it.
    const MEMBERS: &'static [&'static str];
}

/// The unknown members of an object, in the order they came in. Nothing, for nearly all of them.
pub struct Unknown<T>(Option<Arc<Vec<Member>>>, PhantomData<fn() -> T>);

#[derive(Clone)]
struct Member {
    name: Box<str>,
    value: Json,
}

impl<T> Unknown<T> {
    /// Makes a list without members.
    pub const fn none() -> Self {
        Self(None, PhantomData)
    }

    /// Returns whether there are no members.
    pub const fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// Returns the names and values of the members.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Json)> {
        self.0.iter().flat_map(|members| members.iter()).map(|member| (&*member.name, &member.value))
    }

    /// Returns the value of a member.
    pub fn get(&self, name: &str) -> Option<&Json> {
        self.iter().find(|(known, _)| *known == name).map(|(_, value)| value)
    }

    /// Bytes they take on the wire.
    pub fn weight(&self) -> usize {
        // Quotes, colon and comma.
        const AROUND: usize = 4;
        self.iter().map(|(name, value)| name.len() + value.text().len() + AROUND).sum()
    }

    fn of(members: Vec<Member>) -> Self {
        Self((!members.is_empty()).then(|| Arc::new(members)), PhantomData)
    }
}

impl<T: OpenObject> Unknown<T> {
    /// Adds a member, or replaces the one of this name. Says no to a name that the protocol has here.
    pub fn insert(&mut self, name: &str, value: Json) -> bool {
        if T::MEMBERS.contains(&name) {
            return false;
        }
        let members = Arc::make_mut(self.0.get_or_insert_default());
        match members.iter_mut().find(|member| *member.name == *name) {
            Some(member) => member.value = value,
            None => members.push(Member { name: name.into(), value }),
        }
        true
    }

    /// Adopts the members of a newer object.
    pub fn extend<U>(&mut self, newer: &Unknown<U>) {
        for (name, value) in newer.iter() {
            self.insert(name, value.clone());
        }
    }

    /// The same members in another kind of object, without those that kind knows.
    pub fn from_other<U>(other: &Unknown<U>) -> Self {
        let mut members = Self::none();
        members.extend(other);
        members
    }
}

impl<T> Default for Unknown<T> {
    fn default() -> Self {
        Self::none()
    }
}

impl<T> Clone for Unknown<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone(), PhantomData)
    }
}

impl<T> PartialEq for Unknown<T> {
    /// The same members, regardless of their order.
    fn eq(&self, other: &Self) -> bool {
        let count = |members: &Self| members.0.as_ref().map_or(0, |members| members.len());
        count(self) == count(other) && self.iter().all(|(name, value)| other.get(name) == Some(value))
    }
}

impl<T> fmt::Debug for Unknown<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

impl<T> Serialize for Unknown<T> {
    /// As the members they are: to be flattened into their object.
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut map = to.serialize_map(None)?;
        for (name, value) in self.iter() {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

impl<'de, T: OpenObject> Deserialize<'de> for Unknown<T> {
    /// Only `Objects` has something to say here: it answers with pairs of a name and the text of a value. No JSON reads as
    /// members that were collected, so a caller cannot send them ready made.
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Collected<T>(PhantomData<fn() -> T>);

        impl<'de, T: OpenObject> Visitor<'de> for Collected<T> {
            type Value = Unknown<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("nothing by this name")
            }

            fn visit_unit<E: de::Error>(self) -> Result<Unknown<T>, E> {
                Ok(Unknown::none())
            }

            fn visit_map<A: MapAccess<'de>>(self, mut pairs: A) -> Result<Unknown<T>, A::Error> {
                let mut members: Vec<Member> = Vec::new();
                let mut names = HashSet::new();
                while let Some((name, text)) = pairs.next_entry::<Box<str>, String>()? {
                    if T::MEMBERS.contains(&&*name) {
                        continue;
                    }
                    if !names.insert(name.clone()) {
                        return Err(de::Error::custom(format_args!("{name}: appears twice")));
                    }
                    let value = Json::parse(text).map_err(de::Error::custom)?;
                    members.push(Member { name, value });
                }
                Ok(Unknown::of(members))
            }
        }

        from.deserialize_unit_struct(crate::objects::UNKNOWN, Collected(PhantomData))
    }
}

/// Declares an object of the model that keeps its unknown members. Serde's own flattening would read them through a buffer,
/// in which numbers lose their spelling; so they are flattened when written, and collected by `Objects` when read.
macro_rules! open_object {
    (
        $(#[doc = $doc:literal])*
        pub struct $name:ident { $($(#[$attribute:meta])* pub $field:ident: $type:ty,)* }
        knows $members:expr
    ) => {
        $(#[doc = $doc])*
        #[derive(Clone, Debug, PartialEq, serde::Serialize)]
        #[serde(rename_all = "camelCase")]
        pub struct $name {
            $($(#[$attribute])* pub $field: $type,)*
            /// The members that no version of the protocol has.
            #[serde(flatten)]
            pub unknown: crate::Unknown<$name>,
        }

        impl crate::OpenObject for $name {
            const MEMBERS: &'static [&'static str] = &$members;
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                #[derive(serde::Deserialize)]
                #[serde(rename_all = "camelCase")]
                struct Members {
                    $($(#[$attribute])* $field: $type,)*
                    #[serde(default, rename = "$unknown")]
                    unknown: crate::Unknown<$name>,
                }

                let Members { $($field,)* unknown } = Members::deserialize(from)?;
                Ok(Self { $($field,)* unknown })
            }
        }
    };
}

pub(crate) use open_object;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::objects::from_json;
    use crate::{Message, Part, StatusChange, Task};

    const MESSAGE: &str = concat!(
        r#"{"messageId":"m","role":"ROLE_USER","parts":[{"text":"a","x-part":[1.0e5, 0.10]}],"#,
        r#""x-big":12345678901234567890,"\u00e9\n":"\u0041","null":null}"#
    );

    #[test]
    fn they_come_back_in_their_order_and_spelling() {
        let message: Message = from_json(MESSAGE).unwrap();
        let names: Vec<_> = message.unknown.iter().map(|(name, value)| (name, value.text())).collect();
        assert_eq!(names, [("x-big", "12345678901234567890"), ("é\n", r#""\u0041""#), ("null", "null")]);
        // A name is written in the plain spelling; it is the value that is kept to the byte.
        assert_eq!(serde_json::to_string(&message).unwrap(), MESSAGE.replace(r"\u00e9", "é"));
    }

    #[test]
    fn what_another_version_has_by_that_name_is_not_unknown() {
        let text =
            r#"{"messageId":"m","role":1,"parts":[{"text":"a","kind":"data","file":{}}],"kind":"task","content":[],"x":1}"#;
        let message: Message = from_json(text).unwrap();
        let expected = r#"{"messageId":"m","role":"ROLE_USER","parts":[{"text":"a"}],"x":1}"#;
        assert_eq!(serde_json::to_string(&message).unwrap(), expected);
    }

    #[test]
    fn they_cannot_be_sent_ready_made() {
        let text = r#"{"text":"a","$unknown":{"url":"\"b\""}}"#;
        assert!(serde_json::from_str::<Part>(text).is_err());
        let part: Part = from_json(text).unwrap();
        assert_eq!(part.unknown.get("$unknown").unwrap().text(), r#"{"url":"\"b\""}"#);
        assert_eq!(serde_json::to_string(&part).unwrap(), text);
    }

    #[test]
    fn one_name_is_one_member() {
        assert!(from_json::<Part>(r#"{"text":"a","x":1,"\u0078":2}"#).unwrap_err().to_string().contains("x: appears twice"));
    }

    #[test]
    fn names_that_the_protocol_has_are_not_taken_in() {
        let json = || Json::parse("1".into()).unwrap();
        let mut on_task = Unknown::<Task>::none();
        assert!(!on_task.insert("history", json()));
        assert!(on_task.insert("final", json()) && on_task.insert("x", json()));
        let on_update = Unknown::<StatusChange>::from_other(&on_task);
        assert_eq!(on_update.iter().map(|(name, _)| name).collect::<Vec<_>>(), ["x"]);
    }

    #[test]
    fn none_of_them_costs_a_word() {
        assert_eq!(size_of::<Unknown<Task>>(), size_of::<usize>());
        assert_eq!(Unknown::<Task>::none().weight(), 0);
    }
}
