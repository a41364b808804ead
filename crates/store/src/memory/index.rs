//! Tasks by something they have in common, in the order they were made.

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasher, Hash};
use std::sync::{Mutex, MutexGuard};

use chancery_protocol::{AgentName, Caller, ContextId, TaskId};
use foldhash::fast::RandomState;

use super::shard::StoredTask;
use super::{SHARDS, locked};

/// A task's place in the order in which tasks were made.
pub(super) type Made = u64;

/// Goes with the tasks. Its locks are taken last and one at a time.
#[derive(Debug)]
struct Index<K> {
    parts: [Mutex<Part<K>>; SHARDS],
    hasher: RandomState,
}

/// Most keys have one task, and those that go are nearly always the first.
type Part<K> = HashMap<K, VecDeque<(Made, TaskId)>, RandomState>;

impl<K> Default for Index<K> {
    fn default() -> Self {
        Self { parts: std::array::from_fn(|_| Mutex::default()), hasher: RandomState::default() }
    }
}

impl<K: Hash + Eq> Index<K> {
    fn part(&self, key: &K) -> MutexGuard<'_, Part<K>> {
        locked(&self.parts[self.hasher.hash_one(key) as usize % SHARDS])
    }

    fn add(&self, key: K, made: Made, task: TaskId) {
        let mut part = self.part(&key);
        match part.get_mut(&key) {
            Some(tasks) => {
                let place = match tasks.back() {
                    Some((last, _)) if *last > made => tasks.partition_point(|(other, _)| *other < made),
                    _ => tasks.len(),
                };
                tasks.insert(place, (made, task));
            }
            None => drop(part.insert(key, VecDeque::from([(made, task)]))),
        }
    }

    fn remove(&self, key: &K, made: Made) {
        let mut part = self.part(key);
        if let Some(tasks) = part.get_mut(key) {
            if let Ok(place) = tasks.binary_search_by_key(&made, |(made, _)| *made) {
                tasks.remove(place);
            }
            if tasks.is_empty() {
                part.remove(key);
            }
        }
    }

    fn all(&self, key: &K) -> Vec<TaskId> {
        self.part(key).get(key).map(|tasks| tasks.iter().map(|(_, task)| task.clone()).collect()).unwrap_or_default()
    }

    fn has(&self, key: &K) -> bool {
        self.part(key).contains_key(key)
    }

    fn last(&self, key: &K) -> Option<TaskId> {
        self.part(key).get(key).and_then(|tasks| tasks.back()).map(|(_, task)| task.clone())
    }
}

type Conversation = (Caller, AgentName, ContextId);

#[derive(Debug, Default)]
pub(super) struct Indexes {
    /// Only of tasks at remote agents.
    conversations: Index<Conversation>,
    /// Without the root itself, which has that name.
    below: Index<TaskId>,
}

impl Indexes {
    pub(super) fn add(&self, kept: &StoredTask) {
        if kept.link.is_some() {
            self.add_link(kept);
        }
        if let Some(governed) = &kept.governed {
            let kinship = &governed.kinship;
            if kinship.root != kept.task.id {
                self.below.add(kinship.root.clone(), kept.made, kept.task.id.clone());
            }
        }
    }

    pub(super) fn add_link(&self, kept: &StoredTask) {
        self.conversations.add(conversation(kept), kept.made, kept.task.id.clone());
    }

    pub(super) fn remove(&self, kept: &StoredTask) {
        if kept.link.is_some() {
            self.conversations.remove(&conversation(kept), kept.made);
        }
        if let Some(governed) = &kept.governed {
            let kinship = &governed.kinship;
            if kinship.root != kept.task.id {
                self.below.remove(&kinship.root, kept.made);
            }
        }
    }

    /// The newest task by which a conversation continues at a remote agent.
    pub(super) fn last_of_conversation(&self, owner: &Caller, agent: &AgentName, context: &ContextId) -> Option<TaskId> {
        self.conversations.last(&(owner.clone(), agent.clone(), context.clone()))
    }

    /// Whether a tree has more tasks than its root.
    pub(super) fn has_below(&self, root: &TaskId) -> bool {
        self.below.has(root)
    }

    pub(super) fn below(&self, root: &TaskId) -> Vec<TaskId> {
        self.below.all(root)
    }
}

fn conversation(kept: &StoredTask) -> Conversation {
    (kept.task.owner.clone(), kept.task.agent.clone(), kept.task.context_id.clone())
}
