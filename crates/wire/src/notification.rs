//! Reads the notifications that webhooks receive: their form, and their event.

use chancery_protocol::{Error, ErrorKind, Operation, Reply, TaskEvent};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;

use crate::codec::{Codec, TaskNames};
use crate::json::original::Original;
use crate::json::v0_3::V0_3;
use crate::json::v1_0::V1_0;
use crate::scan::{JsonLimits, scan};

/// The forms that senders use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NotificationForm {
    /// One of `task`, `message`, `statusUpdate` and `artifactUpdate`.
    V1_0,
    /// A bare object known by its `kind`.
    V0_3,
    /// A bare task without one.
    Original,
    /// One of 0.3 as the `result` of a JSON-RPC response.
    NeuralPost,
}

impl NotificationForm {
    /// Returns the name of the form.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::V1_0 => "1.0",
            Self::V0_3 => "0.3",
            Self::Original => "original",
            Self::NeuralPost => "neuralpost",
        }
    }
}

/// What a notification says, in the newest version's shape.
#[derive(Clone, Debug, PartialEq)]
pub struct Notification {
    /// The form of the body.
    pub form: NotificationForm,
    /// The names of its task. A message need not belong to one.
    pub face: Option<TaskNames>,
    /// The event of the task.
    pub event: TaskEvent,
}

/// Only whether a member is there: its value is read once it is known how.
#[derive(Deserialize)]
struct Members<'a> {
    jsonrpc: Option<IgnoredAny>,
    #[serde(borrow)]
    result: Option<&'a RawValue>,
    kind: Option<IgnoredAny>,
    task: Option<IgnoredAny>,
    message: Option<IgnoredAny>,
    #[serde(rename = "statusUpdate", alias = "status_update")]
    status_update: Option<IgnoredAny>,
    #[serde(rename = "artifactUpdate", alias = "artifact_update")]
    artifact_update: Option<IgnoredAny>,
    #[serde(rename = "contextId")]
    context_id: Option<IgnoredAny>,
    #[serde(rename = "messageId")]
    message_id: Option<IgnoredAny>,
    #[serde(rename = "final")]
    is_final: Option<IgnoredAny>,
    artifact: Option<IgnoredAny>,
}

/// Reads a body of any form. What tells forms apart are members that no other form has.
pub fn read_notification(body: &[u8], limits: &JsonLimits) -> Result<Notification, Error> {
    let text = scan(body, limits)?;
    let members: Members<'_> = serde_json::from_str(text)
        .map_err(|fault| Error::new(ErrorKind::InvalidRequest, format!("not a notification: {fault}")))?;
    let v1_0 = [&members.task, &members.message, &members.status_update, &members.artifact_update];
    let v0_3 = [&members.kind, &members.context_id, &members.message_id];
    let (form, codec, text): (_, &dyn Codec, _) = match members.result {
        Some(result) if members.jsonrpc.is_some() => (NotificationForm::NeuralPost, &V0_3, result.get()),
        _ if v1_0.iter().any(|member| member.is_some()) => (NotificationForm::V1_0, &V1_0, text),
        _ if v0_3.iter().any(|member| member.is_some()) => (NotificationForm::V0_3, &V0_3, text),
        _ if members.is_final.is_none() && members.artifact.is_none() => return original_task(text),
        _ => (NotificationForm::Original, &Original, text),
    };
    let (face, event) = codec.decode_event(text)?;
    Ok(Notification { form, face, event })
}

/// The original protocol tells its webhooks whole tasks; what its streams show is read too.
fn original_task(text: &str) -> Result<Notification, Error> {
    let Reply::Task(shown) = Original.decode_reply(Operation::GetTask, text)? else {
        return Err(Error::new(ErrorKind::InvalidAgentResponse, "not a task"));
    };
    let face = TaskNames { client_task_id: shown.client_task_id, ..TaskNames::of_task(&shown.task) };
    Ok(Notification { form: NotificationForm::Original, face: Some(face), event: TaskEvent::Created(shown.task) })
}
