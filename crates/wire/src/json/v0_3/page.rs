//! A page of tasks. 0.3 names the operation without saying its shape; this is the one 1.0 settled on.

use chancery_protocol::lenient::null_default;
use chancery_protocol::{Shown, TaskPage};
use serde::{Deserialize, Serialize};

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
    #[serde(default, deserialize_with = "null_default")]
    next_page_token: String,
    #[serde(default, deserialize_with = "null_default")]
    page_size: i32,
    #[serde(default, deserialize_with = "null_default")]
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
