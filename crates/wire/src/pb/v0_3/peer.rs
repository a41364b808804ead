//! The other way round, for a client: requests as a peer wants them and replies as it gives them.
//!
//! What 0.3 has no place for is left out: the tenant, the metadata of a cancel, and a history of length zero.

use std::sync::Arc;

use chancery_protocol::{
    CancelTask, Error, GetTask, ListPushConfigs, NamedTask, PushConfig, PushConfigPage, PushConfigRef, Reply, SendMessage, Sent,
    SubscribeToTask, Version,
};

use super::{card, message, names, proto, push, task};
use crate::pb::calls::peer_replies;
use crate::pb::fields::{Within, list, of_peer, or_empty, required, to_metadata};

/// Sent and streamed messages have the same request.
pub fn send_message(send: &SendMessage) -> proto::SendMessageRequest {
    let configuration = &send.configuration;
    proto::SendMessageRequest {
        request: Some(message::write(&send.message)),
        configuration: Some(proto::SendMessageConfiguration {
            accepted_output_modes: configuration.accepted_output_modes.clone(),
            push_notification: configuration.task_push_notification_config.as_deref().map(push::write_bare),
            history_length: configuration.history_length.unwrap_or_default(),
            blocking: !configuration.return_immediately,
        }),
        metadata: to_metadata(send.metadata.as_ref()),
    }
}

pub fn get_task(get: &GetTask) -> proto::GetTaskRequest {
    proto::GetTaskRequest { name: names::of_task(&get.id), history_length: get.history_length.unwrap_or_default() }
}

pub fn cancel_task(cancel: &CancelTask) -> proto::CancelTaskRequest {
    proto::CancelTaskRequest { name: names::of_task(&cancel.id) }
}

pub fn subscribe_to_task(subscribe: &SubscribeToTask) -> proto::TaskSubscriptionRequest {
    proto::TaskSubscriptionRequest { name: names::of_task(&subscribe.id) }
}

pub fn create_push_config(config: &PushConfig) -> proto::CreateTaskPushNotificationConfigRequest {
    proto::CreateTaskPushNotificationConfigRequest {
        parent: config.task_id.as_ref().map(names::of_task).unwrap_or_default(),
        config_id: or_empty(config.id.as_ref()),
        config: Some(push::write(config)),
    }
}

pub fn get_push_config(which: &PushConfigRef) -> proto::GetTaskPushNotificationConfigRequest {
    proto::GetTaskPushNotificationConfigRequest { name: names::of_push_config(Some(&which.task_id), which.id.as_deref()) }
}

pub fn delete_push_config(which: &PushConfigRef) -> proto::DeleteTaskPushNotificationConfigRequest {
    proto::DeleteTaskPushNotificationConfigRequest { name: names::of_push_config(Some(&which.task_id), which.id.as_deref()) }
}

pub fn list_push_configs(list: &ListPushConfigs) -> proto::ListTaskPushNotificationConfigRequest {
    proto::ListTaskPushNotificationConfigRequest {
        parent: names::of_task(&list.task_id),
        page_size: list.page_size.unwrap_or_default(),
        page_token: or_empty(list.page_token.as_ref()),
    }
}

peer_replies! { version: Version::V0_3, payload: Msg as "msg", push_configs: ListTaskPushNotificationConfigResponse }
