//! A caller's tasks, newest status first, a page at a time. Page tokens are sealed: bound to caller and filter.

use chancery_protocol::{CallContext, Error, ListTasks, TaskId, TaskPage, Timestamp};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

use crate::agents::Agent;
use crate::check;
use crate::find::{internal, shown};
use crate::service::Inner;
use crate::{ListCursor, ListFilter};

const PURPOSE: &str = "page";

/// What a page token says. Short member names: callers carry it in URLs.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct PageToken {
    /// Where the last page ended.
    at: i64,
    id: TaskId,
    /// Digest of whose list it is and how it is filtered.
    of: [u8; 8],
}

impl Inner {
    pub(crate) async fn list(&self, context: &CallContext, agent: &Agent, list: ListTasks) -> Result<TaskPage, Error> {
        check::history_length("historyLength", list.history_length)?;
        let page_size = check::page_size(&list, &self.limits.load())?;
        let filter = ListFilter {
            owner: Some(context.caller.clone()),
            agent: Some(agent.name.clone()),
            context_id: list.context_id.clone(),
            state: list.status.filter(|state| *state != chancery_protocol::TaskState::Unspecified),
            status_at_or_after: list.status_timestamp_after,
        };
        let of = self.list_digest(&filter);
        let after = list.page_token.as_deref().map(|token| self.open_page_token(token, of)).transpose()?;
        let limit = usize::try_from(page_size).unwrap_or(1);
        let mut listed = self.store.list(&filter, after.as_ref(), limit + 1).await.map_err(internal)?;
        let more = listed.tasks.len() > limit;
        listed.tasks.truncate(limit);
        let last = listed.tasks.last().filter(|_| more);
        let next_page_token = last.map(|stored| {
            let token = PageToken { at: stored.progress.status_at.micros(), id: stored.task.id.clone(), of };
            self.seal.seal(PURPOSE, &serde_json::to_vec(&token).unwrap_or_default())
        });
        let mut tasks = Vec::with_capacity(listed.tasks.len());
        for stored in &listed.tasks {
            let mut task = match self.current(stored).await {
                Ok(task) => task,
                // Swept since it was listed.
                Err(error) if error.kind == chancery_protocol::ErrorKind::TaskNotFound => continue,
                Err(error) => return Err(error),
            };
            if !list.include_artifacts && !task.artifacts.is_empty() {
                Arc::make_mut(&mut task).artifacts.clear();
            }
            tasks.push(shown(&stored.task, task, list.history_length));
        }
        Ok(TaskPage {
            tasks,
            next_page_token: next_page_token.unwrap_or_default(),
            page_size,
            total_size: i32::try_from(listed.total).unwrap_or(i32::MAX),
            include_artifacts: list.include_artifacts,
        })
    }

    fn list_digest(&self, filter: &ListFilter) -> [u8; 8] {
        let text = format!("{filter:?}");
        let digest = self.seal.digest(text.as_bytes());
        let mut short = [0; 8];
        short.copy_from_slice(&digest[..8]);
        short
    }

    fn open_page_token(&self, token: &str, of: [u8; 8]) -> Result<ListCursor, Error> {
        let content = self.seal.open(PURPOSE, token).and_then(|content| serde_json::from_slice::<PageToken>(&content).ok());
        match content {
            Some(page) if page.of == of => Ok(ListCursor { status_at: Timestamp::from_micros(page.at), id: page.id }),
            _ => Err(Error::invalid_field("pageToken", "is not a token of this list; start again without one")),
        }
    }
}
