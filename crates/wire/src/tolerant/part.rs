//! Parts: what the content member says counts, in the form of any version.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use chancery_protocol::lenient::Base64;
use chancery_protocol::raw_json::members;
use chancery_protocol::{Json, Metadata, Version};

use super::object::{ObjectMembers, string};
use super::unreadable::{MemberFault, join};
use super::{Leniency, Rewriter};
use crate::json::part::unwrapped;
use crate::json::v0_3::rest::part::plain;

const CONTENT: [&str; 5] = ["text", "raw", "url", "data", "file"];
const ONE_CONTENT: &str = "a part has exactly one of text, raw, url, data and file";

impl Rewriter {
    pub(super) fn part(&mut self, raw: &str, path: &str) -> Result<(), MemberFault> {
        self.open();
        if raw.starts_with('"') {
            self.note(Leniency::TextForObject);
            self.member("text", raw);
            self.close();
            return Ok(());
        }
        let mut object = ObjectMembers::read(raw, path)?;
        let tag = self.tag_of_part(&mut object, path)?;
        let content = content(&object, tag.as_deref()).ok_or_else(|| MemberFault::new(path, ONE_CONTENT))?;
        for other in CONTENT.iter().filter(|name| **name != content) {
            self.take(&mut object, path, &[other])?;
        }
        // `null` is a value in the one place where it is all there is.
        let raw =
            if content == "data" && !object.has(&["data"]) { Some("null") } else { self.take(&mut object, path, &[content])? };
        let raw = raw.ok_or_else(|| MemberFault::new(path, ONE_CONTENT))?;
        match content {
            "data" => return self.data_part(object, raw, tag.is_some(), path),
            "file" => self.file(&mut object, raw, path)?,
            "text" => {
                self.text_member("text", raw, path)?;
                self.describe(&mut object, path)?;
            }
            name => {
                self.note_tagless();
                self.text_member(name, raw, path)?;
                self.describe(&mut object, path)?;
            }
        }
        self.metadata(&mut object, path)?;
        self.close_with(object);
        Ok(())
    }

    /// The tag of a part, which earlier versions have and 1.0 has not.
    fn tag_of_part(&mut self, object: &mut ObjectMembers<'_>, path: &str) -> Result<Option<String>, MemberFault> {
        let kind = self.take(object, path, &["kind"])?;
        let tag = match kind {
            Some(kind) => Some(kind),
            None => self.take(object, path, &["type"])?,
        };
        match (self.claimed.version, tag) {
            (Version::V0_3, None) if !self.claimed.is_rest => self.note(Leniency::NoKind),
            (Version::V1_0, Some(_)) => self.note_spelling(),
            _ => {}
        }
        Ok(tag.and_then(string).map(|tag| tag.to_ascii_lowercase()))
    }

    /// `raw` and `url` are words of 1.0.
    fn note_tagless(&mut self) {
        if self.claimed.version == Version::V0_3 {
            self.note_spelling();
        }
    }

    fn describe(&mut self, object: &mut ObjectMembers<'_>, path: &str) -> Result<(), MemberFault> {
        self.optional_text(object, path, &["filename"])?;
        self.optional_text(object, path, &["mediaType", "media_type", "mimeType", "mime_type"])
    }

    /// A file in an object of its own.
    fn file(&mut self, object: &mut ObjectMembers<'_>, raw: &str, path: &str) -> Result<(), MemberFault> {
        if self.claimed.version == Version::V1_0 {
            self.note_spelling();
        }
        let path = join(path, "file");
        let mut file = ObjectMembers::read(raw, &path)?;
        let is_proto = file.has(&["fileWithBytes", "file_with_bytes"]);
        let is_there = |raw: &&str| *raw != r#""""#;
        let mut bytes = self.take(&mut file, &path, &["bytes", "fileWithBytes", "file_with_bytes", "raw"])?;
        let mut uri = self.take(&mut file, &path, &["uri", "fileWithUri", "file_with_uri", "url"])?;
        if bytes.is_some() && uri.is_some() {
            (bytes, uri) = (bytes.filter(is_there), uri.filter(is_there));
        }
        let media_type = self.take(&mut file, &path, &["mimeType", "mime_type", "mediaType", "media_type"])?;
        match (bytes, uri) {
            (Some(raw), None) if is_proto => self.bytes_of_proto(raw, media_type, &path)?,
            (Some(raw), None) => self.text_member("raw", raw, &path)?,
            (None, Some(raw)) => self.text_member("url", raw, &path)?,
            _ => return Err(MemberFault::new(&path, "a file has exactly one of bytes and uri")),
        }
        let name = self.take(&mut file, &path, &["name", "filename"])?;
        self.take(object, &path, &["filename"])?;
        self.take(object, &path, &["mediaType", "media_type"])?;
        for (member, raw) in [("filename", name), ("mediaType", media_type)] {
            if raw.is_some_and(|raw| self.text_member(member, raw, &path).is_err()) {
                self.note(Leniency::DroppedMember);
            }
        }
        Ok(())
    }

    /// The bytes of a file over 0.3 REST, which some SDKs encode twice.
    fn bytes_of_proto(&mut self, raw: &str, media_type: Option<&str>, path: &str) -> Result<(), MemberFault> {
        let fault = |_| MemberFault { path: join(path, "bytes"), reason: "not base64".to_owned() };
        let Base64(bytes) = serde_json::from_str(raw).map_err(fault)?;
        let bytes = plain(bytes, media_type.and_then(string).as_deref());
        self.key("raw");
        self.out.extend(["\"", &STANDARD.encode(&bytes), "\""]);
        Ok(())
    }

    /// Data of any kind. Earlier versions put what is no object into one, and mark that in the metadata.
    fn data_part(
        &mut self,
        mut object: ObjectMembers<'_>,
        mut raw: &str,
        is_tagged: bool,
        path: &str,
    ) -> Result<(), MemberFault> {
        if self.claimed.is_rest && self.claimed.version == Version::V0_3 {
            raw = data_of_proto(raw).unwrap_or(raw);
        }
        let metadata = self.take(&mut object, path, &["metadata"])?;
        let parsed = metadata.and_then(|raw| serde_json::from_str::<Metadata>(raw).ok());
        if metadata.is_some() && parsed.is_none() {
            self.note(Leniency::DroppedMember);
        }
        let is_older = is_tagged || self.claimed.version != Version::V1_0;
        match Json::parse(raw.to_owned()).ok().filter(|data| is_older && data.is_object()) {
            Some(data) => {
                let (data, metadata) = unwrapped(data, parsed);
                self.member("data", data.text());
                metadata.iter().for_each(|metadata| self.member("metadata", metadata.text()));
            }
            None => {
                self.member("data", raw);
                parsed.iter().for_each(|metadata| self.member("metadata", metadata.text()));
            }
        }
        self.describe(&mut object, path)?;
        self.close_with(object);
        Ok(())
    }
}

/// Which member holds the content: the only one that is there, or the one that the tag names.
fn content(object: &ObjectMembers<'_>, tag: Option<&str>) -> Option<&'static str> {
    let there: Vec<&'static str> = CONTENT.into_iter().filter(|name| object.has(&[name])).collect();
    // Serialisers of flat objects write what is not set as an empty string.
    let is_said = |name: &&&'static str| object.get(&[**name]) != Some(r#""""#);
    let said: Vec<&&'static str> = there.iter().filter(is_said).collect();
    match (&there[..], &said[..]) {
        ([one], _) => Some(one),
        (_, [one]) => Some(one),
        ([], _) => object.names().any(|name| name == "data").then_some("data"),
        (several, _) => several.iter().find(|name| Some(**name) == tag).copied(),
    }
}

/// The data inside an object that has nothing else: the form of the 0.3 proto.
fn data_of_proto(raw: &str) -> Option<&str> {
    let mut inside = members(raw);
    let (name, value) = inside.next()?;
    (name == "data" && value.starts_with('{') && inside.next().is_none()).then_some(value)
}
