//! The opaque octets of a message: what they are said to be, and the parts they stand for.

use std::sync::Arc;

use bytes::Bytes;
use chancery_protocol::{Error, ErrorKind, Json, Part, PartContent};
use chancery_swp::{Extension, Extensions};

use super::extension;
use crate::scan::{JsonLimits, scan};

const TEXT: &str = "text/plain";
const JSON: &str = "application/json";

/// How octets are to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Convention {
    Text,
    Json,
    /// Opaque octets, for readers that know their form.
    Opaque,
    /// A message or an event of A2A 1.0 in protobuf.
    A2a,
}

impl Convention {
    pub const ALL: [Self; 4] = [Self::Text, Self::Json, Self::Opaque, Self::A2a];

    pub const fn number(self) -> u8 {
        match self {
            Self::Text => 1,
            Self::Json => 2,
            Self::Opaque => 3,
            Self::A2a => 4,
        }
    }

    fn from_number(number: &[u8]) -> Option<Self> {
        Self::ALL.into_iter().find(|convention| [convention.number()] == *number)
    }

    /// What a skill declares by its first input mode.
    pub fn of_media_type(media_type: &str) -> Self {
        let essence = media_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        match essence.as_str() {
            "" => Self::Text,
            essence if essence.starts_with("text/") => Self::Text,
            essence if essence == JSON || essence.ends_with("+json") => Self::Json,
            _ => Self::Opaque,
        }
    }
}

/// What the extensions of an envelope say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Given {
    pub convention: Option<Convention>,
    pub media_type: Option<String>,
    pub hop_token: Option<Arc<str>>,
}

impl Given {
    pub fn of(extensions: &Extensions) -> Result<Self, Error> {
        let text = |number: u64, name: &str| match extensions.get(number).map(|value| String::from_utf8(value.to_vec())) {
            None => Ok(None),
            Some(Ok(text)) => Ok(Some(text).filter(|text| !text.is_empty())),
            Some(Err(_)) => Err(Error::invalid_field(name, "is not UTF-8")),
        };
        let unknown = || Error::invalid_field("convention", "is unknown; known are 1 text, 2 JSON, 3 opaque, 4 A2A");
        let convention = extensions.get(extension::CONVENTION);
        Ok(Self {
            convention: convention.map(|number| Convention::from_number(&number).ok_or_else(unknown)).transpose()?,
            media_type: text(extension::MEDIA_TYPE, "media type")?,
            hop_token: text(extension::HOP_TOKEN, "hop token")?.map(Arc::from),
        })
    }

    pub fn to_extensions(&self) -> Extensions {
        let one = |ext_type, value: Option<Bytes>| value.map(|value| Extension { ext_type, value });
        let convention = self.convention.map(|convention| Bytes::copy_from_slice(&[convention.number()]));
        let media_type = self.media_type.clone().map(Bytes::from);
        let hop_token = self.hop_token.as_ref().map(|token| Bytes::copy_from_slice(token.as_bytes()));
        [one(extension::CONVENTION, convention), one(extension::MEDIA_TYPE, media_type), one(extension::HOP_TOKEN, hop_token)]
            .into_iter()
            .flatten()
            .collect()
    }
}

/// Octets with what they are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Content {
    pub bytes: Bytes,
    pub convention: Convention,
    pub media_type: Option<String>,
}

impl Content {
    pub fn text(text: impl Into<String>) -> Self {
        Self { bytes: text.into().into(), convention: Convention::Text, media_type: None }
    }

    /// The parts of a message or an artifact as octets: what one of them can say alone, or all of them as JSON of A2A 1.0.
    pub fn of(parts: &[Part]) -> Self {
        if parts.iter().all(|part| part.as_text().is_some()) {
            return Self::text(parts.iter().filter_map(Part::as_text).collect::<String>());
        }
        let json = |text: String| Self { bytes: text.into(), convention: Convention::Json, media_type: None };
        match parts {
            [Part { content: PartContent::Data(data), .. }] => json(data.text().to_owned()),
            [Part { content: PartContent::Raw(bytes), media_type, .. }] => {
                Self { bytes: bytes.clone(), convention: Convention::Opaque, media_type: media_type.clone() }
            }
            [Part { content: PartContent::Url(url), .. }] => Self::text(url.clone()),
            parts => json(serde_json::to_string(parts).unwrap_or_default()),
        }
    }

    /// The part these octets stand for; none for no octets.
    pub fn part(&self, json: &JsonLimits) -> Result<Option<Part>, Error> {
        if self.bytes.is_empty() {
            return Ok(None);
        }
        let content = match self.convention {
            Convention::Text => {
                let text = std::str::from_utf8(&self.bytes);
                PartContent::Text(text.map_err(|_| malformed("it is not UTF-8, which text is"))?.to_owned())
            }
            Convention::Json => {
                let text = scan(&self.bytes, json).map_err(|fault| malformed(&fault.message))?;
                PartContent::Data(Json::parse(text.to_owned()).map_err(|fault| malformed(&fault.to_string()))?)
            }
            Convention::Opaque => PartContent::Raw(self.bytes.clone()),
            Convention::A2a => return Err(malformed("a message in protobuf is no part of another")),
        };
        let media_type = self.media_type.clone().filter(|media_type| media_type != TEXT && media_type != JSON);
        Ok(Some(Part { media_type, ..Part::new(content) }))
    }

    pub(super) fn given(&self) -> Given {
        Given { convention: Some(self.convention), media_type: self.media_type.clone(), hop_token: None }
    }
}

pub(super) fn malformed(reason: &str) -> Error {
    Error::new(ErrorKind::InvalidParams, format!("the input cannot be read: {reason}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_convention_is_declared_by_a_media_type() {
        for (media_type, convention) in [
            ("", Convention::Text),
            ("text/plain", Convention::Text),
            ("Text/Markdown; charset=utf-8", Convention::Text),
            ("application/json", Convention::Json),
            ("application/vnd.x+JSON", Convention::Json),
            ("image/png", Convention::Opaque),
            ("application/x-protobuf", Convention::Opaque),
        ] {
            assert_eq!(Convention::of_media_type(media_type), convention, "{media_type}");
        }
    }

    #[test]
    fn what_the_extensions_say_is_read_as_it_was_written_and_nonsense_is_named() {
        for convention in Convention::ALL {
            let given =
                Given { convention: Some(convention), media_type: Some("image/png".into()), hop_token: Some("a.b.c".into()) };
            assert_eq!(Given::of(&given.to_extensions()).unwrap(), given);
        }
        assert_eq!(Given::of(&Extensions::default()).unwrap(), Given::default());
        assert!(Given::default().to_extensions().is_empty());
        for (ext_type, value) in [(16, &[9_u8][..]), (16, &[1, 1]), (16, &[]), (17, &[0xff]), (18, &[0xff])] {
            let extensions = [Extension { ext_type, value: Bytes::from_static(value) }].into_iter().collect();
            assert_eq!(Given::of(&extensions).unwrap_err().kind, ErrorKind::InvalidParams, "{ext_type} {value:?}");
        }
    }

    #[test]
    fn parts_become_octets_and_come_back_where_one_says_it_all() {
        let limits = JsonLimits::default();
        let raw = Part { media_type: Some("image/png".into()), ..Part::new(PartContent::Raw(Bytes::from_static(&[0, 255]))) };
        let data = Part::data(&serde_json::json!({ "x": [1, null] }));
        for part in [Part::text("hello\n"), data.clone(), raw.clone()] {
            assert_eq!(Content::of(std::slice::from_ref(&part)).part(&limits).unwrap(), Some(part));
        }
        assert_eq!(Content::of(&[Part::text("a"), Part::text("b")]), Content::text("ab"));
        assert_eq!(Content::of(&[]).part(&limits).unwrap(), None);
        let mixed = Content::of(&[Part::text("a"), data]);
        assert_eq!((mixed.convention, &mixed.bytes[..]), (Convention::Json, &br#"[{"text":"a"},{"data":{"x":[1,null]}}]"#[..]));
    }

    #[test]
    fn input_that_is_not_what_it_is_said_to_be_is_malformed() {
        for (convention, bytes) in
            [(Convention::Text, &[0xff][..]), (Convention::Json, b"{"), (Convention::Json, &[0xff]), (Convention::A2a, b"x")]
        {
            let content = Content { bytes: Bytes::copy_from_slice(bytes), convention, media_type: None };
            assert_eq!(content.part(&JsonLimits::default()).unwrap_err().kind, ErrorKind::InvalidParams, "{convention:?}");
        }
    }
}
