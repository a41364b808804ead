//! What callers of the original protocol send as `params`, and what `rvagent-a2a` adds to it.

use std::sync::Arc;

use chancery_protocol::lenient::{int32, non_empty, null_default};
use chancery_protocol::{
    CancelTask, ContextId, Error, GetTask, Json, Message, Metadata, PushConfig, PushConfigRef, SendConfiguration, SendMessage,
    SubscribeToTask, TaskId, Unknown,
};
use serde::{Deserialize, Serialize};

use super::task::{MessageMembers, MessageView};
use crate::json::v0_3::push::{ConfigMembers, ConfigView};

/// Where in the metadata the members go that only `rvagent-a2a` sends.
const VENDOR: &str = "ruvector";

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct SendView<'a> {
    id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    session_id: Option<&'a ContextId>,
    message: MessageView<'a>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    accepted_output_modes: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    push_notification: Option<ConfigView<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    history_length: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<&'a Metadata>,
    // Its agents look for these outside the metadata, and refuse a task without the first and the last.
    #[serde(skip_serializing_if = "Option::is_none")]
    skill: Option<Json>,
    #[serde(skip_serializing_if = "Option::is_none")]
    policy: Option<Json>,
    #[serde(skip_serializing_if = "Option::is_none")]
    context: Option<Json>,
    #[serde(flatten)]
    unknown: &'a Unknown<SendMessage>,
}

impl<'a> SendView<'a> {
    pub(super) fn of(send: &'a SendMessage) -> Result<Self, Error> {
        let message = &*send.message;
        let id = send.client_task_id.as_deref().or(message.task_id.as_ref().map(TaskId::as_str));
        let Some(id) = id else {
            return Err(Error::invalid_field("id", "the original protocol has its clients name the task"));
        };
        let configuration = &send.configuration;
        let vendor = send.metadata.as_ref().and_then(|metadata| metadata.member(VENDOR));
        let extra = |name: &str| vendor.as_ref().and_then(|vendor| vendor.member(name));
        Ok(Self {
            id,
            session_id: message.context_id.as_ref(),
            message: message.into(),
            accepted_output_modes: &configuration.accepted_output_modes,
            push_notification: configuration.task_push_notification_config.as_deref().map(ConfigView::without_id),
            history_length: configuration.history_length,
            metadata: send.metadata.as_ref(),
            skill: extra("skill"),
            policy: extra("policy"),
            context: extra("context"),
            unknown: &send.unknown,
        })
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct SendMembers {
    id: String,
    #[serde(default, deserialize_with = "non_empty")]
    session_id: Option<ContextId>,
    message: MessageMembers,
    #[serde(default, deserialize_with = "null_default")]
    accepted_output_modes: Vec<String>,
    push_notification: Option<ConfigMembers>,
    #[serde(default, deserialize_with = "int32")]
    history_length: Option<i32>,
    metadata: Option<Metadata>,
    // The next three are rvagent-a2a's: what to do, within which bounds, on whose behalf.
    skill: Option<Json>,
    policy: Option<Json>,
    context: Option<Json>,
    #[serde(default, rename = "$unknown")]
    unknown: Unknown<SendMessage>,
}

impl From<SendMembers> for SendMessage {
    fn from(send: SendMembers) -> Self {
        let extras = [("skill", send.skill), ("policy", send.policy), ("context", send.context)];
        let message = Message { context_id: send.session_id, ..send.message.into() };
        Self {
            tenant: None,
            message: Arc::new(message),
            configuration: SendConfiguration {
                accepted_output_modes: send.accepted_output_modes,
                task_push_notification_config: send.push_notification.map(|config| Box::new(config.of(None))),
                history_length: send.history_length,
                return_immediately: false,
            },
            metadata: with_extras(send.metadata, extras),
            client_task_id: Some(send.id.into()),
            unknown: send.unknown,
        }
    }
}

/// Keeps what only one vendor's clients say where vendors may put what they like.
fn with_extras(metadata: Option<Metadata>, extras: [(&str, Option<Json>); 3]) -> Option<Metadata> {
    let mut said = extras.into_iter().filter_map(|(name, json)| Some((name, json?))).peekable();
    if said.peek().is_none() {
        return metadata;
    }
    let metadata = metadata.unwrap_or_else(Metadata::empty);
    let vendor = metadata.member(VENDOR).and_then(|vendor| Metadata::try_from(vendor).ok()).unwrap_or_else(Metadata::empty);
    let vendor = said.fold(vendor, |vendor, (name, json)| vendor.with(name, json));
    Some(metadata.with(VENDOR, vendor.into_json()))
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct TaskParams {
    pub(super) id: TaskId,
    #[serde(default, deserialize_with = "int32", skip_serializing_if = "Option::is_none")]
    pub(super) history_length: Option<i32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) metadata: Option<Metadata>,
}

impl TaskParams {
    pub(super) fn of(id: &TaskId) -> Self {
        Self { id: id.clone(), history_length: None, metadata: None }
    }

    pub(super) fn into_get(self) -> GetTask {
        GetTask { tenant: None, id: self.id, history_length: self.history_length }
    }

    pub(super) fn into_cancel(self) -> CancelTask {
        CancelTask { tenant: None, id: self.id, metadata: self.metadata }
    }

    pub(super) fn into_subscribe(self) -> SubscribeToTask {
        SubscribeToTask { tenant: None, id: self.id }
    }

    pub(super) fn into_push_config(self) -> PushConfigRef {
        PushConfigRef { tenant: None, task_id: self.id, id: None }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct TaskConfigView<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a TaskId>,
    push_notification_config: ConfigView<'a>,
}

impl<'a> From<&'a PushConfig> for TaskConfigView<'a> {
    fn from(config: &'a PushConfig) -> Self {
        Self { id: config.task_id.as_ref(), push_notification_config: ConfigView::without_id(config) }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct TaskConfigMembers {
    id: TaskId,
    push_notification_config: ConfigMembers,
}

impl From<TaskConfigMembers> for PushConfig {
    fn from(config: TaskConfigMembers) -> Self {
        config.push_notification_config.of(Some(config.id))
    }
}
