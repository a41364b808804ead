//! Messages of 0.3, to be written.

use chancery_protocol::{ContextId, Message, MessageId, Metadata, Part, TaskId, Unknown};
use serde::Serialize;

use super::form::Form;
use super::kind::Kind;
use crate::json::write::Each;

#[derive(Serialize)]
#[serde(rename_all = "camelCase", bound(serialize = "F: Form"))]
pub(super) struct MessageView<'a, F: Form> {
    #[serde(skip_serializing_if = "Option::is_none")]
    kind: Option<Kind>,
    message_id: &'a MessageId,
    #[serde(skip_serializing_if = "Option::is_none")]
    context_id: Option<&'a ContextId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    task_id: Option<&'a TaskId>,
    role: F::Role,
    #[serde(skip_serializing_if = "Option::is_none")]
    parts: Option<Each<'a, Part, F::PartView<'a>>>,
    /// The parts, by their name in the proto.
    #[serde(skip_serializing_if = "Option::is_none")]
    content: Option<Each<'a, Part, F::PartView<'a>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<&'a Metadata>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    extensions: &'a [String],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    reference_task_ids: &'a [TaskId],
    #[serde(flatten)]
    unknown: &'a Unknown<Message>,
}

impl<'a, F: Form> From<&'a Message> for MessageView<'a, F> {
    fn from(message: &'a Message) -> Self {
        let parts = || Each(&message.parts, F::part);
        Self {
            kind: Kind::Message.in_form::<F>(),
            message_id: &message.message_id,
            context_id: message.context_id.as_ref(),
            task_id: message.task_id.as_ref(),
            role: F::role(message.role),
            parts: (!F::HAS_PROTO_NAMES).then(parts),
            content: F::HAS_PROTO_NAMES.then(parts),
            metadata: message.metadata.as_ref(),
            extensions: &message.extensions,
            // The proto has none.
            reference_task_ids: if F::HAS_PROTO_NAMES { &[] } else { &message.reference_task_ids },
            unknown: &message.unknown,
        }
    }
}
