//! Pages of tasks, newest status first.

use std::collections::BTreeSet;
use std::sync::Arc;

use chancery_core::{ListCursor, ListFilter, TaskListing};
use chancery_protocol::Caller;

use super::shard::StoredTask;
use super::{MemoryStore, locked};

pub(super) fn list(store: &MemoryStore, filter: &ListFilter, after: Option<&ListCursor>, limit: usize) -> TaskListing {
    let mut matching = Vec::new();
    for shard in &store.shards {
        matching.extend(locked(shard).iter().filter(|kept| matches(kept, filter)).map(|kept| kept.stored()));
    }
    let total = matching.len() as u64;
    if let Some(cursor) = after {
        matching.retain(|stored| (stored.progress.status_at, &stored.task.id) < (cursor.status_at, &cursor.id));
    }
    matching.sort_unstable_by(|left, right| {
        (right.progress.status_at, &right.task.id).cmp(&(left.progress.status_at, &left.task.id))
    });
    matching.truncate(limit);
    TaskListing { tasks: matching, total }
}

/// The owners of this name.
pub(super) fn owners_named(store: &MemoryStore, name: &str) -> Vec<Caller> {
    let mut tenants = BTreeSet::new();
    for shard in &store.shards {
        let shard = locked(shard);
        let named = shard.iter().filter(|kept| *kept.task.owner.name == *name && !kept.progress.message_only);
        tenants.extend(named.map(|kept| Arc::clone(&kept.task.owner.tenant)));
    }
    tenants.into_iter().map(|tenant| Caller { tenant, name: name.into() }).collect()
}

fn matches(kept: &StoredTask, filter: &ListFilter) -> bool {
    let StoredTask { task, progress, .. } = kept;
    !progress.message_only
        && filter.owner.as_ref().is_none_or(|owner| task.owner == *owner)
        && filter.tenant.as_ref().is_none_or(|tenant| task.owner.tenant == *tenant)
        && filter.caller.as_ref().is_none_or(|caller| task.owner.name == *caller)
        && filter.agents.as_ref().is_none_or(|agents| agents.contains(&task.agent))
        && filter.context_id.as_ref().is_none_or(|context| task.context_id == *context)
        && filter.state.is_none_or(|state| progress.state == state)
        && filter.status_at_or_after.is_none_or(|bound| progress.status_at >= bound)
}
