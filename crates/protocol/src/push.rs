//! Webhook registrations.

use serde::{Deserialize, Serialize};

use crate::TaskId;
use crate::lenient::non_empty;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PushConfig {
    #[serde(default, deserialize_with = "non_empty", skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    #[serde(default, deserialize_with = "non_empty", skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    #[serde(default, alias = "task_id", deserialize_with = "non_empty", skip_serializing_if = "Option::is_none")]
    pub task_id: Option<TaskId>,
    pub url: String,
    #[serde(default, deserialize_with = "non_empty", skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub authentication: Option<AuthenticationInfo>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AuthenticationInfo {
    pub scheme: String,
    #[serde(default, deserialize_with = "non_empty", skip_serializing_if = "Option::is_none")]
    pub credentials: Option<String>,
}
