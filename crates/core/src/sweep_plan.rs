//! What a sweep of the store forgets.

use chancery_protocol::Timestamp;

#[derive(Clone, Copy, Debug, Default)]
pub struct SweepPlan {
    /// Terminal tasks whose status is older than this go.
    pub older_than: Option<Timestamp>,
    /// Of the terminal tasks that are left, only this many stay, newest first. Those of trees with an open
    /// task stay regardless of this and of their age, and no other task goes in their place.
    pub keep_at_most: Option<u64>,
    /// Of the ended tasks that are left, the newest stay that use at most this many bytes. Only a store in memory applies it; tasks
    /// of trees that have not ended stay as under `keep_at_most`.
    pub keep_bytes: Option<u64>,
    /// At most this many tasks go in one sweep, so that writers are never held up for long.
    pub at_most: u64,
    /// What tasks that go have cost since then is kept: budgets still count it. What was spent earlier is forgotten too.
    pub spent_since: Option<Timestamp>,
    /// Of the decisions only this many stay, the newest.
    pub keep_decisions: Option<u64>,
}

/// What is forgotten because its time is over, apart from tasks.
#[derive(Clone, Copy, Debug)]
pub struct ExpiryPlan {
    /// Idempotency keys and nonces that have expired by now go.
    pub now: Timestamp,
    /// At most this many of a kind go at once, so that writers are never held up for long.
    pub at_most: u64,
}
