//! Parts as the JSON of the 0.3 proto writes them: no tag, a file or data in an object of its own.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use chancery_protocol::lenient::{AsBase64, Base64, non_empty};
use chancery_protocol::{Json, Metadata, Part, PartContent, Unknown};
use serde::de::{self, Deserializer};
use serde::ser::{SerializeMap, Serializer};
use serde::{Deserialize, Serialize};

use crate::json::part::{FileObject, Wrapper, marked, unwrapped, with_unknown};

pub(super) struct PartView<'a>(pub &'a Part);

impl Serialize for PartView<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let part = self.0;
        let mut map = to.serialize_map(None)?;
        match &part.content {
            PartContent::Text(text) => map.serialize_entry("text", text)?,
            PartContent::Raw(bytes) => {
                map.serialize_entry("file", &FileObject { member: "fileWithBytes", content: AsBase64(bytes), part })?;
            }
            PartContent::Url(url) => {
                map.serialize_entry("file", &FileObject { member: "fileWithUri", content: url, part })?;
            }
            PartContent::Data(json) if json.is_object() => map.serialize_entry("data", &Data { data: json })?,
            PartContent::Data(json) => {
                map.serialize_entry("data", &Data { data: Wrapper::around(json) })?;
                map.serialize_entry("metadata", &marked(part.metadata.as_ref()))?;
                return with_unknown(map, part);
            }
        }
        if let Some(metadata) = &part.metadata {
            map.serialize_entry("metadata", metadata)?;
        }
        with_unknown(map, part)
    }
}

#[derive(Serialize)]
struct Data<T> {
    data: T,
}

#[derive(Deserialize)]
struct Members {
    text: Option<String>,
    file: Option<FileMembers>,
    data: Option<DataMembers>,
    metadata: Option<Metadata>,
    #[serde(default, rename = "$unknown")]
    unknown: Unknown<Part>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct FileMembers {
    #[serde(alias = "file_with_uri")]
    file_with_uri: Option<String>,
    #[serde(alias = "file_with_bytes")]
    file_with_bytes: Option<Base64>,
    #[serde(default, alias = "mime_type", deserialize_with = "non_empty")]
    mime_type: Option<String>,
    #[serde(default, deserialize_with = "non_empty")]
    name: Option<String>,
}

#[derive(Deserialize)]
struct DataMembers {
    data: Json,
}

#[derive(Debug)]
pub(super) struct PartRead(pub Part);

impl<'de> Deserialize<'de> for PartRead {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let members = Members::deserialize(from)?;
        let (metadata, unknown) = (members.metadata, members.unknown);
        Ok(Self(match (members.text, members.file, members.data) {
            (Some(text), None, None) => Part { metadata, unknown, ..Part::text(text) },
            (None, Some(file), None) => {
                let content = match (file.file_with_bytes, file.file_with_uri) {
                    (Some(Base64(bytes)), None) => PartContent::Raw(plain(bytes, file.mime_type.as_deref())),
                    (None, Some(uri)) => PartContent::Url(uri),
                    _ => return Err(de::Error::custom("a file has exactly one of fileWithBytes and fileWithUri")),
                };
                Part { content, metadata, filename: file.name, media_type: file.mime_type, unknown }
            }
            (None, None, Some(DataMembers { data })) if data.is_object() => {
                let (data, metadata) = unwrapped(data, metadata);
                Part { metadata, unknown, ..Part::new(PartContent::Data(data)) }
            }
            (None, None, Some(_)) => return Err(de::Error::custom("data must be a JSON object")),
            _ => return Err(de::Error::custom("a part has exactly one of text, file and data")),
        }))
    }
}

impl From<PartRead> for Part {
    fn from(PartRead(part): PartRead) -> Self {
        part
    }
}

/// Twice-encoded text as short as this may just be a word.
const LONGER_THAN_A_WORD: usize = 32;

/// The official Python SDK puts the base64 *text* of a file where its bytes belong, so over REST it arrives encoded twice;
/// the JavaScript one encodes it once. Bytes that are themselves exact base64 are taken for the former, unless that would
/// turn a short text into noise. A guess: a file that holds nothing but base64 is taken for what it encodes.
pub(crate) fn plain(bytes: Bytes, media_type: Option<&str>) -> Bytes {
    if bytes.is_empty() {
        return bytes;
    }
    // The standard engine takes only the canonical form: its alphabet, full padding, no stray bits.
    let Ok(inner) = STANDARD.decode(&bytes) else {
        return bytes;
    };
    let binary = media_type.is_some_and(|name| !name.starts_with("text/") && !name.ends_with("json"));
    if binary || bytes.len() >= LONGER_THAN_A_WORD || is_text(&inner) { inner.into() } else { bytes }
}

fn is_text(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).is_ok_and(|text| text.chars().all(|one| !one.is_control() || one.is_ascii_whitespace()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Part, serde_json::Error> {
        serde_json::from_str(text).map(|PartRead(part)| part)
    }

    fn file(bytes: &str, mime: &str) -> PartContent {
        let text = format!(r#"{{"file":{{"file_with_bytes":"{}","mimeType":"{mime}"}}}}"#, STANDARD.encode(bytes));
        read(&text).unwrap().content
    }

    #[test]
    fn bytes_encoded_twice_are_read_like_bytes_encoded_once() {
        let raw = |bytes: &'static [u8]| PartContent::Raw(Bytes::from_static(bytes));
        assert_eq!(file("dGNr", "text/plain"), raw(b"tck"));
        assert_eq!(file("iVBORw0K", "image/png"), raw(b"\x89PNG\r\n"));
        assert_eq!(file("tck", "text/plain"), raw(b"tck"));
        assert_eq!(file("{\"a\":1}", "application/json"), raw(b"{\"a\":1}"));
    }

    #[test]
    fn a_short_text_that_happens_to_be_base64_stays_text() {
        for word in ["test", "text", "ping", "data"] {
            assert_eq!(file(word, "text/plain"), PartContent::Raw(Bytes::copy_from_slice(word.as_bytes())));
            assert_eq!(file(word, ""), PartContent::Raw(Bytes::copy_from_slice(word.as_bytes())));
        }
    }

    #[test]
    fn what_is_written_comes_back() {
        for text in [
            r#"{"text":""}"#,
            r#"{"file":{"fileWithUri":"http://h/x","mimeType":"a/b","name":"n"}}"#,
            r#"{"file":{"fileWithBytes":"/wD/"}}"#,
            r#"{"data":{"data":{"a":1}},"metadata":{"m":1}}"#,
            r#"{"data":{"data":{"value":null}},"metadata":{"data_part_compat":true}}"#,
        ] {
            assert_eq!(serde_json::to_string(&PartView(&read(text).unwrap())).unwrap(), text);
        }
        for text in ["{}", r#"{"data":{"data":1}}"#, r#"{"text":"a","file":{"fileWithUri":"b"}}"#, r#"{"file":{}}"#] {
            assert!(read(text).is_err(), "{text}");
        }
    }
}
