//! What a caller can ask: one variant per operation, so the compiler lists every place a new one must be handled.

use serde::{Deserialize, Serialize};
use std::sync::Arc;

use crate::lenient::{int32, non_empty, null_default};
use crate::unknown::open_object;
use crate::{ContextId, Message, Metadata, PushConfig, TaskId, TaskState, Timestamp};

/// A request of a caller, one variant for each operation.
#[derive(Clone, Debug, PartialEq)]
pub enum Request {
    /// Sends a message and waits for the answer.
    SendMessage(SendMessage),
    /// Sends a message and follows the events of its task.
    StreamMessage(SendMessage),
    /// Returns a task.
    GetTask(GetTask),
    /// Lists tasks of the caller.
    ListTasks(ListTasks),
    /// Cancels a task.
    CancelTask(CancelTask),
    /// Follows the events of a task that was made before.
    SubscribeToTask(SubscribeToTask),
    /// Registers a webhook for a task.
    CreatePushConfig(PushConfig),
    /// Returns the registration of a webhook.
    GetPushConfig(PushConfigRef),
    /// Lists the webhooks of a task.
    ListPushConfigs(ListPushConfigs),
    /// Deletes the registration of a webhook.
    DeletePushConfig(PushConfigRef),
    /// Returns the extended card of the agent.
    GetExtendedCard(GetExtendedCard),
}

/// The operations by name, as tables of methods and paths use them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operation {
    /// Sends a message and waits for the answer.
    SendMessage,
    /// Sends a message and follows the events of its task.
    StreamMessage,
    /// Returns a task.
    GetTask,
    /// Lists tasks of the caller.
    ListTasks,
    /// Cancels a task.
    CancelTask,
    /// Follows the events of a task that was made before.
    SubscribeToTask,
    /// Registers a webhook for a task.
    CreatePushConfig,
    /// Returns the registration of a webhook.
    GetPushConfig,
    /// Lists the webhooks of a task.
    ListPushConfigs,
    /// Deletes the registration of a webhook.
    DeletePushConfig,
    /// Returns the extended card of the agent.
    GetExtendedCard,
}

impl Operation {
    /// Every operation.
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
    /// Returns the operation of the request.
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
    /// A request to send a message.
    pub struct SendMessage {
        /// The tenant that the request names.
        #[serde(default, deserialize_with = "non_empty", skip_serializing_if = "Option::is_none")]
        pub tenant: Option<String>,
        /// The message.
        pub message: Arc<Message>,
        /// The options.
        #[serde(default, deserialize_with = "null_default", skip_serializing_if = "SendConfiguration::is_default")]
        pub configuration: SendConfiguration,
        /// The metadata of the request.
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

/// The options of a sent message.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SendConfiguration {
    /// The media types that the caller accepts in the answer.
    #[serde(default, alias = "accepted_output_modes", deserialize_with = "null_default", skip_serializing_if = "Vec::is_empty")]
    pub accepted_output_modes: Vec<String>,
    /// A webhook to register for the task of the message.
    #[serde(default, alias = "task_push_notification_config", skip_serializing_if = "Option::is_none")]
    pub task_push_notification_config: Option<Box<PushConfig>>,
    /// The largest number of messages of the history in the answer.
    #[serde(default, alias = "history_length", deserialize_with = "int32", skip_serializing_if = "Option::is_none")]
    pub history_length: Option<i32>,
    /// Whether the answer comes before the task has ended.
    #[serde(
        default,
        alias = "return_immediately",
        deserialize_with = "null_default",
        skip_serializing_if = "std::ops::Not::not"
    )]
    pub return_immediately: bool,
}

impl SendConfiguration {
    /// Returns whether no option is set.
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// A request for a task.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GetTask {
    /// The tenant that the request names.
    #[serde(default, deserialize_with = "non_empty", skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    /// The id of the task.
    pub id: TaskId,
    /// The largest number of messages of the history in the answer.
    #[serde(default, alias = "history_length", deserialize_with = "int32", skip_serializing_if = "Option::is_none")]
    pub history_length: Option<i32>,
}

/// A request for a list of tasks. Each filter that is set must match.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ListTasks {
    /// The tenant that the request names.
    #[serde(deserialize_with = "non_empty", skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    /// The context of the tasks.
    #[serde(alias = "context_id", deserialize_with = "non_empty", skip_serializing_if = "Option::is_none")]
    pub context_id: Option<ContextId>,
    /// The state of the tasks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<TaskState>,
    /// The largest number of tasks on a page.
    #[serde(alias = "page_size", deserialize_with = "int32", skip_serializing_if = "Option::is_none")]
    pub page_size: Option<i32>,
    /// The token of the page, from the page before it.
    #[serde(alias = "page_token", deserialize_with = "non_empty", skip_serializing_if = "Option::is_none")]
    pub page_token: Option<String>,
    /// The largest number of messages of each history.
    #[serde(alias = "history_length", deserialize_with = "int32", skip_serializing_if = "Option::is_none")]
    pub history_length: Option<i32>,
    /// The time after which the state of the tasks changed.
    #[serde(alias = "status_timestamp_after", skip_serializing_if = "Option::is_none")]
    pub status_timestamp_after: Option<Timestamp>,
    /// Whether the answer has the artifacts of the tasks.
    #[serde(alias = "include_artifacts", deserialize_with = "null_default", skip_serializing_if = "std::ops::Not::not")]
    pub include_artifacts: bool,
}

/// A request to cancel a task.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CancelTask {
    /// The tenant that the request names.
    #[serde(default, deserialize_with = "non_empty", skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    /// The id of the task.
    pub id: TaskId,
    /// The metadata of the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Metadata>,
}

/// A request to follow the events of a task.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SubscribeToTask {
    /// The tenant that the request names.
    #[serde(default, deserialize_with = "non_empty", skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    /// The id of the task.
    pub id: TaskId,
}

/// A request for the extended card of an agent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct GetExtendedCard {
    /// The tenant that the request names.
    #[serde(default, deserialize_with = "non_empty", skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
}

/// One push configuration of one task. Version 0.3 may leave the configuration's id out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PushConfigRef {
    /// The tenant that the request names.
    #[serde(default, deserialize_with = "non_empty", skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    /// The task of the webhook.
    #[serde(alias = "task_id")]
    pub task_id: TaskId,
    /// The id of the registration.
    #[serde(default, deserialize_with = "non_empty", skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
}

/// A request for the webhooks of a task.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ListPushConfigs {
    /// The tenant that the request names.
    #[serde(default, deserialize_with = "non_empty", skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    /// The task of the webhooks.
    #[serde(alias = "task_id")]
    pub task_id: TaskId,
    /// The largest number of registrations on a page.
    #[serde(default, alias = "page_size", deserialize_with = "int32", skip_serializing_if = "Option::is_none")]
    pub page_size: Option<i32>,
    /// The token of the page, from the page before it.
    #[serde(default, alias = "page_token", deserialize_with = "non_empty", skip_serializing_if = "Option::is_none")]
    pub page_token: Option<String>,
}
