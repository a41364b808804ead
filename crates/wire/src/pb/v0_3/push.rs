//! Webhook registrations: the configuration under a resource name, several schemes instead of one.

use chancery_protocol::{AuthenticationInfo, Error, PushConfig, TaskId};

use super::{names, proto};
use crate::pb::fields::{Within, optional, or_empty, required, text};

/// A configuration of a task, under its resource name.
pub(super) fn read(config: proto::TaskPushNotificationConfig) -> Result<PushConfig, Error> {
    let which = names::push_config(&config.name, "name")?;
    let inner = required(config.push_notification_config, "push_notification_config")?;
    let config = read_bare(inner, Some(which.task_id)).within("push_notification_config")?;
    Ok(PushConfig { id: config.id.or(which.id), ..config })
}

pub(super) fn write(config: &PushConfig) -> proto::TaskPushNotificationConfig {
    proto::TaskPushNotificationConfig {
        name: names::of_push_config(config.task_id.as_ref(), config.id.as_deref()),
        push_notification_config: Some(write_bare(config)),
    }
}

pub(super) fn read_bare(config: proto::PushNotificationConfig, task_id: Option<TaskId>) -> Result<PushConfig, Error> {
    Ok(PushConfig {
        tenant: None,
        id: optional(config.id),
        task_id,
        url: text(config.url, "url")?,
        token: optional(config.token),
        authentication: config.authentication.map_or(Ok(None), read_authentication).within("authentication")?,
    })
}

pub(super) fn write_bare(config: &PushConfig) -> proto::PushNotificationConfig {
    proto::PushNotificationConfig {
        id: or_empty(config.id.as_ref()),
        url: config.url.clone(),
        token: or_empty(config.token.as_ref()),
        authentication: config.authentication.as_ref().map(|info| proto::AuthenticationInfo {
            schemes: vec![info.scheme.clone()],
            credentials: or_empty(info.credentials.as_ref()),
        }),
    }
}

/// The first scheme is the one used, as the model knows only one.
fn read_authentication(info: proto::AuthenticationInfo) -> Result<Option<AuthenticationInfo>, Error> {
    match (info.schemes.into_iter().next(), optional(info.credentials)) {
        (Some(scheme), credentials) => Ok(Some(AuthenticationInfo { scheme, credentials })),
        (None, None) => Ok(None),
        (None, Some(_)) => Err(Error::invalid_field("schemes", "is required")),
    }
}
