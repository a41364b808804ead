//! Looks tasks up by name, or by having been left unfinished.

use std::sync::Arc;

use chancery_core::{Link, Names, Stored, TaskSnapshot};
use chancery_protocol::{AgentName, Caller, ContextId, TaskId, TaskState};

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

/// The snapshot is the task itself, which others share: one without artifacts is a copy of the rest.
pub(super) fn snapshot(store: &MemoryStore, task: &TaskId, artifacts: bool) -> Option<TaskSnapshot> {
    let mut snapshot = store.shard(task.as_str()).get(task.as_str())?.snapshot.clone()?;
    if !artifacts && !snapshot.task.artifacts.is_empty() {
        Arc::make_mut(&mut snapshot.task).artifacts.clear();
    }
    Some(snapshot)
}

/// The one of the task that was made last.
pub(super) fn context_link(store: &MemoryStore, owner: &Caller, agent: &AgentName, context: &ContextId) -> Option<Link> {
    loop {
        let last = store.indexes.last_of_conversation(owner, agent, context)?;
        // A task that went in between has left the index before it let go of its lock: the next look finds another.
        if let Some(kept) = store.shard(last.as_str()).get(last.as_str()) {
            return kept.link.clone();
        }
    }
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
