//! What a caller is told: one function per kind of answer.

use chancery_protocol::{Error, Reply, Sent};

use super::{card, message, proto, push, task};
use crate::pb::fields::other_reply;

pub fn sent(reply: Reply) -> Result<proto::SendMessageResponse, Error> {
    use proto::send_message_response::Payload;
    let payload = match reply {
        Reply::Sent(Sent::Task(shown)) => Payload::Task(task::write(&shown.task)),
        Reply::Sent(Sent::Message(message)) => Payload::Msg(message::write(&message)),
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

pub fn push_config(reply: Reply) -> Result<proto::TaskPushNotificationConfig, Error> {
    match reply {
        Reply::PushConfig(config) => Ok(push::write(&config)),
        _ => Err(other_reply()),
    }
}

pub fn push_configs(reply: Reply) -> Result<proto::ListTaskPushNotificationConfigResponse, Error> {
    match reply {
        Reply::PushConfigs(page) => Ok(proto::ListTaskPushNotificationConfigResponse {
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
