//! Messages and parts.

use chancery_protocol::{Error, Message, Part, PartContent, TaskId};

use super::proto::{self, part::Content};
use crate::pb::fields::{json, list, metadata, optional, or_empty, role, text, to_metadata, to_role};
use crate::pb::structs;

pub(super) fn read(message: proto::Message) -> Result<Message, Error> {
    Ok(Message {
        message_id: text(message.message_id, "message_id")?,
        context_id: optional(message.context_id),
        task_id: optional(message.task_id),
        role: role(message.role, "role")?,
        parts: list(message.parts, "parts", read_part)?,
        metadata: metadata(message.metadata, "metadata")?,
        extensions: message.extensions,
        reference_task_ids: message.reference_task_ids.into_iter().map(TaskId::from).collect(),
        unknown: Default::default(),
    })
}

pub(super) fn write(message: &Message) -> proto::Message {
    proto::Message {
        message_id: message.message_id.to_string(),
        context_id: or_empty(message.context_id.as_ref()),
        task_id: or_empty(message.task_id.as_ref()),
        role: to_role(message.role),
        parts: message.parts.iter().map(write_part).collect(),
        metadata: to_metadata(message.metadata.as_ref()),
        extensions: message.extensions.clone(),
        reference_task_ids: message.reference_task_ids.iter().map(ToString::to_string).collect(),
    }
}

pub(super) fn read_part(part: proto::Part) -> Result<Part, Error> {
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

pub(super) fn write_part(part: &Part) -> proto::Part {
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
