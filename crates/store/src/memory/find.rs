//! Looks tasks up by name, or by having been left unfinished.

use chancery_core::{Link, Names, Stored, TaskRecord};
use chancery_protocol::{Caller, ContextId, TaskId, TaskState};

use super::{MemoryStore, locked};

pub(super) fn find(store: &MemoryStore, owner: &Caller, id: &str, names: Names) -> Option<Stored> {
    let of_owner = |id: &str| store.shard(id).get(id).filter(|kept| kept.task.owner == *owner).map(|kept| kept.stored());
    of_owner(id).or_else(|| match names {
        Names::Server => None,
        Names::ServerOrClient => {
            let named = locked(&store.names).client_id(owner, id).cloned();
            named.and_then(|id| of_owner(id.as_str()))
        }
    })
}

/// The one of the task that was made last. Looks at every task: conversations that go on elsewhere are few in a memory
/// store, and this is asked only where a caller names one.
pub(super) fn context_link(store: &MemoryStore, owner: &Caller, agent: &str, context: &ContextId) -> Option<Link> {
    let mut last: Option<(TaskId, Link)> = None;
    for shard in &store.shards {
        let shard = locked(shard);
        let of_context = |task: &TaskRecord| task.owner == *owner && *task.agent == *agent && task.context_id == *context;
        for kept in shard.iter().filter(|kept| of_context(&kept.task)) {
            if let Some(link) = &kept.link
                && last.as_ref().is_none_or(|(id, _)| *id < kept.task.id)
            {
                last = Some((kept.task.id.clone(), link.clone()));
            }
        }
    }
    last.map(|(_, link)| link)
}

pub(super) fn unfinished(store: &MemoryStore) -> Vec<Stored> {
    let mut found = Vec::new();
    for shard in &store.shards {
        let shard = locked(shard);
        let waiting = shard.iter().filter(|kept| {
            matches!(kept.progress.state, TaskState::Submitted | TaskState::Working) && !kept.progress.message_only
        });
        found.extend(waiting.map(|kept| kept.stored()));
    }
    found
}
