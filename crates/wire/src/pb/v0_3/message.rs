//! Messages.

use chancery_protocol::{Error, Message};

use super::{part, proto};
use crate::pb::fields::{list, metadata, optional, or_empty, role, text, to_metadata, to_role};

pub(super) fn read(message: proto::Message) -> Result<Message, Error> {
    Ok(Message {
        message_id: text(message.message_id, "message_id")?,
        context_id: optional(message.context_id),
        task_id: optional(message.task_id),
        role: role(message.role, "role")?,
        parts: list(message.content, "content", part::read)?,
        metadata: metadata(message.metadata, "metadata")?,
        extensions: message.extensions,
        // The JSON form of 0.3 has them, its protobuf form does not.
        reference_task_ids: Vec::new(),
        unknown: Default::default(),
    })
}

pub(super) fn write(message: &Message) -> proto::Message {
    proto::Message {
        message_id: message.message_id.to_string(),
        context_id: or_empty(message.context_id.as_ref()),
        task_id: or_empty(message.task_id.as_ref()),
        role: to_role(message.role),
        content: message.parts.iter().map(part::write).collect(),
        metadata: to_metadata(message.metadata.as_ref()),
        extensions: message.extensions.clone(),
    }
}
