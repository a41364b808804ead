//! JSON we carry without looking inside: `metadata`, `data`, extension parameters.

mod members;

use std::borrow::Cow;
use std::fmt;

use serde::de::{self, Deserializer};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

pub use self::members::{Members, member, members, pick, quote_or_escape};

/// Any JSON value, kept as the text it arrived in.
#[derive(Clone, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Json(Box<RawValue>);

impl Json {
    /// The value as text. It is valid JSON by construction.
    pub fn text(&self) -> &str {
        self.0.get()
    }

    /// Reads a text that must be one JSON value, and keeps its spelling.
    pub fn parse(text: String) -> Result<Self, serde_json::Error> {
        RawValue::from_string(text).map(Self)
    }

    /// Makes the text of a value.
    pub fn from_value(value: &serde_json::Value) -> Self {
        // A `Value` always prints as valid JSON; `null` stands in for what cannot happen.
        serde_json::value::to_raw_value(value).map_or_else(|_| Self(RawValue::NULL.to_owned()), Self)
    }

    /// Returns the value of the text.
    pub fn to_value(&self) -> serde_json::Value {
        serde_json::from_str(self.text()).unwrap_or_default()
    }

    /// Returns whether the text is a JSON object.
    pub fn is_object(&self) -> bool {
        self.text().starts_with('{')
    }

    /// A member of an object, as it is spelled there.
    pub fn member(&self, name: &str) -> Option<Self> {
        Self::parse(member(self.text(), name)?.to_owned()).ok()
    }
}

impl PartialEq for Json {
    /// Same value, regardless of spacing and member order.
    fn eq(&self, other: &Self) -> bool {
        self.text() == other.text() || self.to_value() == other.to_value()
    }
}

impl fmt::Debug for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

/// A JSON object, kept as the text it arrived in.
#[derive(Clone, PartialEq, Serialize)]
#[serde(transparent)]
pub struct Metadata(Json);

impl Metadata {
    /// Returns the JSON text.
    pub fn text(&self) -> &str {
        self.0.text()
    }

    /// Makes metadata of a JSON object.
    pub fn from_object(object: serde_json::Map<String, serde_json::Value>) -> Self {
        Self(Json::from_value(&serde_json::Value::Object(object)))
    }

    /// Returns the JSON object.
    pub fn to_object(&self) -> serde_json::Map<String, serde_json::Value> {
        match self.0.to_value() {
            serde_json::Value::Object(object) => object,
            _ => serde_json::Map::new(),
        }
    }

    /// What prints as an object. Anything else is an empty one.
    pub fn of(object: &impl Serialize) -> Self {
        let printed = serde_json::value::to_raw_value(object).ok().filter(|raw| raw.get().starts_with('{'));
        printed.map_or_else(Self::empty, |raw| Self(Json(raw)))
    }

    /// One member, if there is one by that name.
    pub fn get(&self, member: &str) -> Option<serde_json::Value> {
        self.member(member).map(|value| value.to_value())
    }

    /// Makes metadata without members.
    pub fn empty() -> Self {
        Self::from_object(serde_json::Map::new())
    }

    /// The same as JSON of any kind.
    pub fn into_json(self) -> Json {
        self.0
    }

    /// One member as it is spelled there.
    pub fn member(&self, name: &str) -> Option<Json> {
        self.0.member(name)
    }

    /// All members as they are spelled.
    pub fn members(&self) -> Members<'_> {
        members(self.text())
    }

    /// With one member set, the others as they are spelled.
    pub fn with(&self, name: &str, value: Json) -> Self {
        let mut members = RawMembers::of(self);
        members.set(name.into(), value.text());
        members.to_metadata()
    }

    /// With all members of a newer one set, everything as it is spelled.
    pub fn merged(&self, newer: &Self) -> Self {
        let mut members = RawMembers::of(self);
        newer.members().for_each(|(name, value)| members.set(name, value));
        members.to_metadata()
    }

    /// Without one member; nothing, if that was the only one.
    pub fn without(&self, name: &str) -> Option<Self> {
        self.retained(|known, _| known != name)
    }

    /// Only the members that are kept, by their names and texts; nothing, if none is.
    pub fn retained(&self, mut keep: impl FnMut(&str, &str) -> bool) -> Option<Self> {
        let kept = RawMembers(self.members().filter(|(name, value)| keep(name, value)).collect());
        (!kept.0.is_empty()).then(|| kept.to_metadata())
    }
}

impl TryFrom<Json> for Metadata {
    type Error = &'static str;

    fn try_from(json: Json) -> Result<Self, Self::Error> {
        if json.is_object() { Ok(Self(json)) } else { Err("must be a JSON object") }
    }
}

impl<'de> Deserialize<'de> for Metadata {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        Self::try_from(Json::deserialize(from)?).map_err(de::Error::custom)
    }
}

impl fmt::Debug for Metadata {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

/// The members of an object in their order, each value as its text. Nothing of them is copied.
struct RawMembers<'a>(Vec<(Cow<'a, str>, &'a str)>);

impl<'a> RawMembers<'a> {
    fn of(metadata: &'a Metadata) -> Self {
        Self(metadata.members().collect())
    }

    fn set(&mut self, name: Cow<'a, str>, value: &'a str) {
        match self.0.iter_mut().find(|(known, _)| *known == name) {
            Some((_, known)) => *known = value,
            None => self.0.push((name, value)),
        }
    }

    fn to_metadata(&self) -> Metadata {
        let mut text = String::from("{");
        for (name, value) in &self.0 {
            let separator = if text.len() > 1 { "," } else { "" };
            text.extend([separator, &serde_json::Value::from(&**name).to_string(), ":", value]);
        }
        text.push('}');
        // Put together from what is JSON, it is JSON.
        Json::parse(text).map_or_else(|_| Metadata::empty(), Metadata)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_set_and_taken_away_without_another_spelling_of_the_rest() {
        let metadata = |text: &str| serde_json::from_str::<Metadata>(text).unwrap();
        let said = metadata(r#"{"b": 1.0e5, "a":{"n":12345678901234567890}}"#);
        let json = |text: &str| Json::parse(text.into()).unwrap();
        assert_eq!(said.with("c", json("0.10")).text(), r#"{"b":1.0e5,"a":{"n":12345678901234567890},"c":0.10}"#);
        assert_eq!(said.merged(&metadata(r#"{"b":2.0,"d":[ ]}"#)).text(), r#"{"b":2.0,"a":{"n":12345678901234567890},"d":[ ]}"#);
        assert_eq!(said.without("a").unwrap().text(), r#"{"b":1.0e5}"#);
        assert_eq!(metadata(r#"{"a":1}"#).without("a"), None);
        assert_eq!(said.member("b").unwrap().text(), "1.0e5");
        assert_eq!(json("[1]").member("b"), None);
    }

    #[test]
    fn metadata_keeps_its_text_and_refuses_what_is_no_object() {
        let text = r#"{"b": 1.50, "a":[1,2]}"#;
        let metadata: Metadata = serde_json::from_str(text).unwrap();
        assert_eq!(metadata.text(), text);
        assert_eq!(serde_json::to_string(&metadata).unwrap(), text);
        assert!(serde_json::from_str::<Metadata>("[1]").is_err());
        assert!(serde_json::from_str::<Metadata>("7").is_err());
    }

    #[test]
    fn equality_is_by_value() {
        let left = Json::parse(r#"{"a":1,"b":2}"#.into()).unwrap();
        let right = Json::parse(r#"{ "b":2, "a":1 }"#.into()).unwrap();
        assert_eq!(left, right);
    }
}
