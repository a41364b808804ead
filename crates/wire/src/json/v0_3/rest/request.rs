//! How 0.3 REST callers name a task or a push configuration: path, query and body of the 0.3 proto, joined into one object.

use chancery_protocol::lenient::{int32, non_empty};
use chancery_protocol::{Error, Metadata, PushConfig, PushConfigRef, TaskId};
use serde::{Deserialize, Serialize};

use crate::json::v0_3::push::{ConfigMembers, ConfigView};

/// A task, or a push configuration of one, by the names in the path; the proto's resource names are understood as well.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct RefMembers {
    #[serde(default, deserialize_with = "non_empty")]
    id: Option<String>,
    #[serde(default, alias = "task_id", deserialize_with = "non_empty")]
    task_id: Option<String>,
    #[serde(default, alias = "config_id", deserialize_with = "non_empty")]
    config_id: Option<String>,
    #[serde(default, alias = "push_notification_config_id", deserialize_with = "non_empty")]
    push_notification_config_id: Option<String>,
    name: Option<String>,
    parent: Option<String>,
    #[serde(default, alias = "history_length", deserialize_with = "int32")]
    pub(super) history_length: Option<i32>,
    #[serde(default, alias = "page_size", deserialize_with = "int32")]
    pub(super) page_size: Option<i32>,
    #[serde(default, alias = "page_token", deserialize_with = "non_empty")]
    pub(super) page_token: Option<String>,
    pub(super) metadata: Option<Metadata>,
    /// A whole push configuration to set, in the proto's wrapper or, as some clients post it, without.
    config: Option<TaskConfigMembers>,
    #[serde(alias = "push_notification_config")]
    push_notification_config: Option<ConfigMembers>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct TaskConfigMembers {
    name: Option<String>,
    #[serde(alias = "push_notification_config")]
    push_notification_config: ConfigMembers,
}

/// The task and the configuration in `tasks/{id}/pushNotificationConfigs/{id}`.
fn resource(name: &str) -> (Option<&str>, Option<&str>) {
    let mut segments = name.split('/');
    let task = (segments.next() == Some("tasks")).then(|| segments.next()).flatten();
    let config = (segments.next() == Some("pushNotificationConfigs")).then(|| segments.next()).flatten();
    (task.filter(|id| !id.is_empty()), config.filter(|id| !id.is_empty()))
}

impl RefMembers {
    pub(super) fn task(&self) -> Result<TaskId, Error> {
        let name = || self.name.as_deref().and_then(|name| resource(name).0);
        let parent = || self.parent.as_deref().and_then(|parent| resource(parent).0);
        let config = || self.config.as_ref().and_then(|config| config.name.as_deref()).and_then(|name| resource(name).0);
        let found = self.task_id.as_deref().or(self.id.as_deref()).or_else(name).or_else(parent).or_else(config);
        found.map(TaskId::from).ok_or_else(|| Error::invalid_field("id", "is required"))
    }

    pub(super) fn push_config(&self) -> Result<PushConfigRef, Error> {
        // With the task named apart, a bare id is the configuration's.
        let bare = self.id.clone().filter(|_| self.task_id.is_some());
        let named = || self.name.as_deref().and_then(|name| resource(name).1).map(str::to_owned);
        let id = self.config_id.clone().or_else(|| self.push_notification_config_id.clone()).or(bare).or_else(named);
        Ok(PushConfigRef { tenant: None, task_id: self.task()?, id })
    }

    pub(super) fn into_new_push_config(self) -> Result<PushConfig, Error> {
        let task_id = self.task()?;
        let config = self.config.map(|config| config.push_notification_config).or(self.push_notification_config);
        let config = config.ok_or_else(|| Error::invalid_field("config.pushNotificationConfig", "is required"))?;
        let mut config = config.of(Some(task_id));
        // Not from the resource name: a client without an id writes a placeholder there.
        config.id = config.id.or(self.config_id).or(self.push_notification_config_id);
        Ok(config)
    }
}

/// The other direction of `RefMembers`.
#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct RefView<'a> {
    pub(super) id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) config_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) history_length: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) page_size: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) page_token: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) metadata: Option<&'a Metadata>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) parent: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) config: Option<TaskConfigView<'a>>,
}

impl<'a> RefView<'a> {
    pub(super) fn of(task: &'a TaskId) -> Self {
        Self { id: task.as_str(), ..Self::default() }
    }
}

/// A push configuration under its resource name.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct TaskConfigView<'a> {
    name: String,
    push_notification_config: ConfigView<'a>,
}

impl<'a> From<&'a PushConfig> for TaskConfigView<'a> {
    fn from(config: &'a PushConfig) -> Self {
        let task = config.task_id.as_ref().map_or("", TaskId::as_str);
        let id = config.id.as_deref().unwrap_or_default();
        Self { name: format!("tasks/{task}/pushNotificationConfigs/{id}"), push_notification_config: config.into() }
    }
}

impl TaskConfigMembers {
    pub(super) fn into_model(self) -> PushConfig {
        let task_id = self.name.as_deref().and_then(|name| resource(name).0).map(TaskId::from);
        self.push_notification_config.of(task_id)
    }
}
