//! Messages and the parts they are made of.

use bytes::Bytes;
use serde::de::{self, Deserializer};
use serde::ser::{SerializeMap, Serializer};
use serde::{Deserialize, Serialize};

use crate::lenient::{AsBase64, Base64, non_empty, null_default, present};
use crate::unknown::open_object;
use crate::{ContextId, Json, MessageId, Metadata, OpenObject, TaskId, Unknown};

/// The side that a message comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// The client.
    User,
    /// The agent.
    Agent,
}

impl Role {
    /// Returns the name in JSON, such as `ROLE_USER`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::User => "ROLE_USER",
            Self::Agent => "ROLE_AGENT",
        }
    }
}

impl Serialize for Role {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(self.name())
    }
}

impl<'de> Deserialize<'de> for Role {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        crate::task::enum_value(from, "ROLE_USER or ROLE_AGENT", |name, number| match (name, number) {
            (Some("ROLE_USER"), _) | (_, Some(1)) => Some(Self::User),
            (Some("ROLE_AGENT"), _) | (_, Some(2)) => Some(Self::Agent),
            _ => None,
        })
    }
}

open_object! {
    /// A message between a client and an agent.
    pub struct Message {
        /// The id that the sender gave the message.
        #[serde(alias = "message_id")]
        pub message_id: MessageId,
        /// The context of the message.
        #[serde(default, alias = "context_id", deserialize_with = "non_empty", skip_serializing_if = "Option::is_none")]
        pub context_id: Option<ContextId>,
        /// The task that the message continues.
        #[serde(default, alias = "task_id", deserialize_with = "non_empty", skip_serializing_if = "Option::is_none")]
        pub task_id: Option<TaskId>,
        /// The side that sent the message.
        pub role: Role,
        /// The content.
        #[serde(default, deserialize_with = "null_default")]
        pub parts: Vec<Part>,
        /// The metadata of the message.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub metadata: Option<Metadata>,
        /// The URIs of the extensions that the message uses.
        #[serde(default, deserialize_with = "null_default", skip_serializing_if = "Vec::is_empty")]
        pub extensions: Vec<String>,
        /// Other tasks that the message refers to.
        #[serde(default, alias = "reference_task_ids", deserialize_with = "null_default", skip_serializing_if = "Vec::is_empty")]
        pub reference_task_ids: Vec<TaskId>,
    }
    knows [
        "kind", "messageId", "message_id", "contextId", "context_id", "taskId", "task_id", "role", "parts",
        "content", "metadata", "extensions", "referenceTaskIds", "reference_task_ids",
    ]
}

impl Message {
    /// A message of one text part; ids are filled in where it is recorded.
    pub fn text(role: Role, message_id: impl Into<MessageId>, text: impl Into<String>) -> Self {
        Self::of_parts(role, message_id, vec![Part::text(text)])
    }

    /// Makes a message of some parts.
    pub fn of_parts(role: Role, message_id: impl Into<MessageId>, parts: Vec<Part>) -> Self {
        Self {
            message_id: message_id.into(),
            context_id: None,
            task_id: None,
            role,
            parts,
            metadata: None,
            extensions: Vec::new(),
            reference_task_ids: Vec::new(),
            unknown: Unknown::none(),
        }
    }

    /// The text of the first text part.
    pub fn first_text(&self) -> Option<&str> {
        self.parts.iter().find_map(Part::as_text)
    }
}

/// One piece of content: text, bytes, a link or data, with what is known about it.
#[derive(Clone, Debug, PartialEq)]
pub struct Part {
    /// The content.
    pub content: PartContent,
    /// The metadata of the part.
    pub metadata: Option<Metadata>,
    /// The name of the file that the content is from.
    pub filename: Option<String>,
    /// The media type of the content.
    pub media_type: Option<String>,
    /// The members that no version of the protocol has.
    pub unknown: Unknown<Part>,
}

impl OpenObject for Part {
    const MEMBERS: &'static [&'static str] =
        &["kind", "type", "text", "raw", "url", "data", "file", "metadata", "filename", "mediaType", "media_type"];
}

/// The content of a part.
#[derive(Clone, Debug, PartialEq)]
pub enum PartContent {
    /// Text.
    Text(String),
    /// Bytes.
    Raw(Bytes),
    /// The URL of the content.
    Url(String),
    /// A JSON value.
    Data(Json),
}

impl Part {
    /// Makes a part of some content.
    pub fn new(content: PartContent) -> Self {
        Self { content, metadata: None, filename: None, media_type: None, unknown: Unknown::none() }
    }

    /// Makes a part of text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::new(PartContent::Text(text.into()))
    }

    /// A part of structured data.
    pub fn data(value: &serde_json::Value) -> Self {
        Self::new(PartContent::Data(Json::from_value(value)))
    }

    /// A part of bytes. [`Part::of_media_type`] says how to read them.
    pub fn raw(bytes: impl Into<Bytes>) -> Self {
        Self::new(PartContent::Raw(bytes.into()))
    }

    /// A part whose content is at a URL.
    pub fn url(url: impl Into<String>) -> Self {
        Self::new(PartContent::Url(url.into()))
    }

    /// Sets the file name of the part.
    #[must_use]
    pub fn named(mut self, filename: impl Into<String>) -> Self {
        self.filename = Some(filename.into());
        self
    }

    /// Sets the media type of the part.
    #[must_use]
    pub fn of_media_type(mut self, media_type: impl Into<String>) -> Self {
        self.media_type = Some(media_type.into());
        self
    }

    /// Returns the text of a text part.
    pub fn as_text(&self) -> Option<&str> {
        match &self.content {
            PartContent::Text(text) => Some(text),
            _ => None,
        }
    }
}

impl Serialize for Part {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut map = to.serialize_map(None)?;
        match &self.content {
            PartContent::Text(text) => map.serialize_entry("text", text)?,
            PartContent::Raw(bytes) => map.serialize_entry("raw", &AsBase64(bytes))?,
            PartContent::Url(url) => map.serialize_entry("url", url)?,
            PartContent::Data(json) => map.serialize_entry("data", json)?,
        }
        if let Some(metadata) = &self.metadata {
            map.serialize_entry("metadata", metadata)?;
        }
        if let Some(filename) = &self.filename {
            map.serialize_entry("filename", filename)?;
        }
        if let Some(media_type) = &self.media_type {
            map.serialize_entry("mediaType", media_type)?;
        }
        for (name, value) in self.unknown.iter() {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for Part {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Members {
            #[serde(default)]
            text: Option<String>,
            #[serde(default)]
            raw: Option<Base64>,
            #[serde(default)]
            url: Option<String>,
            #[serde(default, deserialize_with = "present")]
            data: Option<Json>,
            #[serde(default)]
            metadata: Option<Metadata>,
            #[serde(default, deserialize_with = "non_empty")]
            filename: Option<String>,
            #[serde(default, alias = "media_type", deserialize_with = "non_empty")]
            media_type: Option<String>,
            #[serde(default, rename = "$unknown")]
            unknown: Unknown<Part>,
        }

        let Members { text, raw, url, data, metadata, filename, media_type, unknown } = Members::deserialize(from)?;
        let content = match (text, raw, url, data) {
            (Some(text), None, None, None) => PartContent::Text(text),
            (None, Some(Base64(bytes)), None, None) => PartContent::Raw(bytes),
            (None, None, Some(url), None) => PartContent::Url(url),
            (None, None, None, Some(json)) => PartContent::Data(json),
            _ => return Err(de::Error::custom("a part has exactly one of text, raw, url and data")),
        };
        Ok(Self { content, metadata, filename, media_type, unknown })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(text: &str) -> Result<Part, serde_json::Error> {
        serde_json::from_str(text)
    }

    #[test]
    fn a_part_is_exactly_one_kind_of_content() {
        assert_eq!(part(r#"{"text":""}"#).unwrap().as_text(), Some(""));
        assert!(part(r#"{"text":"a","url":"b"}"#).is_err());
        assert!(part("{}").is_err());
        assert!(part(r#"{"text":null}"#).is_err());
    }

    #[test]
    fn bytes_and_links_are_made_with_their_name_and_media_type() {
        let raw = Part::raw(&b"\xfb\xff"[..]).named("a.bin").of_media_type("application/octet-stream");
        let written = r#"{"raw":"+/8=","filename":"a.bin","mediaType":"application/octet-stream"}"#;
        assert_eq!(serde_json::to_string(&raw).unwrap(), written);
        assert_eq!(part(written).unwrap(), raw);
        let url = Part::url("https://example.org/a").named("a");
        assert_eq!(part(r#"{"url":"https://example.org/a","filename":"a"}"#).unwrap(), url);
    }

    #[test]
    fn null_is_data() {
        let null = part(r#"{"data":null}"#).unwrap();
        assert_eq!(serde_json::to_string(&null).unwrap(), r#"{"data":null}"#);
    }

    #[test]
    fn both_base64_alphabets_are_read_and_the_standard_one_is_written() {
        for text in [r#"{"raw":"-_8="}"#, r#"{"raw":"+/8"}"#] {
            assert_eq!(serde_json::to_string(&part(text).unwrap()).unwrap(), r#"{"raw":"+/8="}"#);
        }
        assert!(part(r#"{"raw":"%%"}"#).is_err());
    }

    #[test]
    fn both_spellings_of_a_member_are_read() {
        let text = r#"{"message_id":"m","context_id":"","role":1,"parts":[{"text":"x","media_type":"text/plain"}]}"#;
        let message: Message = serde_json::from_str(text).unwrap();
        let written = serde_json::to_string(&message).unwrap();
        assert_eq!(written, r#"{"messageId":"m","role":"ROLE_USER","parts":[{"text":"x","mediaType":"text/plain"}]}"#);
    }

    #[test]
    fn unknown_roles_are_refused() {
        let fault = serde_json::from_str::<Message>(r#"{"messageId":"m","role":"ROLE_KING","parts":[]}"#).unwrap_err();
        assert!(fault.to_string().contains("ROLE_KING"), "{fault}");
    }
}
