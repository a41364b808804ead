//! Events and replies to messages, known by the only member of their wrapper.

use std::sync::Arc;

use chancery_protocol::{Error, Sent, TaskEvent};
use serde::Deserialize;

use super::members::{ArtifactUpdateMembers, MessageMembers, StatusUpdateMembers, TaskMembers};
use crate::codec::TaskNames;
use crate::json::peer::not_understood;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct EventMembers {
    task: Option<TaskMembers>,
    #[serde(alias = "msg")]
    message: Option<MessageMembers>,
    #[serde(alias = "status_update")]
    status_update: Option<StatusUpdateMembers>,
    #[serde(alias = "artifact_update")]
    artifact_update: Option<ArtifactUpdateMembers>,
}

impl EventMembers {
    pub(super) fn into_event(self) -> Result<(Option<TaskNames>, TaskEvent), Error> {
        Ok(match (self.task, self.message, self.status_update, self.artifact_update) {
            (Some(task), None, None, None) => task.into_event(),
            (None, Some(message), None, None) => message.into_event(),
            (None, None, Some(update), None) => update.into_event(),
            (None, None, None, Some(update)) => update.into_event(),
            _ => return Err(not_understood("an event has exactly one of task, message, statusUpdate and artifactUpdate")),
        })
    }

    pub(super) fn into_reply(self) -> Result<Sent, Error> {
        match (self.task, self.message) {
            (Some(task), None) => Ok(Sent::Task(task.into_shown())),
            (None, Some(message)) => Ok(Sent::Message(Arc::new(message.into()))),
            _ => Err(not_understood("a reply to a message has exactly one of task and message")),
        }
    }
}
