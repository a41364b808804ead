//! A page of tasks. 0.3 names the operation without saying its shape; this is the one 1.0 settled on.

use chancery_protocol::{NamedTask, TaskPage};
use serde::Serialize;

use super::form::Form;
use super::task::TaskView;
use crate::json::write::Each;

#[derive(Serialize)]
#[serde(rename_all = "camelCase", bound(serialize = "F: Form"))]
pub(super) struct Page<'a, F: Form> {
    tasks: Each<'a, NamedTask, TaskView<'a, F>>,
    next_page_token: &'a str,
    page_size: i32,
    total_size: i32,
}

impl<'a, F: Form> Page<'a, F> {
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
