//! Which tasks a list has, and where a page of it begins.

use std::collections::BTreeSet;
use std::sync::Arc;

use chancery_protocol::{AgentName, Caller, ContextId, TaskId, TaskState, Timestamp};

use crate::ports::{Store, Stored};
use crate::store_error::StoreError;

/// Newest status first, ties by id descending. Logs that hold only a message are never listed.
#[derive(Clone, Debug, Default)]
pub struct ListFilter {
    /// `None` sees every owner's tasks: for the operator only.
    pub owner: Option<Caller>,
    /// The tasks of one tenant's callers: for the operator only.
    pub tenant: Option<Arc<str>>,
    /// The tasks of callers with this name, of any tenant: for the operator only.
    pub caller: Option<Arc<str>>,
    /// The tasks of these agents; `None` lists those of all.
    pub agents: Option<Vec<AgentName>>,
    /// Only tasks of this context.
    pub context_id: Option<ContextId>,
    /// Only tasks in this state.
    pub state: Option<TaskState>,
    /// Inclusive.
    pub status_at_or_after: Option<Timestamp>,
}

/// Where the last page ended: the next one starts strictly after it in list order.
#[derive(Clone, Debug, PartialEq)]
pub struct ListCursor {
    /// The time of the last change of its state.
    pub status_at: Timestamp,
    /// The id of the task.
    pub id: TaskId,
}

/// A page of tasks, and the number of all that match.
#[derive(Clone, Debug)]
pub struct TaskListing {
    /// The tasks of the page.
    pub tasks: Vec<Stored>,
    /// All that match the filter, wherever the page starts.
    pub total: u64,
}

/// The owners of a name, from the tasks of all of them: for stores without a quicker way.
pub(crate) async fn owners_among_listed<S: Store + ?Sized>(store: &S, name: &str) -> Result<Vec<Caller>, StoreError> {
    const PAGE: usize = 1_000;
    let filter = ListFilter { caller: Some(name.into()), ..ListFilter::default() };
    let (mut owners, mut after): (BTreeSet<Arc<str>>, Option<ListCursor>) = Default::default();
    loop {
        let page = store.list_page(&filter, after.as_ref(), PAGE).await?;
        owners.extend(page.iter().map(|stored| Arc::clone(&stored.task.owner.tenant)));
        match page.last().filter(|_| page.len() == PAGE) {
            Some(last) => after = Some(ListCursor { status_at: last.progress.status_at, id: last.task.id.clone() }),
            None => break,
        }
    }
    Ok(owners.into_iter().map(|tenant| Caller { tenant, name: name.into() }).collect())
}
