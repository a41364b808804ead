//! Deletes ended tasks by age, count and bytes, and idempotency keys when they expire, so that memory and disk stay flat.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use arc_swap::ArcSwap;
use chancery_protocol::Timestamp;
use serde::{Deserialize, Serialize};
use tokio::sync::Notify;

use crate::service::Chancery;
use crate::{ExpiryPlan, StoreError, SweepPlan};

/// The `[retention]` section.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RetentionConfig {
    /// Ended tasks older than this many hours are deleted. 0 keeps them permanently.
    pub max_age_hours: u64,
    /// Of the ended tasks at most this many stay, the newest. 0 keeps all.
    pub max_tasks: u64,
    /// The bytes of memory for ended tasks, of a store in memory alone. The oldest ended tasks are deleted first. 0 sets no bound.
    pub max_bytes: u64,
    /// Of the decisions about calls that were refused or went on with a task, at most this many stay, the newest.
    pub max_decisions: u64,
    /// The most idempotency keys that have not expired. Above it, callers with an equal share or more get no new ones. 0: no limit.
    pub max_keys: u64,
    /// The same for each caller.
    pub max_keys_per_caller: u64,
    /// The costs of ended turns are kept for this many hours, also when their tasks are deleted; longer where
    /// a budget counts them. 0 keeps them permanently.
    pub max_cost_age_hours: u64,
    /// How often to look for tasks that have grown too old.
    pub sweep_every_seconds: u64,
}

impl Default for RetentionConfig {
    fn default() -> Self {
        Self {
            max_age_hours: 30 * 24,
            max_tasks: 1_000_000,
            max_bytes: 256 * 1024 * 1024,
            max_decisions: 100_000,
            max_keys: 10_000_000,
            max_keys_per_caller: 5_000_000,
            max_cost_age_hours: 35 * 24,
            sweep_every_seconds: 60,
        }
    }
}

#[derive(Debug)]
pub(crate) struct Retention {
    pub(crate) config: ArcSwap<RetentionConfig>,
    ended_since_sweep: AtomicU64,
    bytes_since_sweep: AtomicU64,
    decided_since_sweep: AtomicU64,
    due: Notify,
}

/// One sweep removes at most this many tasks, and as many decisions and keys, so that writers never wait long behind it.
const SWEEP_STEP: u64 = 500;
/// A sweep is due when the logs that ended since the last one have this part of `max_bytes`.
const BYTES_STEP: u64 = 16;

impl Retention {
    pub(crate) fn new(config: RetentionConfig) -> Self {
        Self {
            config: ArcSwap::from_pointee(config),
            ended_since_sweep: AtomicU64::new(0),
            bytes_since_sweep: AtomicU64::new(0),
            decided_since_sweep: AtomicU64::new(0),
            due: Notify::new(),
        }
    }

    /// Another rule from now on, and a sweep by it.
    pub(crate) fn set(&self, config: RetentionConfig) {
        if **self.config.load() != config {
            self.config.store(Arc::new(config));
            self.due.notify_one();
        }
    }

    /// Counts an ended task and the bytes of its log. Enough of either make a sweep due before its time.
    pub(crate) fn one_more_ended(&self, bytes: u64) {
        let config = self.config.load();
        let ended = self.ended_since_sweep.fetch_add(1, Ordering::Relaxed) + 1;
        let bytes = self.bytes_since_sweep.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes);
        let too_many = match (config.max_tasks, config.max_bytes) {
            (0, 0) => false,
            (0, _) => ended >= SWEEP_STEP,
            (most, _) => ended >= step(most),
        };
        if too_many || (config.max_bytes > 0 && bytes >= config.max_bytes / BYTES_STEP) {
            self.ended_since_sweep.store(0, Ordering::Relaxed);
            self.bytes_since_sweep.store(0, Ordering::Relaxed);
            self.due.notify_one();
        }
    }

    /// Counts a decision that is kept by itself. Refusals come as fast as callers can ask, so they make a sweep due too.
    pub(crate) fn one_more_decided(&self) {
        let most = self.config.load().max_decisions;
        // Counted also where all are kept: each may be one more turn, of which a sweep forgets the old.
        let count = self.decided_since_sweep.fetch_add(1, Ordering::Relaxed) + 1;
        if most > 0 && count >= step(most) {
            self.due.notify_one();
        }
    }

    /// `counted` is the longest time any budget looks back.
    fn plan(&self, now: Timestamp, counted: Duration) -> SweepPlan {
        let config = self.config.load();
        let age = i64::try_from(config.max_age_hours.saturating_mul(3_600_000_000)).unwrap_or(i64::MAX);
        SweepPlan {
            older_than: (age > 0).then(|| Timestamp::from_micros(now.micros().saturating_sub(age))),
            keep_at_most: (config.max_tasks > 0).then_some(config.max_tasks),
            keep_bytes: (config.max_bytes > 0).then_some(config.max_bytes),
            at_most: SWEEP_STEP,
            spent_since: Some(self.costs_kept_since(now, counted).unwrap_or(Timestamp::from_micros(i64::MIN))),
            keep_decisions: (config.max_decisions > 0).then_some(config.max_decisions),
        }
    }

    /// From when on all costs are kept; `None` if all are. `counted` is the longest time any budget looks back.
    pub(crate) fn costs_kept_since(&self, now: Timestamp, counted: Duration) -> Option<Timestamp> {
        let hours = self.config.load().max_cost_age_hours;
        let age = Duration::from_secs(hours.saturating_mul(3_600)).max(counted);
        let age = i64::try_from(age.as_micros()).unwrap_or(i64::MAX);
        let since = now.micros().saturating_sub(age);
        (hours > 0 && since > 0).then(|| Timestamp::from_micros(since))
    }
}

/// How many more than `most` may gather before a sweep is due.
fn step(most: u64) -> u64 {
    SWEEP_STEP.min(most / 4).max(1)
}

impl Chancery {
    /// Sweeps until nothing is left to sweep. Answers how many tasks went.
    pub async fn sweep(&self) -> u64 {
        let inner = &self.0;
        let mut gone = 0;
        // The store tells of tasks only; as many decisions went as came since the last time, if there were too many.
        let mut decided = inner.retention.decided_since_sweep.swap(0, Ordering::Relaxed);
        loop {
            let (swept, more) = match self.sweep_once().await {
                Ok(swept) => swept,
                Err(fault) => {
                    tracing::error!(error = &fault as &dyn std::error::Error, "cannot delete ended tasks; the node tries again");
                    return gone;
                }
            };
            gone += swept;
            decided = decided.saturating_sub(SWEEP_STEP);
            if swept < SWEEP_STEP && decided == 0 && !more {
                return gone;
            }
            // A store in memory answers at once; others want the thread too.
            tokio::task::yield_now().await;
        }
    }

    /// One bounded step: how many tasks went, and whether more has expired than went.
    async fn sweep_once(&self) -> Result<(u64, bool), StoreError> {
        let inner = &self.0;
        let now = inner.clock.now();
        let swept = inner.store.sweep(inner.retention.plan(now, inner.govern.longest_window())).await?;
        inner.key_quota.sweep(now);
        let more = inner.store.expire(ExpiryPlan { now, at_most: SWEEP_STEP }).await?;
        Ok((swept, more))
    }

    /// Sweeps when it is due, until the node stops.
    pub async fn keep_swept(&self) {
        let inner = &self.0;
        while !inner.shutdown.is_cancelled() {
            let every = Duration::from_secs(inner.retention.config.load().sweep_every_seconds.max(1));
            tokio::select! {
                () = inner.retention.due.notified() => {}
                () = tokio::time::sleep(every) => {}
                () = inner.shutdown.cancelled() => return,
            }
            let gone = self.sweep().await;
            if gone > 0 {
                tracing::debug!(tasks = gone, "deleted ended tasks");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    #[test]
    fn decisions_make_a_sweep_due_before_a_quarter_more_of_them_is_kept() {
        for (most, step) in [(8, 2), (1, 1), (100_000, SWEEP_STEP)] {
            let retention = Retention::new(RetentionConfig { max_decisions: most, ..RetentionConfig::default() });
            for _ in 1..step {
                retention.one_more_decided();
                assert!(retention.due.notified().now_or_never().is_none(), "{most}");
            }
            retention.one_more_decided();
            assert!(retention.due.notified().now_or_never().is_some(), "{most}");
        }
        let keeps_all = Retention::new(RetentionConfig { max_decisions: 0, ..RetentionConfig::default() });
        (0..SWEEP_STEP).for_each(|_| keeps_all.one_more_decided());
        assert!(keeps_all.due.notified().now_or_never().is_none());
    }
    #[test]
    fn ended_tasks_make_a_sweep_due_by_their_number_or_by_their_bytes() {
        let due_after = |config: RetentionConfig, bytes: u64| {
            let retention = Retention::new(config);
            (1..=2 * SWEEP_STEP).find(|_| {
                retention.one_more_ended(bytes);
                retention.due.notified().now_or_never().is_some()
            })
        };
        let config = |max_tasks, max_bytes| RetentionConfig { max_tasks, max_bytes, ..RetentionConfig::default() };
        assert_eq!(due_after(config(8, 0), 1 << 20), Some(2), "a quarter of the number, whatever the bytes");
        assert_eq!(due_after(config(0, 1600), 99), Some(2), "a sixteenth of the bytes: 100");
        assert_eq!(due_after(config(0, 1600), 100), Some(1));
        assert_eq!(due_after(config(0, u64::MAX), 1), Some(SWEEP_STEP), "tasks without content take memory too");
        assert_eq!(due_after(config(0, 0), 1 << 20), None, "nothing bounds them");
    }
}
