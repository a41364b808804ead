//! Pages of push configurations.

use chancery_protocol::lenient::null_default;
use chancery_protocol::{PushConfig, PushConfigPage};
use serde::{Deserialize, Serialize};

use super::request::{TaskConfigMembers, TaskConfigView};
use crate::json::write::Each;

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
