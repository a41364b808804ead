//! What a caller can ask: one variant per operation, so the compiler lists every place a new one must be handled.

use serde::{Deserialize, Serialize};
use std::sync::Arc;

use crate::lenient::{int32, non_empty, null_default};
use crate::unknown::open_object;
use crate::{ContextId, Message, Metadata, PushConfig, TaskId, TaskState, Timestamp};

#[derive(Clone, Debug, PartialEq)]
pub enum Request {
    SendMessage(SendMessage),
    StreamMessage(SendMessage),
    GetTask(GetTask),
    ListTasks(ListTasks),
    CancelTask(CancelTask),
    SubscribeToTask(SubscribeToTask),
    CreatePushConfig(PushConfig),
    GetPushConfig(PushConfigRef),
    ListPushConfigs(ListPushConfigs),
    DeletePushConfig(PushConfigRef),
    GetExtendedCard(GetExtendedCard),
}

/// The operations by name, as tables of methods and paths use them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operation {
    SendMessage,
    StreamMessage,
    GetTask,
    ListTasks,
    CancelTask,
    SubscribeToTask,
    CreatePushConfig,
    GetPushConfig,
    ListPushConfigs,
    DeletePushConfig,
    GetExtendedCard,
}

impl Operation {
    pub const ALL: [Self; 11] = [
        Self::SendMessage,
        Self::StreamMessage,
        Self::GetTask,
        Self::ListTasks,
        Self::CancelTask,
        Self::SubscribeToTask,
        Self::CreatePushConfig,
        Self::GetPushConfig,
        Self::ListPushConfigs,
        Self::DeletePushConfig,
        Self::GetExtendedCard,
    ];

    /// The answer is a stream of events.
    pub const fn streams(self) -> bool {
        matches!(self, Self::StreamMessage | Self::SubscribeToTask)
    }
}

impl Request {
    pub const fn operation(&self) -> Operation {
        match self {
            Self::SendMessage(_) => Operation::SendMessage,
            Self::StreamMessage(_) => Operation::StreamMessage,
            Self::GetTask(_) => Operation::GetTask,
            Self::ListTasks(_) => Operation::ListTasks,
            Self::CancelTask(_) => Operation::CancelTask,
            Self::SubscribeToTask(_) => Operation::SubscribeToTask,
            Self::CreatePushConfig(_) => Operation::CreatePushConfig,
            Self::GetPushConfig(_) => Operation::GetPushConfig,
            Self::ListPushConfigs(_) => Operation::ListPushConfigs,
            Self::DeletePushConfig(_) => Operation::DeletePushConfig,
            Self::GetExtendedCard(_) => Operation::GetExtendedCard,
        }
    }

    /// The tenant the request names, if it names one.
    pub fn tenant(&self) -> Option<&str> {
        let tenant = match self {
            Self::SendMessage(send) | Self::StreamMessage(send) => &send.tenant,
            Self::GetTask(get) => &get.tenant,
            Self::ListTasks(list) => &list.tenant,
            Self::CancelTask(cancel) => &cancel.tenant,
            Self::SubscribeToTask(subscribe) => &subscribe.tenant,
            Self::CreatePushConfig(config) => &config.tenant,
            Self::GetPushConfig(which) | Self::DeletePushConfig(which) => &which.tenant,
            Self::ListPushConfigs(list) => &list.tenant,
            Self::GetExtendedCard(get) => &get.tenant,
        };
        tenant.as_deref()
    }
}

open_object! {
    pub struct SendMessage {
        #[serde(default, deserialize_with = "non_empty", skip_serializing_if = "Option::is_none")]
        pub tenant: Option<String>,
        pub message: Arc<Message>,
        #[serde(default, deserialize_with = "null_default", skip_serializing_if = "SendConfiguration::is_default")]
        pub configuration: SendConfiguration,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub metadata: Option<Metadata>,
        /// The original protocol lets the client name the task. Never part of the 1.0 form.
        #[serde(skip)]
        pub client_task_id: Option<Arc<str>>,
    }
    knows [
        "tenant", "message", "request", "configuration", "metadata", "id", "sessionId", "acceptedOutputModes",
        "pushNotification", "historyLength", "skill", "policy", "context",
    ]
}

impl SendMessage {
    /// A request to send a message, without any options.
    pub fn new(message: Message) -> Self {
        Self {
            tenant: None,
            message: Arc::new(message),
            configuration: SendConfiguration::default(),
            metadata: None,
            client_task_id: None,
            unknown: Default::default(),
        }
    }

    /// The skill the message asks for: `skill` in its metadata, where clients of the ADR's crate have it too.
    pub fn skill(&self) -> Option<String> {
        let text = |value: serde_json::Value| value.as_str().map(str::to_owned);
        let of = |metadata: &Option<Metadata>| {
            let metadata = metadata.as_ref()?;
            let vendor = || metadata.get("ruvector")?.get("skill").cloned().and_then(text);
            metadata.get("skill").and_then(text).or_else(vendor)
        };
        of(&self.metadata).or_else(|| of(&self.message.metadata))
    }
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SendConfiguration {
    #[serde(default, alias = "accepted_output_modes", deserialize_with = "null_default", skip_serializing_if = "Vec::is_empty")]
    pub accepted_output_modes: Vec<String>,
    #[serde(default, alias = "task_push_notification_config", skip_serializing_if = "Option::is_none")]
    pub task_push_notification_config: Option<Box<PushConfig>>,
    #[serde(default, alias = "history_length", deserialize_with = "int32", skip_serializing_if = "Option::is_none")]
    pub history_length: Option<i32>,
    #[serde(
        default,
        alias = "return_immediately",
        deserialize_with = "null_default",
        skip_serializing_if = "std::ops::Not::not"
    )]
    pub return_immediately: bool,
}

impl SendConfiguration {
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GetTask {
    #[serde(default, deserialize_with = "non_empty", skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    pub id: TaskId,
    #[serde(default, alias = "history_length", deserialize_with = "int32", skip_serializing_if = "Option::is_none")]
    pub history_length: Option<i32>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ListTasks {
    #[serde(deserialize_with = "non_empty", skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    #[serde(alias = "context_id", deserialize_with = "non_empty", skip_serializing_if = "Option::is_none")]
    pub context_id: Option<ContextId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<TaskState>,
    #[serde(alias = "page_size", deserialize_with = "int32", skip_serializing_if = "Option::is_none")]
    pub page_size: Option<i32>,
    #[serde(alias = "page_token", deserialize_with = "non_empty", skip_serializing_if = "Option::is_none")]
    pub page_token: Option<String>,
    #[serde(alias = "history_length", deserialize_with = "int32", skip_serializing_if = "Option::is_none")]
    pub history_length: Option<i32>,
    #[serde(alias = "status_timestamp_after", skip_serializing_if = "Option::is_none")]
    pub status_timestamp_after: Option<Timestamp>,
    #[serde(alias = "include_artifacts", deserialize_with = "null_default", skip_serializing_if = "std::ops::Not::not")]
    pub include_artifacts: bool,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CancelTask {
    #[serde(default, deserialize_with = "non_empty", skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    pub id: TaskId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Metadata>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SubscribeToTask {
    #[serde(default, deserialize_with = "non_empty", skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    pub id: TaskId,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct GetExtendedCard {
    #[serde(default, deserialize_with = "non_empty", skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
}

/// One push configuration of one task. Version 0.3 may leave the configuration's id out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PushConfigRef {
    #[serde(default, deserialize_with = "non_empty", skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    #[serde(alias = "task_id")]
    pub task_id: TaskId,
    #[serde(default, deserialize_with = "non_empty", skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ListPushConfigs {
    #[serde(default, deserialize_with = "non_empty", skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    #[serde(alias = "task_id")]
    pub task_id: TaskId,
    #[serde(default, alias = "page_size", deserialize_with = "int32", skip_serializing_if = "Option::is_none")]
    pub page_size: Option<i32>,
    #[serde(default, alias = "page_token", deserialize_with = "non_empty", skip_serializing_if = "Option::is_none")]
    pub page_token: Option<String>,
}
