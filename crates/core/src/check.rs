//! Checks the values of a request, the same for every transport. Faults name the field.

use chancery_protocol::{Error, ListTasks, Message, Metadata, SendMessage, Unknown, control_character};

use crate::limits::TaskLimits;

pub(crate) fn send(send: &SendMessage, limits: &TaskLimits) -> Result<(), Error> {
    message(&send.message, limits)?;
    metadata("metadata", send.metadata.as_ref(), limits)?;
    unknown("params", &send.unknown, limits)?;
    if let Some(id) = &send.client_task_id {
        id_text("id", id, limits)?;
    }
    history_length("configuration.historyLength", send.configuration.history_length)
}

fn message(message: &Message, limits: &TaskLimits) -> Result<(), Error> {
    // An empty message id only comes from the original protocol, which has none; it is filled in later.
    if message.parts.is_empty() {
        return Err(Error::invalid_field("message.parts", "must contain at least one element"));
    }
    if message.parts.len() > limits.message_parts {
        return Err(Error::invalid_field(
            "message.parts",
            format!("has {} elements, more than limits.message_parts = {}", message.parts.len(), limits.message_parts),
        ));
    }
    id_text("message.messageId", message.message_id.as_str(), limits)?;
    if let Some(id) = &message.context_id {
        id_text("message.contextId", id.as_str(), limits)?;
    }
    if let Some(id) = &message.task_id {
        id_text("message.taskId", id.as_str(), limits)?;
    }
    if message.reference_task_ids.len() > limits.reference_tasks {
        return Err(Error::invalid_field(
            "message.referenceTaskIds",
            format!(
                "has {} elements, more than limits.reference_tasks = {}",
                message.reference_task_ids.len(),
                limits.reference_tasks
            ),
        ));
    }
    for (index, id) in message.reference_task_ids.iter().enumerate() {
        plain_text(&format!("message.referenceTaskIds[{index}]"), id.as_str())?;
    }
    metadata("message.metadata", message.metadata.as_ref(), limits)?;
    unknown("message", &message.unknown, limits)?;
    for (index, part) in message.parts.iter().enumerate() {
        if !part.unknown.is_empty() {
            unknown(&format!("message.parts[{index}]"), &part.unknown, limits)?;
        }
        if part.metadata.is_some() {
            metadata(&format!("message.parts[{index}].metadata"), part.metadata.as_ref(), limits)?;
        }
    }
    Ok(())
}

fn metadata(field: &str, metadata: Option<&Metadata>, limits: &TaskLimits) -> Result<(), Error> {
    match metadata {
        Some(metadata) if metadata.text().len() > limits.metadata_bytes => {
            let bytes = metadata.text().len();
            Err(Error::invalid_field(
                field,
                format!("has {bytes} bytes, more than limits.metadata_bytes = {}", limits.metadata_bytes),
            ))
        }
        _ => Ok(()),
    }
}

/// Unknown members may be as long together as the metadata beside them.
fn unknown<T>(field: &str, unknown: &Unknown<T>, limits: &TaskLimits) -> Result<(), Error> {
    match unknown.weight() {
        bytes if bytes > limits.metadata_bytes => Err(Error::invalid_field(
            field,
            format!("has {bytes} bytes of unknown members, more than limits.metadata_bytes = {}", limits.metadata_bytes),
        )),
        _ => Ok(()),
    }
}

pub(crate) fn id_text(field: &str, id: &str, limits: &TaskLimits) -> Result<(), Error> {
    if id.len() > limits.id_bytes {
        return Err(Error::invalid_field(
            field,
            format!("has {} bytes, more than limits.id_bytes = {}", id.len(), limits.id_bytes),
        ));
    }
    plain_text(field, id)
}

/// Refuses an id or a name with control characters. Stores refuse them too.
pub(crate) fn plain_text(field: &str, text: &str) -> Result<(), Error> {
    match control_character(text) {
        Some(control) => {
            let reason = format!("has the control character U+{:04X}; ids and names have none", u32::from(control));
            Err(Error::invalid_field(field, reason))
        }
        None => Ok(()),
    }
}

pub(crate) fn history_length(field: &str, length: Option<i32>) -> Result<(), Error> {
    match length {
        Some(length) if length < 0 => Err(Error::invalid_field(field, "must not be negative")),
        _ => Ok(()),
    }
}

/// The page size to use.
pub(crate) fn page_size(list: &ListTasks, limits: &TaskLimits) -> Result<i32, Error> {
    match list.page_size {
        None => Ok(limits.page_size_default),
        Some(size) if (1..=limits.page_size).contains(&size) => Ok(size),
        Some(size) => Err(Error::invalid_field(
            "pageSize",
            format!("is {size}; it must be from 1 to limits.page_size = {}", limits.page_size),
        )),
    }
}
