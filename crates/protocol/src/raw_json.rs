//! JSON we carry without looking inside: `metadata`, `data`, extension parameters.

use std::fmt;

use serde::de::{self, Deserializer};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// Any JSON value, kept as the text it arrived in.
#[derive(Clone, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Json(Box<RawValue>);

impl Json {
    /// The value as text. It is valid JSON by construction.
    pub fn text(&self) -> &str {
        self.0.get()
    }

    pub fn parse(text: String) -> Result<Self, serde_json::Error> {
        RawValue::from_string(text).map(Self)
    }

    pub fn from_value(value: &serde_json::Value) -> Self {
        // A `Value` always prints as valid JSON; `null` stands in for what cannot happen.
        serde_json::value::to_raw_value(value).map_or_else(|_| Self(RawValue::NULL.to_owned()), Self)
    }

    pub fn to_value(&self) -> serde_json::Value {
        serde_json::from_str(self.text()).unwrap_or_default()
    }

    pub fn is_object(&self) -> bool {
        self.text().starts_with('{')
    }
}

impl PartialEq for Json {
    /// Same value, whatever the spacing and member order.
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
    pub fn text(&self) -> &str {
        self.0.text()
    }

    pub fn from_object(object: serde_json::Map<String, serde_json::Value>) -> Self {
        Self(Json::from_value(&serde_json::Value::Object(object)))
    }

    pub fn to_object(&self) -> serde_json::Map<String, serde_json::Value> {
        match self.0.to_value() {
            serde_json::Value::Object(object) => object,
            _ => serde_json::Map::new(),
        }
    }

    /// The same with one more member, or with another value of that name. What else is in it stays as it was written.
    #[must_use]
    pub fn with_member(&self, name: &str, value: &Json) -> Self {
        let text = self.text();
        // Escapes could spell the name in another way; an object that has any is looked at member by member.
        if text.contains(name) || text.contains('\\') {
            let mut object = self.to_object();
            object.insert(name.to_owned(), value.to_value());
            return Self::from_object(object);
        }
        let inside = text.trim().trim_start_matches('{').trim_end_matches('}').trim();
        let body = text.trim().strip_suffix('}').unwrap_or("{").trim_end();
        let comma = if inside.is_empty() { "" } else { "," };
        let name = serde_json::Value::from(name);
        // Valid because both parts are; what was there before stands in for what cannot happen.
        Json::parse(format!("{body}{comma}{name}:{}}}", value.text())).map_or_else(|_| self.clone(), Self)
    }

    /// One member, if there is one by that name.
    pub fn get(&self, member: &str) -> Option<serde_json::Value> {
        self.to_object().remove(member)
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

#[cfg(test)]
mod tests {
    use super::*;

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
    fn a_member_is_added_and_the_rest_stays_as_it_was_written() {
        let value = Json::parse("{\"x\":1}".into()).unwrap();
        for (before, after) in [
            ("{}", r#"{"a b":{"x":1}}"#),
            ("{ }", r#"{"a b":{"x":1}}"#),
            (r#"{"n": 1.50e2}"#, r#"{"n": 1.50e2,"a b":{"x":1}}"#),
            (r#" {"n":{}} "#, r#"{"n":{},"a b":{"x":1}}"#),
            (r#"{"a b":7,"c":1}"#, r#"{"a b":{"x":1},"c":1}"#),
            (r#"{"a\u0020b":7}"#, r#"{"a b":{"x":1}}"#),
        ] {
            let metadata: Metadata = serde_json::from_str(before).unwrap();
            assert_eq!(metadata.with_member("a b", &value).text(), after, "{before}");
        }
    }

    #[test]
    fn equality_is_by_value() {
        let left = Json::parse(r#"{"a":1,"b":2}"#.into()).unwrap();
        let right = Json::parse(r#"{ "b":2, "a":1 }"#.into()).unwrap();
        assert_eq!(left, right);
    }
}
