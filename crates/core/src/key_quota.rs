//! How many idempotency keys each caller has that have not expired. None goes before its time, because its retry would run again. A
//! caller that has too many gets no new ones.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use chancery_protocol::{Caller, Error, ErrorKind, TaskId, Timestamp};
use foldhash::fast::RandomState;

use crate::RetentionConfig;

/// An idempotency key of a call that makes a task.
#[derive(Clone, Debug)]
pub struct Idempotency {
    /// The key as the caller wrote it.
    pub key: Arc<str>,
    /// Digest of what was asked; the same key with another digest is refused.
    pub fingerprint: [u8; 32],
    /// When the key is forgotten.
    pub expires_at: Timestamp,
}

/// What an idempotency key was used for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Keyed {
    /// The task that the key made.
    pub task: TaskId,
    /// The digest of the call.
    pub fingerprint: [u8; 32],
}

/// The keys of one caller that a store has, of those that expire in the same [`EXPIRY_STEP`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptKeys {
    /// The caller.
    pub owner: Caller,
    /// How many steps after the epoch they expire.
    pub step: i64,
    /// How many keys expire then.
    pub keys: u64,
}

/// Keys that expire within one step of this length are counted together, in microseconds.
pub const EXPIRY_STEP: i64 = 600_000_000;

/// Counts the keys of all callers. The key of a call that its agent rejected counts until it would have expired.
#[derive(Debug, Default)]
pub(crate) struct KeyQuota(Mutex<KeyCounts>);

#[derive(Debug, Default)]
struct KeyCounts {
    callers: HashMap<Caller, CallerKeys, RandomState>,
    total: u64,
}

/// By the step in which they expire.
#[derive(Debug, Default)]
struct CallerKeys {
    steps: BTreeMap<i64, u64>,
    count: u64,
}

/// Room for one key. It is free again unless the key is kept.
#[derive(Debug)]
pub(crate) struct KeyPermit {
    quota: Arc<KeyQuota>,
    owner: Caller,
    step: i64,
    kept: bool,
}

impl KeyQuota {
    fn lock(&self) -> MutexGuard<'_, KeyCounts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts the keys that the store has of earlier runs.
    pub(crate) fn restore(&self, kept: &[KeptKeys]) {
        let mut counts = self.lock();
        kept.iter().for_each(|kept| counts.add(&kept.owner, kept.step, kept.keys));
    }

    /// Lets go of what has expired.
    pub(crate) fn sweep(&self, now: Timestamp) {
        self.lock().sweep(step_of(now));
    }

    /// Room for one more key of a caller, if it may have one.
    pub(crate) fn take(
        self: &Arc<Self>,
        owner: &Caller,
        idempotency: &Idempotency,
        now: Timestamp,
        config: &RetentionConfig,
    ) -> Result<KeyPermit, Error> {
        let mut counts = self.lock();
        if counts.refusal(owner, config).is_some() {
            counts.sweep(step_of(now));
        }
        if let Some((limit, most)) = counts.refusal(owner, config) {
            let earliest = counts.callers.get(owner).and_then(|keys| keys.steps.keys().next());
            let wait = earliest.map_or(EXPIRY_STEP, |step| (step + 1).saturating_mul(EXPIRY_STEP) - now.micros());
            let wait = Duration::from_micros(wait.max(1_000_000).unsigned_abs());
            let message = format!(
                "the caller has too many idempotency keys that have not expired (retention.{limit} = {most}); nothing was run. \
                 Retries with known keys still work. Send without a key, or wait"
            );
            let error = Error::new(ErrorKind::RateLimited, message).with_fact("limit", limit).with_fact("most", most);
            return Err(Error { retry_after: Some(wait), ..error });
        }
        let step = step_of(idempotency.expires_at);
        counts.add(owner, step, 1);
        Ok(KeyPermit { quota: Arc::clone(self), owner: owner.clone(), step, kept: false })
    }
}

impl KeyCounts {
    /// The limit that a caller has reached. Where the node has as many keys as it may, callers below an equal share still get some:
    /// one caller's keys do not lock out the others.
    fn refusal(&self, owner: &Caller, config: &RetentionConfig) -> Option<(&'static str, u64)> {
        let own = self.callers.get(owner).map_or(0, |keys| keys.count);
        let share = config.max_keys / (self.callers.len() as u64).max(1);
        let of_caller = config.max_keys_per_caller > 0 && own >= config.max_keys_per_caller;
        let of_node = config.max_keys > 0 && self.total >= config.max_keys && own >= share.max(1);
        match (of_caller, of_node) {
            (true, _) => Some(("max_keys_per_caller", config.max_keys_per_caller)),
            (_, true) => Some(("max_keys", config.max_keys)),
            _ => None,
        }
    }

    fn add(&mut self, owner: &Caller, step: i64, keys: u64) {
        let of_caller = self.callers.entry(owner.clone()).or_default();
        *of_caller.steps.entry(step).or_default() += keys;
        of_caller.count += keys;
        self.total += keys;
    }

    fn remove(&mut self, owner: &Caller, step: i64) {
        let Some(of_caller) = self.callers.get_mut(owner) else { return };
        // It may have expired already.
        let Some(keys) = of_caller.steps.get_mut(&step) else { return };
        (*keys, of_caller.count, self.total) = (*keys - 1, of_caller.count - 1, self.total - 1);
        if *keys == 0 {
            of_caller.steps.remove(&step);
        }
        if of_caller.count == 0 {
            self.callers.remove(owner);
        }
    }

    fn sweep(&mut self, now: i64) {
        let total = &mut self.total;
        self.callers.retain(|_, keys| {
            while let Some(first) = keys.steps.first_entry().filter(|first| *first.key() < now) {
                let gone = first.remove();
                (keys.count, *total) = (keys.count - gone, *total - gone);
            }
            keys.count > 0
        });
    }
}

impl KeyPermit {
    /// The key is recorded.
    pub(crate) fn keep(mut self) {
        self.kept = true;
    }
}

impl Drop for KeyPermit {
    fn drop(&mut self) {
        if !self.kept {
            self.quota.lock().remove(&self.owner, self.step);
        }
    }
}

fn step_of(time: Timestamp) -> i64 {
    time.micros().div_euclid(EXPIRY_STEP)
}
