//! What a caller asks: one function per method of the service.

use std::sync::Arc;

use chancery_protocol::{
    CancelTask, Error, GetExtendedCard, GetTask, ListPushConfigs, PushConfig, Request, SendConfiguration, SendMessage,
    SubscribeToTask,
};

use super::{message, names, proto, push};
use crate::pb::calls::sent_messages;
use crate::pb::fields::{Within, first_text, metadata, non_zero, optional, required};

sent_messages! { message: request }

fn read_configuration(configuration: proto::SendMessageConfiguration) -> Result<SendConfiguration, Error> {
    let push = configuration.push_notification.map(|config| push::read_bare(config, None)).transpose();
    Ok(SendConfiguration {
        accepted_output_modes: configuration.accepted_output_modes,
        task_push_notification_config: push.within("push_notification")?.map(Box::new),
        history_length: non_zero(configuration.history_length),
        // A flag that is left out is false: callers wait only when they say so, also those who send no configuration.
        return_immediately: !configuration.blocking,
    })
}

pub fn get_task(request: proto::GetTaskRequest) -> Result<Request, Error> {
    let id = names::task(&request.name, "name")?;
    Ok(Request::GetTask(GetTask { tenant: None, id, history_length: non_zero(request.history_length) }))
}

pub fn cancel_task(request: proto::CancelTaskRequest) -> Result<Request, Error> {
    Ok(Request::CancelTask(CancelTask { tenant: None, id: names::task(&request.name, "name")?, metadata: None }))
}

pub fn subscribe_to_task(request: proto::TaskSubscriptionRequest) -> Result<Request, Error> {
    Ok(Request::SubscribeToTask(SubscribeToTask { tenant: None, id: names::task(&request.name, "name")? }))
}

pub fn create_push_config(request: proto::CreateTaskPushNotificationConfigRequest) -> Result<Request, Error> {
    let task_id = names::task(&request.parent, "parent")?;
    // The name inside says nothing: a client without an id writes a placeholder there.
    let config = required(request.config.and_then(|config| config.push_notification_config), "config.push_notification_config")?;
    let config = push::read_bare(config, Some(task_id)).within("config.push_notification_config")?;
    Ok(Request::CreatePushConfig(PushConfig { id: config.id.or(optional(request.config_id)), ..config }))
}

pub fn get_push_config(request: proto::GetTaskPushNotificationConfigRequest) -> Result<Request, Error> {
    names::push_config(&request.name, "name").map(Request::GetPushConfig)
}

pub fn delete_push_config(request: proto::DeleteTaskPushNotificationConfigRequest) -> Result<Request, Error> {
    let which = names::push_config(&request.name, "name")?;
    if which.id.is_none() {
        return Err(Error::invalid_field("name", "names no configuration"));
    }
    Ok(Request::DeletePushConfig(which))
}

pub fn list_push_configs(request: proto::ListTaskPushNotificationConfigRequest) -> Result<Request, Error> {
    Ok(Request::ListPushConfigs(ListPushConfigs {
        tenant: None,
        task_id: names::task(&request.parent, "parent")?,
        page_size: non_zero(request.page_size),
        page_token: optional(request.page_token),
    }))
}

/// The only card of this service is the one for callers who proved themselves.
pub fn get_extended_card(_request: proto::GetAgentCardRequest) -> Result<Request, Error> {
    Ok(Request::GetExtendedCard(GetExtendedCard::default()))
}
