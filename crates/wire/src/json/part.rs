//! Parts as the versions before 1.0 write them: told apart by a tag, files in an object of their own.

use std::fmt;

use chancery_protocol::lenient::{AsBase64, Base64, non_empty, present};
use chancery_protocol::{Json, Metadata, Part, PartContent, Unknown};
use serde::de::{self, Deserializer, IgnoredAny};
use serde::ser::{SerializeMap, Serializer};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use super::decode::from_json;

/// Marks data that was no object and had to be put into one.
const WRAPPED: &str = "data_part_compat";
const WRAPPER: &str = "value";

/// The name of the tag of parts that have none.
const UNTAGGED: &str = "";

/// A part to write, with the name of its tag.
pub(crate) struct Tagged<'a> {
    tag: &'static str,
    part: &'a Part,
}

/// As 0.2.2 and later tag it.
pub(crate) fn by_kind(part: &Part) -> Tagged<'_> {
    Tagged { tag: "kind", part }
}

/// As 1.0 writes it: without a tag, known by its content member.
pub(crate) fn untagged(part: &Part) -> Tagged<'_> {
    Tagged { tag: UNTAGGED, part }
}

/// As the original tags it.
pub(crate) fn by_type(part: &Part) -> Tagged<'_> {
    Tagged { tag: "type", part }
}

impl Serialize for Tagged<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        if self.tag == UNTAGGED {
            return self.part.serialize(to);
        }
        let mut map = to.serialize_map(None)?;
        match &self.part.content {
            PartContent::Text(text) => {
                map.serialize_entry(self.tag, "text")?;
                map.serialize_entry("text", text)?;
            }
            PartContent::Raw(bytes) => {
                map.serialize_entry(self.tag, "file")?;
                map.serialize_entry("file", &FileObject { member: "bytes", content: AsBase64(bytes), part: self.part })?;
            }
            PartContent::Url(url) => {
                map.serialize_entry(self.tag, "file")?;
                map.serialize_entry("file", &FileObject { member: "uri", content: url, part: self.part })?;
            }
            PartContent::Data(json) => {
                map.serialize_entry(self.tag, "data")?;
                if !json.is_object() {
                    map.serialize_entry("data", &Wrapper { value: json })?;
                    map.serialize_entry("metadata", &marked(self.part.metadata.as_ref()))?;
                    return with_unknown(map, self.part);
                }
                map.serialize_entry("data", json)?;
            }
        }
        if let Some(metadata) = &self.part.metadata {
            map.serialize_entry("metadata", metadata)?;
        }
        with_unknown(map, self.part)
    }
}

/// Ends a part with its unknown members.
pub(crate) fn with_unknown<M: SerializeMap>(mut map: M, part: &Part) -> Result<M::Ok, M::Error> {
    for (name, value) in part.unknown.iter() {
        map.serialize_entry(name, value)?;
    }
    map.end()
}

/// The object of a file: its content under the name that a form has for it, then its media type and its own name.
pub(crate) struct FileObject<'a, C> {
    pub(crate) member: &'static str,
    pub(crate) content: C,
    pub(crate) part: &'a Part,
}

impl<C: Serialize> Serialize for FileObject<'_, C> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut map = to.serialize_map(None)?;
        map.serialize_entry(self.member, &self.content)?;
        if let Some(media_type) = &self.part.media_type {
            map.serialize_entry("mimeType", media_type)?;
        }
        if let Some(name) = &self.part.filename {
            map.serialize_entry("name", name)?;
        }
        map.end()
    }
}

/// Data that is no object, in the object that older versions ask for.
#[derive(Serialize)]
pub(crate) struct Wrapper<'a> {
    value: &'a Json,
}

impl<'a> Wrapper<'a> {
    pub(crate) fn around(value: &'a Json) -> Self {
        Self { value }
    }
}

/// A wrapped part's metadata: what it had, and the mark.
pub(crate) fn marked(metadata: Option<&Metadata>) -> Metadata {
    metadata.cloned().unwrap_or_else(Metadata::empty).with(WRAPPED, Json::from_value(&Value::Bool(true)))
}

/// Takes data out of its wrapper again, if the mark says there is one.
pub(crate) fn unwrapped(data: Json, metadata: Option<Metadata>) -> (Json, Option<Metadata>) {
    let is_marked = |metadata: &&Metadata| metadata.member(WRAPPED).is_some_and(|mark| mark.text() == "true");
    let marked = metadata.as_ref().filter(|metadata| metadata.text().contains(WRAPPED)).filter(is_marked);
    match (marked.map(|marked| marked.without(WRAPPED)), data.member(WRAPPER)) {
        (Some(rest), Some(value)) => (value, rest),
        _ => (data, metadata),
    }
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Tag {
    Text,
    File,
    Data,
}

#[derive(Deserialize)]
struct Members {
    kind: Option<Tag>,
    r#type: Option<Tag>,
    text: Option<String>,
    file: Option<FileMembers>,
    #[serde(default, deserialize_with = "present")]
    data: Option<Json>,
    metadata: Option<Metadata>,
    #[serde(default, rename = "$unknown")]
    unknown: Unknown<Part>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct FileMembers {
    bytes: Option<Base64>,
    uri: Option<String>,
    #[serde(default, deserialize_with = "non_empty")]
    mime_type: Option<String>,
    #[serde(default, deserialize_with = "non_empty")]
    name: Option<String>,
}

/// A part that was read, tagged either way. `ANY_DATA` lets data be something else than an object.
pub(crate) struct Read<const ANY_DATA: bool>(pub Part);

impl<const ANY_DATA: bool> fmt::Debug for Read<ANY_DATA> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl<'de, const ANY_DATA: bool> Deserialize<'de> for Read<ANY_DATA> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let members = Members::deserialize(from)?;
        let missing = <D::Error as de::Error>::missing_field;
        let tag = members.kind.or(members.r#type).ok_or_else(|| missing("kind"))?;
        let (metadata, unknown) = (members.metadata, members.unknown);
        Ok(Self(match tag {
            Tag::Text => {
                let text = members.text.ok_or_else(|| missing("text"))?;
                Part { metadata, unknown, ..Part::text(text) }
            }
            Tag::File => {
                let file = members.file.ok_or_else(|| missing("file"))?;
                let content = match (file.bytes, file.uri) {
                    (Some(Base64(bytes)), None) => PartContent::Raw(bytes),
                    (None, Some(uri)) => PartContent::Url(uri),
                    _ => return Err(de::Error::custom("a file has exactly one of bytes and uri")),
                };
                Part { content, metadata, filename: file.name, media_type: file.mime_type, unknown }
            }
            Tag::Data => {
                let data = members.data.ok_or_else(|| missing("data"))?;
                if !ANY_DATA && !data.is_object() {
                    return Err(de::Error::custom("data must be a JSON object"));
                }
                let (data, metadata) = unwrapped(data, metadata);
                Part { metadata, unknown, ..Part::new(PartContent::Data(data)) }
            }
        }))
    }
}

impl<const ANY_DATA: bool> From<Read<ANY_DATA>> for Part {
    fn from(Read(part): Read<ANY_DATA>) -> Self {
        part
    }
}

/// A part whose tag may be missing where its content can be only one thing: a text, a file or data, as 0.3 or 1.0 write it.
pub(crate) struct ReadUntagged(Part);

impl<'de> Deserialize<'de> for ReadUntagged {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = Box::<RawValue>::deserialize(from)?;
        let names: ContentNames = serde_json::from_str(text.get()).map_err(de::Error::custom)?;
        let fault = |error: chancery_protocol::Error| de::Error::custom(error.message);
        let contents = [names.text, names.file, names.data, names.raw, names.url];
        match (names.kind.or(names.r#type), contents.iter().flatten().count()) {
            (Some(_), _) => from_json::<Read<false>>(text.get()).map(|Read(part)| Self(part)).map_err(fault),
            (None, 1) => match names.file {
                // The only content that 1.0 writes differently.
                Some(_) => {
                    let tagged = text.get().replacen('{', r#"{"kind":"file","#, 1);
                    from_json::<Read<false>>(&tagged).map(|Read(part)| Self(part)).map_err(fault)
                }
                None => from_json::<Part>(text.get()).map(Self).map_err(fault),
            },
            (None, _) => Err(de::Error::custom("a part without kind has exactly one of text, file, data, raw and url")),
        }
    }
}

impl From<ReadUntagged> for Part {
    fn from(ReadUntagged(part): ReadUntagged) -> Self {
        part
    }
}

/// The members of a part that say what it is. `null` does not count.
#[derive(Deserialize)]
struct ContentNames {
    kind: Option<IgnoredAny>,
    r#type: Option<IgnoredAny>,
    text: Option<IgnoredAny>,
    file: Option<IgnoredAny>,
    data: Option<IgnoredAny>,
    raw: Option<IgnoredAny>,
    url: Option<IgnoredAny>,
}

/// A list of parts, with nothing left of how they were read.
pub(crate) fn parts<const ANY_DATA: bool>(read: Vec<Read<ANY_DATA>>) -> Vec<Part> {
    read.into_iter().map(|Read(part)| part).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(part: &Part) -> String {
        serde_json::to_string(&by_kind(part)).unwrap()
    }

    fn read(text: &str) -> Result<Part, serde_json::Error> {
        serde_json::from_str::<Read<false>>(text).map(|Read(part)| part)
    }

    #[test]
    fn data_that_is_no_object_is_wrapped_and_comes_back() {
        let mut part = Part::data(&serde_json::json!([1, null]));
        assert_eq!(written(&part), r#"{"kind":"data","data":{"value":[1,null]},"metadata":{"data_part_compat":true}}"#);
        assert_eq!(read(&written(&part)).unwrap(), part);
        part.metadata = Some(serde_json::from_str(r#"{"a":1}"#).unwrap());
        assert_eq!(read(&written(&part)).unwrap(), part);
    }

    #[test]
    fn an_object_that_only_looks_wrapped_stays_as_it_is() {
        for metadata in [r#"{}"#, r#"{"data_part_compat":false}"#, r#"{"data_part_compat":"true"}"#] {
            let text = format!(r#"{{"kind":"data","data":{{"value":1}},"metadata":{metadata}}}"#);
            assert_eq!(written(&read(&text).unwrap()), text);
        }
    }

    #[test]
    fn either_tag_is_read_and_none_is_refused() {
        assert_eq!(read(r#"{"type":"text","text":""}"#).unwrap(), read(r#"{"kind":"text","text":""}"#).unwrap());
        assert!(read(r#"{"text":"a"}"#).unwrap_err().to_string().contains("`kind`"));
        assert!(read(r#"{"kind":"image","text":"a"}"#).is_err());
        assert!(read(r#"{"kind":"text","data":{}}"#).is_err());
    }

    #[test]
    fn a_file_is_either_bytes_or_a_uri() {
        assert!(read(r#"{"kind":"file","file":{"bytes":"aGk=","uri":null,"name":""}}"#).is_ok());
        assert!(read(r#"{"kind":"file","file":{"bytes":"aGk=","uri":"http://h"}}"#).is_err());
        assert!(read(r#"{"kind":"file","file":{"name":"n"}}"#).is_err());
        assert!(read(r#"{"kind":"file","file":{"bytes":"%"}}"#).is_err());
    }

    #[test]
    fn a_part_without_a_tag_is_what_its_only_content_says() {
        let read = |text: &str| serde_json::from_str::<ReadUntagged>(text).map(|ReadUntagged(part)| part);
        let tagged = |text: &str| serde_json::from_str::<Read<false>>(text).map(|Read(part)| part).unwrap();
        for (bare, whole) in [
            (r#"{"text":"a"}"#, r#"{"kind":"text","text":"a"}"#),
            (r#"{"data":{"a":1}}"#, r#"{"kind":"data","data":{"a":1}}"#),
            (r#"{"file":{"bytes":"aGk="}}"#, r#"{"kind":"file","file":{"bytes":"aGk="}}"#),
            (r#"{"raw":"aGk=","mediaType":"a/b"}"#, r#"{"kind":"file","file":{"bytes":"aGk=","mimeType":"a/b"}}"#),
            (r#"{"url":"http://h","filename":"n"}"#, r#"{"kind":"file","file":{"uri":"http://h","name":"n"}}"#),
            (r#"{"kind":"text","text":"a"}"#, r#"{"kind":"text","text":"a"}"#),
        ] {
            assert_eq!(read(bare).unwrap(), tagged(whole), "{bare}");
        }
        for unclear in
            ["{}", r#"{"text":"a","data":{}}"#, r#"{"kind":"image","text":"a"}"#, r#"{"text":7}"#, "7", r#"{"file":{}}"#]
        {
            assert!(read(unclear).is_err(), "{unclear}");
        }
    }

    #[test]
    fn only_the_original_takes_bare_data() {
        let text = r#"{"type":"data","data":7}"#;
        assert!(read(text).is_err());
        assert_eq!(serde_json::from_str::<Read<true>>(text).unwrap().0, Part::data(&serde_json::json!(7)));
    }
}
