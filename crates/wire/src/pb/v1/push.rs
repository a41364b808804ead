//! Webhook registrations.

use chancery_protocol::{AuthenticationInfo, Error, PushConfig};

use super::proto;
use crate::pb::fields::{Within, optional, or_empty, text};

pub(super) fn read(config: proto::TaskPushNotificationConfig) -> Result<PushConfig, Error> {
    Ok(PushConfig {
        tenant: optional(config.tenant),
        id: optional(config.id),
        task_id: optional(config.task_id),
        url: text(config.url, "url")?,
        token: optional(config.token),
        authentication: config.authentication.map(read_authentication).transpose().within("authentication")?,
    })
}

pub(super) fn write(config: &PushConfig) -> proto::TaskPushNotificationConfig {
    proto::TaskPushNotificationConfig {
        tenant: or_empty(config.tenant.as_ref()),
        id: or_empty(config.id.as_ref()),
        task_id: or_empty(config.task_id.as_ref()),
        url: config.url.clone(),
        token: or_empty(config.token.as_ref()),
        authentication: config.authentication.as_ref().map(write_authentication),
    }
}

fn read_authentication(info: proto::AuthenticationInfo) -> Result<AuthenticationInfo, Error> {
    Ok(AuthenticationInfo { scheme: text(info.scheme, "scheme")?, credentials: optional(info.credentials) })
}

fn write_authentication(info: &AuthenticationInfo) -> proto::AuthenticationInfo {
    proto::AuthenticationInfo { scheme: info.scheme.clone(), credentials: or_empty(info.credentials.as_ref()) }
}
