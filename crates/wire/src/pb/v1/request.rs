//! What a caller asks: one function per method of the service.

use std::sync::Arc;

use chancery_protocol::{
    CancelTask, Error, GetExtendedCard, GetTask, ListPushConfigs, ListTasks, PushConfigRef, Request, SendConfiguration,
    SendMessage, SubscribeToTask,
};

use super::{message, proto, push};
use crate::pb::calls::sent_messages;
use crate::pb::fields::{Within, first_text, metadata, non_zero, optional, required, state, text, timestamp};

sent_messages! { tenant: tenant, message: message }

fn read_configuration(configuration: proto::SendMessageConfiguration) -> Result<SendConfiguration, Error> {
    let push = configuration.task_push_notification_config.map(push::read).transpose();
    Ok(SendConfiguration {
        accepted_output_modes: configuration.accepted_output_modes,
        task_push_notification_config: push.within("task_push_notification_config")?.map(Box::new),
        history_length: configuration.history_length,
        return_immediately: configuration.return_immediately,
    })
}

pub fn get_task(request: proto::GetTaskRequest) -> Result<Request, Error> {
    Ok(Request::GetTask(GetTask {
        tenant: optional(request.tenant),
        id: text(request.id, "id")?,
        history_length: request.history_length,
    }))
}

pub fn list_tasks(request: proto::ListTasksRequest) -> Result<Request, Error> {
    Ok(Request::ListTasks(ListTasks {
        tenant: optional(request.tenant),
        context_id: optional(request.context_id),
        // The field has no presence: "unspecified" is how a caller says "any".
        status: non_zero(request.status).map(|number| state(number, "status")).transpose()?,
        page_size: request.page_size,
        page_token: optional(request.page_token),
        history_length: request.history_length,
        status_timestamp_after: request
            .status_timestamp_after
            .map(|time| timestamp(time, "status_timestamp_after"))
            .transpose()?,
        include_artifacts: request.include_artifacts.unwrap_or_default(),
    }))
}

pub fn cancel_task(request: proto::CancelTaskRequest) -> Result<Request, Error> {
    Ok(Request::CancelTask(CancelTask {
        tenant: optional(request.tenant),
        id: text(request.id, "id")?,
        metadata: metadata(request.metadata, "metadata")?,
    }))
}

pub fn subscribe_to_task(request: proto::SubscribeToTaskRequest) -> Result<Request, Error> {
    Ok(Request::SubscribeToTask(SubscribeToTask { tenant: optional(request.tenant), id: text(request.id, "id")? }))
}

pub fn create_push_config(config: proto::TaskPushNotificationConfig) -> Result<Request, Error> {
    let config = push::read(config)?;
    required(config.task_id.as_ref(), "task_id")?;
    Ok(Request::CreatePushConfig(config))
}

pub fn get_push_config(request: proto::GetTaskPushNotificationConfigRequest) -> Result<Request, Error> {
    read_ref(request.tenant, request.task_id, request.id).map(Request::GetPushConfig)
}

pub fn delete_push_config(request: proto::DeleteTaskPushNotificationConfigRequest) -> Result<Request, Error> {
    read_ref(request.tenant, request.task_id, request.id).map(Request::DeletePushConfig)
}

fn read_ref(tenant: String, task_id: String, id: String) -> Result<PushConfigRef, Error> {
    Ok(PushConfigRef { tenant: optional(tenant), task_id: text(task_id, "task_id")?, id: Some(text(id, "id")?) })
}

pub fn list_push_configs(request: proto::ListTaskPushNotificationConfigsRequest) -> Result<Request, Error> {
    Ok(Request::ListPushConfigs(ListPushConfigs {
        tenant: optional(request.tenant),
        task_id: text(request.task_id, "task_id")?,
        page_size: non_zero(request.page_size),
        page_token: optional(request.page_token),
    }))
}

pub fn get_extended_card(request: proto::GetExtendedAgentCardRequest) -> Result<Request, Error> {
    Ok(Request::GetExtendedCard(GetExtendedCard { tenant: optional(request.tenant) }))
}
