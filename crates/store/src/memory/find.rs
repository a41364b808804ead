//! Looks tasks up by name, or by having been left unfinished.

use chancery_core::{Names, Stored};
use chancery_protocol::{Caller, TaskState};

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
