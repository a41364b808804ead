//! What 0.3 JSON-RPC callers send as `params`.

use std::sync::Arc;

use chancery_protocol::lenient::{int32, non_empty, null_default};
use chancery_protocol::{
    CancelTask, ContextId, GetTask, ListPushConfigs, ListTasks, Metadata, Part, PushConfigRef, SendConfiguration, SendMessage,
    SubscribeToTask, TaskId, Timestamp, Unknown,
};
use serde::{Deserialize, Serialize};

use super::message::{MessageMembers, MessageView};
use super::push::{ConfigMembers, ConfigView};
use super::state::State;
use crate::json::part::Read;

#[derive(Serialize)]
pub(super) struct SendView<'a> {
    message: MessageView<'a>,
    configuration: ConfigurationView<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<&'a Metadata>,
    #[serde(flatten)]
    unknown: &'a Unknown<SendMessage>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ConfigurationView<'a> {
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    accepted_output_modes: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    history_length: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    push_notification_config: Option<ConfigView<'a>>,
    blocking: bool,
}

impl<'a> From<&'a SendMessage> for SendView<'a> {
    fn from(send: &'a SendMessage) -> Self {
        let configuration = &send.configuration;
        Self {
            message: (&*send.message).into(),
            configuration: ConfigurationView {
                accepted_output_modes: &configuration.accepted_output_modes,
                history_length: set(configuration.history_length),
                push_notification_config: configuration.task_push_notification_config.as_deref().map(Into::into),
                blocking: !configuration.return_immediately,
            },
            metadata: send.metadata.as_ref(),
            unknown: &send.unknown,
        }
    }
}

/// Before 1.0 a history length of zero said nothing.
pub(super) fn set(history_length: Option<i32>) -> Option<i32> {
    history_length.filter(|length| *length != 0)
}

#[derive(Deserialize)]
#[serde(bound(deserialize = "P: Deserialize<'de>"))]
pub(super) struct SendMembers<P = Read<false>> {
    message: MessageMembers<P>,
    #[serde(default, deserialize_with = "null_default")]
    configuration: ConfigurationMembers,
    metadata: Option<Metadata>,
    #[serde(default, rename = "$unknown")]
    unknown: Unknown<SendMessage>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ConfigurationMembers {
    #[serde(default, deserialize_with = "null_default")]
    accepted_output_modes: Vec<String>,
    #[serde(default, deserialize_with = "int32")]
    history_length: Option<i32>,
    push_notification_config: Option<ConfigMembers>,
    blocking: Option<bool>,
}

impl<P: Into<Part>> From<SendMembers<P>> for SendMessage {
    fn from(send: SendMembers<P>) -> Self {
        let configuration = send.configuration;
        Self {
            tenant: None,
            message: Arc::new(send.message.into()),
            configuration: SendConfiguration {
                accepted_output_modes: configuration.accepted_output_modes,
                task_push_notification_config: configuration.push_notification_config.map(|config| Box::new(config.of(None))),
                history_length: set(configuration.history_length),
                // JSON-RPC callers of 0.3 expect to wait unless they say otherwise.
                return_immediately: configuration.blocking == Some(false),
            },
            metadata: send.metadata,
            client_task_id: None,
            unknown: send.unknown,
        }
    }
}

/// A task by its id, with what else may be said about it.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct TaskParams {
    pub(super) id: TaskId,
    #[serde(default, deserialize_with = "int32", skip_serializing_if = "Option::is_none")]
    pub(super) history_length: Option<i32>,
    #[serde(default, deserialize_with = "non_empty", skip_serializing_if = "Option::is_none")]
    pub(super) push_notification_config_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) metadata: Option<Metadata>,
}

impl TaskParams {
    pub(super) fn of(id: &TaskId) -> Self {
        Self { id: id.clone(), history_length: None, push_notification_config_id: None, metadata: None }
    }

    pub(super) fn into_get(self) -> GetTask {
        GetTask { tenant: None, id: self.id, history_length: set(self.history_length) }
    }

    pub(super) fn into_cancel(self) -> CancelTask {
        CancelTask { tenant: None, id: self.id, metadata: self.metadata }
    }

    pub(super) fn into_subscribe(self) -> SubscribeToTask {
        SubscribeToTask { tenant: None, id: self.id }
    }

    pub(super) fn into_push_config(self) -> PushConfigRef {
        PushConfigRef { tenant: None, task_id: self.id, id: self.push_notification_config_id }
    }

    pub(super) fn into_push_configs(self) -> ListPushConfigs {
        ListPushConfigs { tenant: None, task_id: self.id, page_size: None, page_token: None }
    }
}

/// `tasks/list` is only named by 0.3; what can be asked is what 1.0 lets ask.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ListParams {
    #[serde(default, deserialize_with = "non_empty", skip_serializing_if = "Option::is_none")]
    context_id: Option<ContextId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    status: Option<State>,
    #[serde(default, deserialize_with = "int32", skip_serializing_if = "Option::is_none")]
    page_size: Option<i32>,
    #[serde(default, deserialize_with = "non_empty", skip_serializing_if = "Option::is_none")]
    page_token: Option<String>,
    #[serde(default, deserialize_with = "int32", skip_serializing_if = "Option::is_none")]
    history_length: Option<i32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    status_timestamp_after: Option<Timestamp>,
    #[serde(default, deserialize_with = "null_default", skip_serializing_if = "std::ops::Not::not")]
    include_artifacts: bool,
}

impl From<&ListTasks> for ListParams {
    fn from(list: &ListTasks) -> Self {
        Self {
            context_id: list.context_id.clone(),
            status: list.status.map(State),
            page_size: list.page_size,
            page_token: list.page_token.clone(),
            history_length: set(list.history_length),
            status_timestamp_after: list.status_timestamp_after,
            include_artifacts: list.include_artifacts,
        }
    }
}

impl From<ListParams> for ListTasks {
    fn from(list: ListParams) -> Self {
        Self {
            tenant: None,
            context_id: list.context_id,
            status: list.status.map(|State(state)| state),
            page_size: list.page_size,
            page_token: list.page_token,
            history_length: set(list.history_length),
            status_timestamp_after: list.status_timestamp_after,
            include_artifacts: list.include_artifacts,
        }
    }
}
