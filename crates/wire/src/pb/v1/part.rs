//! Parts: one of four contents each.

use chancery_protocol::{Error, Part, PartContent};

use super::proto::{self, part::Content};
use crate::pb::fields::{json, metadata, optional, or_empty, to_metadata};
use crate::pb::structs;

pub(super) fn read(part: proto::Part) -> Result<Part, Error> {
    let content = match part.content {
        Some(Content::Text(text)) => PartContent::Text(text),
        Some(Content::Raw(bytes)) => PartContent::Raw(bytes),
        Some(Content::Url(url)) => PartContent::Url(url),
        Some(Content::Data(value)) => PartContent::Data(json(&value, "data")?),
        None => return Err(Error::invalid_field("", "a part has exactly one of text, raw, url and data")),
    };
    Ok(Part {
        content,
        metadata: metadata(part.metadata, "metadata")?,
        filename: optional(part.filename),
        media_type: optional(part.media_type),
        unknown: Default::default(),
    })
}

pub(super) fn write(part: &Part) -> proto::Part {
    proto::Part {
        content: Some(match &part.content {
            PartContent::Text(text) => Content::Text(text.clone()),
            PartContent::Raw(bytes) => Content::Raw(bytes.clone()),
            PartContent::Url(url) => Content::Url(url.clone()),
            PartContent::Data(data) => Content::Data(structs::to_value(data)),
        }),
        metadata: to_metadata(part.metadata.as_ref()),
        filename: or_empty(part.filename.as_ref()),
        media_type: or_empty(part.media_type.as_ref()),
    }
}
