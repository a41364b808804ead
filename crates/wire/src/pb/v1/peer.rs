//! The other way round, for a client: requests as a peer wants them and replies as it gives them.

use std::sync::Arc;

use chancery_protocol::{
    CancelTask, Error, GetTask, ListPushConfigs, ListTasks, NamedTask, PushConfig, PushConfigPage, PushConfigRef, Reply,
    SendConfiguration, SendMessage, Sent, SubscribeToTask, TaskPage, Version,
};

use super::{card, message, proto, push, task};
use crate::pb::calls::peer_replies;
use crate::pb::fields::{Within, list, of_peer, or_empty, required, to_metadata, to_timestamp};

/// Sent and streamed messages have the same request.
pub fn send_message(send: &SendMessage) -> proto::SendMessageRequest {
    proto::SendMessageRequest {
        tenant: or_empty(send.tenant.as_ref()),
        message: Some(message::write(&send.message)),
        configuration: (!send.configuration.is_default()).then(|| write_configuration(&send.configuration)),
        metadata: to_metadata(send.metadata.as_ref()),
    }
}

fn write_configuration(configuration: &SendConfiguration) -> proto::SendMessageConfiguration {
    proto::SendMessageConfiguration {
        accepted_output_modes: configuration.accepted_output_modes.clone(),
        task_push_notification_config: configuration.task_push_notification_config.as_deref().map(push::write),
        history_length: configuration.history_length,
        return_immediately: configuration.return_immediately,
    }
}

pub fn get_task(get: &GetTask) -> proto::GetTaskRequest {
    proto::GetTaskRequest { tenant: or_empty(get.tenant.as_ref()), id: get.id.to_string(), history_length: get.history_length }
}

pub fn list_tasks(list: &ListTasks) -> proto::ListTasksRequest {
    proto::ListTasksRequest {
        tenant: or_empty(list.tenant.as_ref()),
        context_id: or_empty(list.context_id.as_ref()),
        status: list.status.map_or(0, |state| state.number()),
        page_size: list.page_size,
        page_token: or_empty(list.page_token.as_ref()),
        history_length: list.history_length,
        status_timestamp_after: list.status_timestamp_after.map(to_timestamp),
        include_artifacts: list.include_artifacts.then_some(true),
    }
}

pub fn cancel_task(cancel: &CancelTask) -> proto::CancelTaskRequest {
    proto::CancelTaskRequest {
        tenant: or_empty(cancel.tenant.as_ref()),
        id: cancel.id.to_string(),
        metadata: to_metadata(cancel.metadata.as_ref()),
    }
}

pub fn subscribe_to_task(subscribe: &SubscribeToTask) -> proto::SubscribeToTaskRequest {
    proto::SubscribeToTaskRequest { tenant: or_empty(subscribe.tenant.as_ref()), id: subscribe.id.to_string() }
}

pub fn create_push_config(config: &PushConfig) -> proto::TaskPushNotificationConfig {
    push::write(config)
}

pub fn get_push_config(which: &PushConfigRef) -> proto::GetTaskPushNotificationConfigRequest {
    proto::GetTaskPushNotificationConfigRequest {
        tenant: or_empty(which.tenant.as_ref()),
        task_id: which.task_id.to_string(),
        id: or_empty(which.id.as_ref()),
    }
}

pub fn delete_push_config(which: &PushConfigRef) -> proto::DeleteTaskPushNotificationConfigRequest {
    proto::DeleteTaskPushNotificationConfigRequest {
        tenant: or_empty(which.tenant.as_ref()),
        task_id: which.task_id.to_string(),
        id: or_empty(which.id.as_ref()),
    }
}

pub fn list_push_configs(list: &ListPushConfigs) -> proto::ListTaskPushNotificationConfigsRequest {
    proto::ListTaskPushNotificationConfigsRequest {
        tenant: or_empty(list.tenant.as_ref()),
        task_id: list.task_id.to_string(),
        page_size: list.page_size.unwrap_or_default(),
        page_token: or_empty(list.page_token.as_ref()),
    }
}

peer_replies! { version: Version::V1_0, payload: Message as "message", push_configs: ListTaskPushNotificationConfigsResponse }

pub fn tasks(response: proto::ListTasksResponse) -> Result<Reply, Error> {
    let include_artifacts = response.tasks.iter().any(|task| !task.artifacts.is_empty());
    Ok(Reply::Tasks(TaskPage {
        tasks: of_peer(list(response.tasks, "tasks", read_shown))?,
        next_page_token: response.next_page_token,
        page_size: response.page_size,
        total_size: response.total_size,
        include_artifacts,
    }))
}
