//! Pages of tasks and of push configurations.

use std::sync::Arc;

use chancery_protocol::lenient::null_default;
use chancery_protocol::{
    Artifact, ContextId, Message, Metadata, NamedTask, PushConfig, PushConfigPage, Task, TaskId, TaskPage, TaskStatus, Unknown,
};
use serde::{Deserialize, Serialize};

use super::shown;
use crate::json::write::Each;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Listing<'a> {
    tasks: Each<'a, NamedTask, Listed<'a>>,
    next_page_token: &'a str,
    page_size: i32,
    total_size: i32,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Listed<'a> {
    id: &'a TaskId,
    context_id: &'a ContextId,
    status: &'a TaskStatus,
    #[serde(skip_serializing_if = "Option::is_none")]
    artifacts: Option<&'a [Arc<Artifact>]>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    history: &'a [Arc<Message>],
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<&'a Metadata>,
    #[serde(flatten)]
    unknown: &'a Unknown<Task>,
}

impl<'a> Listing<'a> {
    pub(super) fn of(page: &'a TaskPage) -> Self {
        let view = if page.include_artifacts { Listed::with_artifacts } else { Listed::without_artifacts };
        Self {
            tasks: Each(&page.tasks, view),
            next_page_token: &page.next_page_token,
            page_size: page.page_size,
            total_size: page.total_size,
        }
    }
}

impl<'a> Listed<'a> {
    pub(super) fn of(shown: &'a NamedTask, include_artifacts: bool) -> Self {
        if include_artifacts { Self::with_artifacts(shown) } else { Self::without_artifacts(shown) }
    }

    fn without_artifacts(shown: &'a NamedTask) -> Self {
        let Task { id, context_id, status, history, metadata, unknown, .. } = &*shown.task;
        Self { id, context_id, status, artifacts: None, history, metadata: metadata.as_ref(), unknown }
    }

    fn with_artifacts(shown: &'a NamedTask) -> Self {
        Self { artifacts: Some(&shown.task.artifacts), ..Self::without_artifacts(shown) }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ListingMembers {
    #[serde(default, deserialize_with = "null_default")]
    tasks: Vec<Arc<Task>>,
    #[serde(default, alias = "next_page_token", deserialize_with = "null_default")]
    next_page_token: String,
    #[serde(default, alias = "page_size", deserialize_with = "null_default")]
    page_size: i32,
    #[serde(default, alias = "total_size", deserialize_with = "null_default")]
    total_size: i32,
}

impl From<ListingMembers> for TaskPage {
    fn from(page: ListingMembers) -> Self {
        let include_artifacts = page.tasks.iter().any(|task| !task.artifacts.is_empty());
        Self {
            tasks: page.tasks.into_iter().map(shown).collect(),
            next_page_token: page.next_page_token,
            page_size: page.page_size,
            total_size: page.total_size,
            include_artifacts,
        }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PushListing<'a> {
    pub(super) configs: &'a [PushConfig],
    #[serde(skip_serializing_if = "str::is_empty")]
    pub(super) next_page_token: &'a str,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PushListingMembers {
    #[serde(default, deserialize_with = "null_default")]
    configs: Vec<PushConfig>,
    #[serde(default, alias = "next_page_token", deserialize_with = "null_default")]
    next_page_token: String,
}

impl From<PushListingMembers> for PushConfigPage {
    fn from(page: PushListingMembers) -> Self {
        Self { configs: page.configs, next_page_token: page.next_page_token }
    }
}
