//! Webhook registrations.

use serde::{Deserialize, Serialize};

use crate::TaskId;
use crate::lenient::non_empty;

/// The registration of a webhook for the events of a task.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PushConfig {
    /// The tenant that the request names.
    #[serde(default, deserialize_with = "non_empty", skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    /// The id of the registration. The node makes one if it is missing.
    #[serde(default, deserialize_with = "non_empty", skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The task whose events are delivered.
    #[serde(default, alias = "task_id", deserialize_with = "non_empty", skip_serializing_if = "Option::is_none")]
    pub task_id: Option<TaskId>,
    /// The URL that notifications are sent to.
    pub url: String,
    /// A token that each notification brings back, so that the receiver can recognize it.
    #[serde(default, deserialize_with = "non_empty", skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
    /// How the node authenticates to the receiver.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub authentication: Option<AuthenticationInfo>,
}

/// The credentials that a webhook requires.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AuthenticationInfo {
    /// The scheme of the `Authorization` header, such as `Bearer`.
    pub scheme: String,
    /// The credentials behind the scheme.
    #[serde(default, deserialize_with = "non_empty", skip_serializing_if = "Option::is_none")]
    pub credentials: Option<String>,
}
