//! Push configurations of 0.3: the configuration nested beside its task's id, several schemes instead of one.

use chancery_protocol::lenient::{non_empty, null_default};
use chancery_protocol::{AuthenticationInfo, PushConfig, TaskId};
use serde::de::{self, Deserializer};
use serde::{Deserialize, Serialize};

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct TaskConfigView<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    task_id: Option<&'a TaskId>,
    push_notification_config: ConfigView<'a>,
}

impl<'a> From<&'a PushConfig> for TaskConfigView<'a> {
    fn from(config: &'a PushConfig) -> Self {
        Self { task_id: config.task_id.as_ref(), push_notification_config: config.into() }
    }
}

#[derive(Serialize)]
pub(crate) struct ConfigView<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a str>,
    url: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    token: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    authentication: Option<AuthenticationView<'a>>,
}

#[derive(Serialize)]
struct AuthenticationView<'a> {
    schemes: [&'a str; 1],
    #[serde(skip_serializing_if = "Option::is_none")]
    credentials: Option<&'a str>,
}

impl<'a> From<&'a PushConfig> for ConfigView<'a> {
    fn from(config: &'a PushConfig) -> Self {
        Self {
            id: config.id.as_deref(),
            url: &config.url,
            token: config.token.as_deref(),
            authentication: config.authentication.as_ref().map(|authentication| AuthenticationView {
                schemes: [&authentication.scheme],
                credentials: authentication.credentials.as_deref(),
            }),
        }
    }
}

impl<'a> ConfigView<'a> {
    /// As the original has it, with one configuration per task.
    pub(crate) fn without_id(config: &'a PushConfig) -> Self {
        Self { id: None, ..config.into() }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct TaskConfigMembers {
    task_id: TaskId,
    push_notification_config: ConfigMembers,
}

impl From<TaskConfigMembers> for PushConfig {
    fn from(config: TaskConfigMembers) -> Self {
        config.push_notification_config.of(Some(config.task_id))
    }
}

#[derive(Deserialize)]
pub(crate) struct ConfigMembers {
    #[serde(default, deserialize_with = "non_empty")]
    id: Option<String>,
    url: String,
    #[serde(default, deserialize_with = "non_empty")]
    token: Option<String>,
    #[serde(default, deserialize_with = "authentication")]
    authentication: Option<AuthenticationInfo>,
}

impl ConfigMembers {
    pub(crate) fn of(self, task_id: Option<TaskId>) -> PushConfig {
        let Self { id, url, token, authentication } = self;
        PushConfig { tenant: None, id, task_id, url, token, authentication }
    }
}

/// The first scheme is the one used, as the newer versions know only one.
fn authentication<'de, D: Deserializer<'de>>(from: D) -> Result<Option<AuthenticationInfo>, D::Error> {
    #[derive(Deserialize)]
    struct Members {
        #[serde(default, deserialize_with = "null_default")]
        schemes: Vec<String>,
        #[serde(default, deserialize_with = "non_empty")]
        credentials: Option<String>,
    }

    let Some(members) = Option::<Members>::deserialize(from)? else {
        return Ok(None);
    };
    match (members.schemes.into_iter().next(), members.credentials) {
        (Some(scheme), credentials) => Ok(Some(AuthenticationInfo { scheme, credentials })),
        (None, None) => Ok(None),
        (None, Some(_)) => Err(de::Error::custom("credentials need a scheme")),
    }
}
