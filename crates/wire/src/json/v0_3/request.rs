//! What 0.3 callers are written to have asked, and the `params` that name a task.

use chancery_protocol::lenient::{int32, non_empty};
use chancery_protocol::{
    CancelTask, GetTask, ListPushConfigs, Metadata, PushConfigRef, SendMessage, SubscribeToTask, TaskId, Unknown,
};
use serde::{Deserialize, Serialize};

use super::form::Form;
use super::message::MessageView;
use super::push::ConfigView;

#[derive(Serialize)]
#[serde(bound(serialize = "F: Form"))]
pub(super) struct SendView<'a, F: Form> {
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<MessageView<'a, F>>,
    /// The message, by its name in the proto.
    #[serde(skip_serializing_if = "Option::is_none")]
    request: Option<MessageView<'a, F>>,
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
    /// The configuration of the webhook, by its name and place in the proto.
    #[serde(skip_serializing_if = "Option::is_none")]
    push_notification: Option<ConfigView<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    history_length: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    push_notification_config: Option<ConfigView<'a>>,
    blocking: bool,
}

impl<'a, F: Form> From<&'a SendMessage> for SendView<'a, F> {
    fn from(send: &'a SendMessage) -> Self {
        let configuration = &send.configuration;
        let message = || (&*send.message).into();
        let push = configuration.task_push_notification_config.as_deref().map(Into::into);
        let (push_notification, push_notification_config) = if F::HAS_PROTO_NAMES { (push, None) } else { (None, push) };
        Self {
            message: (!F::HAS_PROTO_NAMES).then(message),
            request: F::HAS_PROTO_NAMES.then(message),
            configuration: ConfigurationView {
                accepted_output_modes: &configuration.accepted_output_modes,
                push_notification,
                history_length: set(configuration.history_length),
                push_notification_config,
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
