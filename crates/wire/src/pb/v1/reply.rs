//! What a caller is told: one function per kind of answer.

use chancery_protocol::{Error, Reply, Sent, TaskPage};

use super::{card, message, proto, push, task};
use crate::pb::fields::other_reply;

pub fn sent(reply: Reply) -> Result<proto::SendMessageResponse, Error> {
    use proto::send_message_response::Payload;
    let payload = match reply {
        Reply::Sent(Sent::Task(shown)) => Payload::Task(task::write(&shown.task)),
        Reply::Sent(Sent::Message(message)) => Payload::Message(message::write(&message)),
        _ => return Err(other_reply()),
    };
    Ok(proto::SendMessageResponse { payload: Some(payload) })
}

pub fn task(reply: Reply) -> Result<proto::Task, Error> {
    match reply {
        Reply::Task(shown) => Ok(task::write(&shown.task)),
        _ => Err(other_reply()),
    }
}

pub fn tasks(reply: Reply) -> Result<proto::ListTasksResponse, Error> {
    let Reply::Tasks(page) = reply else { return Err(other_reply()) };
    let TaskPage { tasks, next_page_token, page_size, total_size, include_artifacts } = page;
    let write = if include_artifacts { task::write } else { task::write_without_artifacts };
    let tasks = tasks.iter().map(|shown| write(&shown.task)).collect();
    Ok(proto::ListTasksResponse { tasks, next_page_token, page_size, total_size })
}

pub fn push_config(reply: Reply) -> Result<proto::TaskPushNotificationConfig, Error> {
    match reply {
        Reply::PushConfig(config) => Ok(push::write(&config)),
        _ => Err(other_reply()),
    }
}

pub fn push_configs(reply: Reply) -> Result<proto::ListTaskPushNotificationConfigsResponse, Error> {
    match reply {
        Reply::PushConfigs(page) => Ok(proto::ListTaskPushNotificationConfigsResponse {
            configs: page.configs.iter().map(push::write).collect(),
            next_page_token: page.next_page_token,
        }),
        _ => Err(other_reply()),
    }
}

/// The answer to a delete is empty.
pub fn push_config_deleted(reply: Reply) -> Result<(), Error> {
    match reply {
        Reply::PushConfigDeleted => Ok(()),
        _ => Err(other_reply()),
    }
}

pub fn card(reply: Reply) -> Result<proto::AgentCard, Error> {
    match reply {
        Reply::Card(card) => Ok(card::write(&card)),
        _ => Err(other_reply()),
    }
}
