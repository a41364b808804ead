//! Names that callers gave to their tasks: idempotency keys and client-chosen task ids.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use chancery_core::{Appended, EXPIRY_STEP, ExpiryPlan, Idempotency, KeptKeys, Keyed, TaskRecord};
use chancery_protocol::{Caller, TaskId, Timestamp};

type Name = (Caller, Arc<str>);

#[derive(Debug)]
struct Key {
    task: TaskId,
    fingerprint: [u8; 32],
    /// Its place in `expiring`.
    expiry: (Timestamp, u64),
}

#[derive(Debug, Default)]
pub(super) struct NamesInUse {
    keys: HashMap<Name, Key>,
    /// Keys in the order they expire; the number tells apart those of the same time.
    expiring: BTreeMap<(Timestamp, u64), Name>,
    keys_ever: u64,
    client_ids: HashMap<Name, TaskId>,
}

impl NamesInUse {
    /// Why a task of these names cannot be made, if it cannot.
    pub(super) fn taken(&self, task: &TaskRecord, idempotency: Option<&Idempotency>) -> Option<Appended> {
        if let Some(idempotency) = idempotency
            && let Some(Keyed { task, fingerprint }) = self.keyed(&task.owner, &idempotency.key, task.created_at)
        {
            return Some(Appended::KeyKnown { task, fingerprint });
        }
        let name = task.client_task_id.as_ref()?;
        self.client_id(&task.owner, name).map(|known| Appended::ClientIdKnown { task: known.clone() })
    }

    pub(super) fn keyed(&self, owner: &Caller, key: &str, now: Timestamp) -> Option<Keyed> {
        let known = self.keys.get(&(owner.clone(), key.into())).filter(|known| known.expiry.0 > now)?;
        Some(Keyed { task: known.task.clone(), fingerprint: known.fingerprint })
    }

    /// How many keys each caller has.
    pub(super) fn kept_keys(&self) -> Vec<KeptKeys> {
        let mut counts: HashMap<(&Caller, i64), u64> = HashMap::new();
        for ((expires_at, _), (owner, _)) in &self.expiring {
            *counts.entry((owner, expires_at.micros().div_euclid(EXPIRY_STEP))).or_default() += 1;
        }
        counts.into_iter().map(|((owner, step), keys)| KeptKeys { owner: owner.clone(), step, keys }).collect()
    }

    pub(super) fn client_id(&self, owner: &Caller, name: &str) -> Option<&TaskId> {
        self.client_ids.get(&(owner.clone(), name.into()))
    }

    pub(super) fn take(&mut self, task: &TaskRecord, idempotency: Option<&Idempotency>) {
        if let Some(idempotency) = idempotency {
            let name = (task.owner.clone(), Arc::clone(&idempotency.key));
            self.keys_ever += 1;
            let expiry = (idempotency.expires_at, self.keys_ever);
            let key = Key { task: task.id.clone(), fingerprint: idempotency.fingerprint, expiry };
            self.expiring.insert(expiry, name.clone());
            if let Some(expired) = self.keys.insert(name, key) {
                self.expiring.remove(&expired.expiry);
            }
        }
        if let Some(name) = &task.client_task_id {
            self.client_ids.insert((task.owner.clone(), Arc::clone(name)), task.id.clone());
        }
    }

    /// Frees the key of a task that is taken back.
    pub(super) fn release_key(&mut self, task: &TaskRecord, key: &Arc<str>) {
        let name = (task.owner.clone(), Arc::clone(key));
        // After it expired, the key may have become another task's.
        if self.keys.get(&name).is_some_and(|known| known.task == task.id)
            && let Some(known) = self.keys.remove(&name)
        {
            self.expiring.remove(&known.expiry);
        }
    }

    /// Frees the name its client gave to a task that goes. Its key stays: that lives for a time of its own.
    pub(super) fn release_name(&mut self, task: &TaskRecord) {
        if let Some(name) = &task.client_task_id {
            self.client_ids.remove(&(task.owner.clone(), Arc::clone(name)));
        }
    }

    /// Answers whether more keys are due.
    pub(super) fn expire(&mut self, plan: ExpiryPlan) -> bool {
        let mut gone = 0;
        while let Some(next) = self.expiring.first_entry().filter(|next| next.key().0 <= plan.now) {
            if gone == plan.at_most {
                return gone > 0;
            }
            let name = next.remove();
            self.keys.remove(&name);
            gone += 1;
        }
        false
    }
}
