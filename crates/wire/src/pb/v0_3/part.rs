//! Parts: a file is one kind with two sources, and data is always an object.

use chancery_protocol::{Error, Part, PartContent};
use prost_types::value::Kind;
use prost_types::{Struct, Value};

use super::proto::{self, file_part::File, part::Part as Content};
use crate::json::v0_3::rest::part::plain;
use crate::pb::fields::{json, metadata, optional, or_empty, required, to_metadata};
use crate::pb::structs;

/// Marks data that was no object and had to be put into one, under this member.
const WRAPPED: &str = "data_part_compat";
const WRAPPER: &str = "value";

pub(super) fn read(part: proto::Part) -> Result<Part, Error> {
    Ok(match part.part {
        Some(Content::Text(text)) => Part { metadata: metadata(part.metadata, "metadata")?, ..Part::text(text) },
        Some(Content::File(file)) => {
            let media_type = optional::<String>(file.mime_type);
            let content = match required(file.file, "file")? {
                File::FileWithUri(uri) => PartContent::Url(uri),
                // The official Python SDK writes the base64 text of a file here, as it does over REST.
                File::FileWithBytes(bytes) => PartContent::Raw(plain(bytes, media_type.as_deref())),
            };
            Part {
                content,
                metadata: metadata(part.metadata, "metadata")?,
                filename: optional(file.name),
                media_type,
                unknown: Default::default(),
            }
        }
        Some(Content::Data(data)) => {
            let (data, rest) = unwrapped(required(data.data, "data")?, part.metadata);
            let content = PartContent::Data(json(&data, "data")?);
            Part { metadata: metadata(rest, "metadata")?, ..Part::new(content) }
        }
        None => return Err(Error::invalid_field("", "a part has exactly one of text, file and data")),
    })
}

/// The file name and media type of text and data are lost: 0.3 has no place for them.
pub(super) fn write(part: &Part) -> proto::Part {
    let file = |file| {
        Content::File(proto::FilePart {
            file: Some(file),
            mime_type: or_empty(part.media_type.as_ref()),
            name: or_empty(part.filename.as_ref()),
        })
    };
    let mut metadata = to_metadata(part.metadata.as_ref());
    let content = match &part.content {
        PartContent::Text(text) => Content::Text(text.clone()),
        PartContent::Raw(bytes) => file(File::FileWithBytes(bytes.clone())),
        PartContent::Url(url) => file(File::FileWithUri(url.clone())),
        PartContent::Data(data) => Content::Data(proto::DataPart {
            data: Some(match structs::to_value(data) {
                Value { kind: Some(Kind::StructValue(object)) } => object,
                other => {
                    let mark = structs::of_kind(Kind::BoolValue(true));
                    metadata.get_or_insert_default().fields.insert(WRAPPED.to_owned(), mark);
                    Struct { fields: [(WRAPPER.to_owned(), other)].into() }
                }
            }),
        }),
    };
    proto::Part { part: Some(content), metadata }
}

/// Takes data out of its wrapper again, if the mark says there is one, and the mark off with it.
fn unwrapped(mut data: Struct, metadata: Option<Struct>) -> (Value, Option<Struct>) {
    let is_marked = |metadata: &Struct| {
        let mark = metadata.fields.get(WRAPPED).and_then(|value| value.kind.as_ref());
        matches!(mark, Some(Kind::BoolValue(true)))
    };
    match metadata {
        Some(mut metadata) if is_marked(&metadata) && data.fields.contains_key(WRAPPER) => {
            metadata.fields.remove(WRAPPED);
            let value = data.fields.remove(WRAPPER).unwrap_or_default();
            (value, Some(metadata).filter(|metadata| !metadata.fields.is_empty()))
        }
        metadata => (structs::of_kind(Kind::StructValue(data)), metadata),
    }
}
