//! Messages of 0.3.

use chancery_protocol::lenient::{non_empty, null_default};
use chancery_protocol::{ContextId, Message, MessageId, Metadata, Part, TaskId, Unknown};
use serde::{Deserialize, Serialize};

use super::kind::Kind;
use super::state::Speaker;
use crate::json::part::{Read, Tagged, by_kind, untagged};
use crate::json::write::Each;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct MessageView<'a, const WRAPPED: bool = false> {
    #[serde(skip_serializing_if = "Option::is_none")]
    kind: Option<Kind>,
    message_id: &'a MessageId,
    #[serde(skip_serializing_if = "Option::is_none")]
    context_id: Option<&'a ContextId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    task_id: Option<&'a TaskId>,
    role: Speaker,
    parts: Each<'a, Part, Tagged<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<&'a Metadata>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    extensions: &'a [String],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    reference_task_ids: &'a [TaskId],
    #[serde(flatten)]
    unknown: &'a Unknown<Message>,
}

impl<'a, const WRAPPED: bool> From<&'a Message> for MessageView<'a, WRAPPED> {
    fn from(message: &'a Message) -> Self {
        Self {
            kind: Kind::Message.unless(WRAPPED),
            message_id: &message.message_id,
            context_id: message.context_id.as_ref(),
            task_id: message.task_id.as_ref(),
            role: message.role.into(),
            parts: Each(&message.parts, if WRAPPED { untagged } else { by_kind }),
            metadata: message.metadata.as_ref(),
            extensions: &message.extensions,
            reference_task_ids: &message.reference_task_ids,
            unknown: &message.unknown,
        }
    }
}

/// A message as it is read. Its `kind` may be missing, but not wrong.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", bound(deserialize = "P: Deserialize<'de>"))]
pub(super) struct MessageMembers<P = Read<false>> {
    #[serde(rename = "kind")]
    _kind: Option<MessageKind>,
    message_id: MessageId,
    #[serde(default, deserialize_with = "non_empty")]
    context_id: Option<ContextId>,
    #[serde(default, deserialize_with = "non_empty")]
    task_id: Option<TaskId>,
    role: Speaker,
    #[serde(default, deserialize_with = "null_default")]
    parts: Vec<P>,
    metadata: Option<Metadata>,
    #[serde(default, deserialize_with = "null_default")]
    extensions: Vec<String>,
    #[serde(default, deserialize_with = "null_default")]
    reference_task_ids: Vec<TaskId>,
    #[serde(default, rename = "$unknown")]
    unknown: Unknown<Message>,
}

#[derive(Deserialize)]
enum MessageKind {
    #[serde(rename = "message")]
    Message,
}

impl<P: Into<Part>> From<MessageMembers<P>> for Message {
    fn from(members: MessageMembers<P>) -> Self {
        Self {
            message_id: members.message_id,
            context_id: members.context_id,
            task_id: members.task_id,
            role: members.role.into(),
            parts: members.parts.into_iter().map(Into::into).collect(),
            metadata: members.metadata,
            extensions: members.extensions,
            reference_task_ids: members.reference_task_ids,
            unknown: members.unknown,
        }
    }
}
