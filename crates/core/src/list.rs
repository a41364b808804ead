//! A caller's tasks, newest status first, a page at a time. Page tokens are sealed: bound to caller and filter.
//!
//! A page is read task by task, as its caller takes it: nothing of it is held that is not on its way.

use std::collections::VecDeque;
use std::sync::Arc;

use chancery_protocol::{CallAccount, CallContext, Error, ErrorKind, ListTasks, NamedTask, TaskId, TaskPage, Timestamp};
use chancery_rules::task_state::task_weight;
use serde::{Deserialize, Serialize};

use crate::agents::Agent;
use crate::answering::{AnswerPermit, COUNTED_FROM};
use crate::check;
use crate::find::{internal, shown};
use crate::restored_parts::{restored_shown, takes_references};
use crate::service::ChanceryInner;
use crate::{ListCursor, ListFilter, Stored};

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

/// One page of a list: its tasks one after the other, then what stands at its end. It ends before the task that would make it
/// larger than `limits.answer_bytes`; a task that is larger than that by itself is a page of its own.
#[derive(Debug)]
pub struct PageReader {
    inner: Arc<ChanceryInner>,
    account: CallAccount,
    list: ListTasks,
    of: [u8; 8],
    page_size: i32,
    total_size: i32,
    /// The rest of the page.
    rows: VecDeque<Stored>,
    /// The list goes on after the rows.
    more: bool,
    /// The last task that was taken from the rows.
    last: Option<ListCursor>,
    /// Read before the page is answered, so that a fault is the answer and not the end of it.
    first: Option<NamedTask>,
    bytes: u64,
    begun: bool,
    /// The caller takes references to large parts instead of the parts.
    references: bool,
    /// The most bytes of offloaded parts that are restored.
    restore: Option<u64>,
    /// Room for the tasks handed out since `take_permit`.
    permit: Option<AnswerPermit>,
}

/// What stands at the end of a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageEnd {
    /// Empty on the last page.
    pub next_page_token: String,
    /// The number of tasks on the page.
    pub page_size: i32,
    /// The number of tasks that match.
    pub total_size: i32,
}

impl ChanceryInner {
    pub(crate) async fn list(
        self: &Arc<Self>,
        context: &CallContext,
        agent: &Agent,
        list: ListTasks,
    ) -> Result<PageReader, Error> {
        check::history_length("historyLength", list.history_length)?;
        let page_size = check::page_size(&list, &self.limits.load())?;
        let filter = ListFilter {
            owner: Some(context.caller.clone()),
            tenant: None,
            caller: None,
            agents: Some(vec![agent.name.clone()]),
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
        let mut page = PageReader {
            inner: Arc::clone(self),
            account: context.account(),
            list,
            of,
            page_size,
            total_size: i32::try_from(listed.total).unwrap_or(i32::MAX),
            rows: listed.tasks.into(),
            more,
            last: None,
            first: None,
            bytes: 0,
            begun: false,
            references: takes_references(context),
            restore: None,
            permit: None,
        };
        page.first = page.read().await?;
        Ok(page)
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

impl PageReader {
    /// Whether the caller asked for artifacts.
    pub fn includes_artifacts(&self) -> bool {
        self.list.include_artifacts
    }

    /// The next task of the page. Where the store fails or there is no room for another task, the page ends early: the next page
    /// begins with that task, and is answered with the error if there still is one.
    pub async fn next(&mut self) -> Option<NamedTask> {
        let read = match self.first.take() {
            Some(first) => Ok(Some(first)),
            None => self.read().await,
        };
        read.unwrap_or_else(|error| {
            tracing::debug!(%error, "a page of a list ends early");
            self.cut();
            None
        })
    }

    /// Room for the tasks handed out since the last time, until their bytes are written. Nothing where they are few bytes.
    pub fn take_permit(&mut self) -> Option<AnswerPermit> {
        self.permit.take()
    }

    /// What stands at the end, once there are no more tasks.
    pub fn end(&self) -> PageEnd {
        let token = self.last.as_ref().filter(|_| self.more).map(|last| {
            let token = PageToken { at: last.status_at.micros(), id: last.id.clone(), of: self.of };
            self.inner.seal.seal(PURPOSE, &serde_json::to_vec(&token).unwrap_or_default())
        });
        PageEnd { next_page_token: token.unwrap_or_default(), page_size: self.page_size, total_size: self.total_size }
    }

    /// The whole page at once, with the room it takes.
    pub async fn collect(mut self) -> (TaskPage, Option<AnswerPermit>) {
        let mut tasks = Vec::new();
        while let Some(shown) = self.next().await {
            tasks.push(shown);
        }
        let PageEnd { next_page_token, page_size, total_size } = self.end();
        let include_artifacts = self.list.include_artifacts;
        (TaskPage { tasks, next_page_token, page_size, total_size, include_artifacts }, self.permit)
    }

    /// The task of the next row, unless the page is large enough without it.
    async fn read(&mut self) -> Result<Option<NamedTask>, Error> {
        while let Some(stored) = self.rows.front() {
            let weight = stored.progress.bytes;
            if let Err(full) = self.reserve(weight) {
                return if self.begun { Ok(self.cut()) } else { Err(full) };
            }
            let Some(stored) = self.rows.front() else { break };
            let mut task = match self.inner.current_of_list(stored, self.list.include_artifacts).await {
                Ok(task) => task,
                // Swept since it was listed.
                Err(error) if error.kind == ErrorKind::TaskNotFound => {
                    self.release(weight, 0);
                    self.pass();
                    continue;
                }
                Err(error) => return Err(error),
            };
            if !self.list.include_artifacts && !task.artifacts.is_empty() {
                Arc::make_mut(&mut task).artifacts.clear();
            }
            let shown = shown(&stored.task, task, self.list.history_length);
            let bytes = task_weight(&shown.task);
            if self.begun && self.bytes.saturating_add(bytes) > self.inner.limits.load().answer_bytes {
                self.release(weight, 0);
                return Ok(self.cut());
            }
            let shown = self.restored(shown).await?;
            self.release(weight, bytes);
            self.bytes = self.bytes.saturating_add(bytes);
            self.begun = true;
            self.pass();
            return Ok(Some(shown));
        }
        Ok(None)
    }

    /// Leaves a row behind.
    fn pass(&mut self) {
        if let Some(stored) = self.rows.pop_front() {
            self.last = Some(ListCursor { status_at: stored.progress.status_at, id: stored.task.id.clone() });
        }
    }

    /// Ends the page here.
    fn cut(&mut self) -> Option<NamedTask> {
        self.more |= !self.rows.is_empty();
        self.rows.clear();
        None
    }

    /// Room for a task that is about to be read.
    fn reserve(&mut self, weight: u64) -> Result<(), Error> {
        if weight <= COUNTED_FROM {
            return Ok(());
        }
        let limits = self.inner.limits.load();
        match &mut self.permit {
            Some(permit) => permit.grow(weight, &limits.answering()),
            None => {
                self.permit = Some(self.inner.answering.reserve(&self.account, weight, &limits)?);
                Ok(())
            }
        }
    }

    /// The task has turned out to have so many bytes.
    fn release(&mut self, weight: u64, bytes: u64) {
        if weight > COUNTED_FROM
            && let Some(permit) = &mut self.permit
        {
            permit.shrink(weight.saturating_sub(bytes));
        }
    }

    async fn restored(&mut self, shown: NamedTask) -> Result<NamedTask, Error> {
        match self.inner.offloading_part_store().filter(|_| !self.references) {
            Some(part_store) => {
                let room = self.restore.get_or_insert_with(|| part_store.max_restored_bytes());
                Box::pin(restored_shown(part_store, shown, room)).await
            }
            None => Ok(shown),
        }
    }
}
