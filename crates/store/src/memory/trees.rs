//! How tasks were governed: one, a tree of them, or all that still counts.

use std::collections::HashSet;

use chancery_core::{Governed, LedgerRow, LedgerSnapshot, Spend, StoreError, TreeCost};
use chancery_protocol::{TaskId, Timestamp, TraceId};

use super::index::Made;
use super::shard::StoredTask;
use super::{MemoryStore, locked, spent};
use crate::numbering;

pub(super) fn governed(store: &MemoryStore, task: &TaskId) -> Option<Governed> {
    store.shard(task.as_str()).get(task.as_str()).and_then(|kept| kept.governed.as_deref().cloned())
}

pub(super) fn tree(store: &MemoryStore, root: &TaskId) -> Vec<LedgerRow> {
    of_tree(store, root, |kept| numbered(kept).map(|(_, row)| row))
}

pub(super) fn tree_page(store: &MemoryStore, root: &TaskId, after: Option<&TaskId>, limit: usize) -> Vec<LedgerRow> {
    let ids = of_tree(store, root, |kept| Some(kept.task.id.clone()));
    let start = match after {
        Some(after) => match ids.iter().position(|id| id == after) {
            Some(at) => at + 1,
            None => return Vec::new(),
        },
        None => 0,
    };
    let row = |id: &TaskId| store.shard(id.as_str()).get(id.as_str()).and_then(numbered);
    ids[start..].iter().filter_map(row).take(limit).map(|(_, row)| row).collect()
}

pub(super) fn tree_costs(store: &MemoryStore, root: &TaskId) -> Vec<TreeCost> {
    of_tree(store, root, |kept| {
        let governed = kept.governed.as_deref()?;
        let cost = governed.spend.settled.saturating_add(governed.spend.overrun);
        Some(TreeCost { task: kept.task.id.clone(), parent: governed.kinship.parent.clone(), cost })
    })
}

/// Something of each task of a tree, in the order they were made.
fn of_tree<T>(store: &MemoryStore, root: &TaskId, read: impl Fn(&StoredTask) -> Option<T>) -> Vec<T> {
    let is_of_tree = |kept: &&StoredTask| kept.governed.as_ref().is_some_and(|governed| governed.kinship.root == *root);
    let mut found: Vec<(Made, T)> = std::iter::once(root.clone())
        .chain(store.indexes.below(root))
        .filter_map(|task| {
            let shard = store.shard(task.as_str());
            let kept = shard.get(task.as_str()).filter(is_of_tree)?;
            Some((kept.made, read(kept)?))
        })
        .collect();
    found.sort_by_key(|(made, _)| *made);
    found.into_iter().map(|(_, one)| one).collect()
}

/// Looks at every task: only an operator asks for it, and every call would pay for an index.
pub(super) fn roots(store: &MemoryStore, trace: TraceId) -> Vec<TaskId> {
    let mut roots: Vec<(Made, TaskId)> = Vec::new();
    for shard in &store.shards {
        let shard = locked(shard);
        let of_trace = |kept: &&StoredTask| {
            kept.governed
                .as_ref()
                .is_some_and(|governed| governed.kinship.trace == trace && governed.kinship.root == kept.task.id)
        };
        roots.extend(shard.iter().filter(of_trace).map(|kept| (kept.made, kept.task.id.clone())));
    }
    roots.sort();
    roots.into_iter().map(|(_, root)| root).collect()
}

/// Reads every task: it runs at a start, when the store is empty.
pub(super) fn ledger(store: &MemoryStore, settled_since: Timestamp) -> LedgerSnapshot {
    let shards: Vec<_> = store.shards.iter().map(locked).collect();
    let all = || shards.iter().flat_map(|shard| shard.iter());
    let ended = |kept: &StoredTask| numbering::is_finished(&kept.progress);
    let open: HashSet<TaskId> = all()
        .filter(|kept| !ended(kept))
        .filter_map(|kept| kept.governed.as_ref().map(|governed| governed.kinship.root.clone()))
        .collect();
    let mut rows: Vec<_> = all()
        .filter_map(|kept| {
            let ended_since = ended(kept) && kept.progress.status_at >= settled_since;
            numbered(kept).filter(|(_, row)| ended_since || open.contains(&row.governed.kinship.root))
        })
        .collect();
    rows.sort_by_key(|(made, _)| *made);
    let past = locked(&store.past);
    LedgerSnapshot { tasks: rows.into_iter().map(|(_, row)| row).collect(), past: past.since(settled_since) }
}

pub(super) fn settle(store: &MemoryStore, task: &TaskId, spend: Spend) -> Result<(), StoreError> {
    let mut shard = store.shard(task.as_str());
    let kept = shard.get_mut(task.as_str()).filter(|kept| kept.governed.is_some());
    if let Some(turn) = spent::settle(kept.ok_or_else(|| numbering::not_counted(task))?, spend) {
        locked(&store.past).keep(turn);
    }
    Ok(())
}

fn numbered(kept: &StoredTask) -> Option<(Made, LedgerRow)> {
    let governed = kept.governed.as_deref()?.clone();
    let row = LedgerRow {
        task: kept.task.id.clone(),
        context_id: kept.task.context_id.clone(),
        dialect: kept.task.dialect,
        link: kept.link.clone(),
        agent: kept.task.agent.clone(),
        owner: kept.task.owner.clone(),
        created_at: kept.task.created_at,
        state: kept.progress.state,
        status_at: kept.progress.status_at,
        governed,
    };
    Some((kept.made, row))
}
