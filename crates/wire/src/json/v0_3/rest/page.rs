//! Pages of tasks and of push configurations.

use chancery_protocol::lenient::null_default;
use chancery_protocol::{PushConfig, PushConfigPage, Shown, TaskPage};
use serde::{Deserialize, Serialize};

use super::request::{TaskConfigMembers, TaskConfigView};
use super::shown;
use super::task::{TaskMembers, TaskView};
use crate::json::write::Each;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Page<'a> {
    tasks: Each<'a, Shown, TaskView<'a>>,
    next_page_token: &'a str,
    page_size: i32,
    total_size: i32,
}

impl<'a> Page<'a> {
    pub(super) fn of(page: &'a TaskPage) -> Self {
        let view = if page.include_artifacts { TaskView::with_artifacts } else { TaskView::without_artifacts };
        Self {
            tasks: Each(&page.tasks, view),
            next_page_token: &page.next_page_token,
            page_size: page.page_size,
            total_size: page.total_size,
        }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PageMembers {
    #[serde(default, deserialize_with = "null_default")]
    tasks: Vec<TaskMembers>,
    #[serde(default, alias = "next_page_token", deserialize_with = "null_default")]
    next_page_token: String,
    #[serde(default, alias = "page_size", deserialize_with = "null_default")]
    page_size: i32,
    #[serde(default, alias = "total_size", deserialize_with = "null_default")]
    total_size: i32,
}

impl From<PageMembers> for TaskPage {
    fn from(page: PageMembers) -> Self {
        let tasks: Vec<Shown> = page.tasks.into_iter().map(shown).collect();
        Self {
            include_artifacts: tasks.iter().any(|shown| !shown.task.artifacts.is_empty()),
            tasks,
            next_page_token: page.next_page_token,
            page_size: page.page_size,
            total_size: page.total_size,
        }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PushPage<'a> {
    configs: Each<'a, PushConfig, TaskConfigView<'a>>,
    #[serde(skip_serializing_if = "str::is_empty")]
    next_page_token: &'a str,
}

impl<'a> PushPage<'a> {
    pub(super) fn of(page: &'a PushConfigPage) -> Self {
        Self { configs: Each(&page.configs, TaskConfigView::from), next_page_token: &page.next_page_token }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PushPageMembers {
    #[serde(default, deserialize_with = "null_default")]
    configs: Vec<TaskConfigMembers>,
    #[serde(default, alias = "next_page_token", deserialize_with = "null_default")]
    next_page_token: String,
}

impl From<PushPageMembers> for PushConfigPage {
    fn from(page: PushPageMembers) -> Self {
        let configs = page.configs.into_iter().map(TaskConfigMembers::into_model).collect();
        Self { configs, next_page_token: page.next_page_token }
    }
}
