//! The port to where lanes are kept: the same store as the tasks', because lanes move in the transactions of their tasks.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use chancery_protocol::{TaskId, Timestamp};
use chancery_rules::push::{ClockSet, LaneState, WebhookOrigin};

use super::lane::{Lane, LaneSettlement, LaneStep};
use super::letter::{DeadLetter, DeliveryAttempt, Receipt, Replay, ReplayStep};
use super::registration::{NewRegistration, Registration};
use super::vault::SealedSecret;
use crate::StoreError;

/// What came of a registration.
#[derive(Clone, Debug, PartialEq)]
pub enum Registered {
    /// It delivers what happens from now on. One that was replaced goes on where it was, under its old number.
    Kept { lane: u64, replaced: bool },
    /// The task does not exist.
    NoTask,
    /// The task has as many registrations as it may have.
    TooManyOfTask,
    /// The tenant has as many registrations as it may have.
    TooManyOfTenant,
}

/// Which lanes an operator means. What is not said matches all.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LaneFilter {
    /// Lanes of this tenant.
    pub tenant: Option<Arc<str>>,
    /// Lanes to this origin.
    pub origin: Option<Arc<str>>,
    /// Lanes of this task.
    pub task: Option<TaskId>,
    /// Lanes of registrations with this name.
    pub registration: Option<Arc<str>>,
    /// The lane with this number.
    pub lane: Option<u64>,
    /// By the name of the state.
    pub state: Option<Arc<str>>,
}

/// By number, oldest first.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LanePage {
    /// The lanes of the page.
    pub lanes: Vec<Lane>,
    /// The next page begins after it.
    pub next: Option<u64>,
}

/// What an operator does with lanes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StateChange {
    /// What is active waits.
    Pause,
    /// What was paused goes on where it was.
    Resume,
    /// Nothing more is delivered.
    Disable,
    /// What was disabled or gone goes on, first with a picture of the whole task.
    Enable,
}

/// Which dead letters an operator means. What is not said matches all.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DeadFilter {
    /// Letters of this tenant.
    pub tenant: Option<Arc<str>>,
    /// Letters to this origin.
    pub origin: Option<Arc<str>>,
    /// Letters of this task.
    pub task: Option<TaskId>,
    /// Letters of this lane.
    pub lane: Option<u64>,
    /// Letters that were given up for this reason.
    pub reason: Option<Arc<str>>,
    /// Given up at or after.
    pub since: Option<Timestamp>,
    /// Given up before.
    pub until: Option<Timestamp>,
}

/// By number, oldest first.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DeadPage {
    /// The letters of the page.
    pub letters: Vec<DeadLetter>,
    /// The next page begins after it.
    pub next: Option<u64>,
}

/// What goes because of its age. What is older than the moment named.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LaneSweep {
    /// Lanes with nothing to deliver, of tasks that have ended.
    pub drained_before: Timestamp,
    /// Dead letters from before this are deleted.
    pub dead_before: Timestamp,
    /// Receipts from before this are deleted.
    pub receipts_before: Timestamp,
    /// At most this many of each kind.
    pub at_most: u64,
}

/// What a sweep deleted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SweptLanes {
    /// The number of lanes.
    pub lanes: u64,
    /// The number of dead letters.
    pub dead: u64,
    /// The number of receipts.
    pub receipts: u64,
}

/// How much there is, for gauges.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OutboxLoad {
    /// The number of lanes.
    pub lanes: u64,
    /// Active ones with something to deliver.
    pub pending: u64,
    /// The entries that wait for delivery.
    pub backlog_events: u64,
    /// The number of dead letters.
    pub dead: u64,
}

/// Secrets that were sealed again.
#[derive(Clone, Debug, PartialEq)]
pub struct Resealed {
    /// The number of the registration.
    pub lane: u64,
    /// What is there until then. If it is something else, it stays.
    pub before: SealedSecret,
    /// What replaces it.
    pub after: SealedSecret,
}

/// When a method that writes answers, what it says survives the end of the process.
#[async_trait]
pub trait Outbox: Send + Sync + Debug {
    /// Puts a registration beside those of its task, or in place of the one by the same name.
    async fn register(&self, new: NewRegistration) -> Result<Registered, StoreError>;

    /// Returns the registration of a task with this name.
    async fn registration(&self, task: &TaskId, id: &str) -> Result<Option<Arc<Registration>>, StoreError>;

    /// Of one task, in the order they were made, after the lane named.
    async fn registrations(&self, task: &TaskId, after: u64, limit: usize) -> Result<Vec<Arc<Registration>>, StoreError>;

    /// Answers the number it had. Nothing is delivered by a claim from before.
    async fn unregister(&self, task: &TaskId, id: &str) -> Result<Option<u64>, StoreError>;

    /// Lanes that are due: those of the origin that has waited longest first, at most `per_origin` of one, none of those excepted.
    /// They are the claimer's until the lease is over.
    async fn claim(
        &self,
        now: Timestamp,
        lease: Duration,
        most: usize,
        per_origin: usize,
        except: &[WebhookOrigin],
    ) -> Result<Vec<Lane>, StoreError>;

    /// Stores the outcome of claimed lanes, in one transaction. One that is fenced does not keep the others
    /// back.
    async fn settle_lanes(&self, steps: Vec<LaneStep>) -> Result<Vec<LaneSettlement>, StoreError>;

    /// Nothing of this origin's is claimed before then, however long it has waited.
    async fn park(&self, origin: &WebhookOrigin, until: Timestamp) -> Result<(), StoreError>;

    /// Everything that is planned goes on by the new time: leases, waits, and letters in line.
    async fn clock_set(&self, set: ClockSet) -> Result<(), StoreError>;

    /// When there is something to claim, of an origin that is not excepted.
    async fn next_due(&self, except: &[WebhookOrigin]) -> Result<Option<Timestamp>, StoreError>;

    /// Returns a page of lanes.
    async fn lanes(&self, filter: &LaneFilter, after: u64, limit: usize) -> Result<LanePage, StoreError>;

    /// Answers the lanes that changed, at most `limit`, in order.
    async fn change_state(
        &self,
        filter: &LaneFilter,
        change: StateChange,
        now: Timestamp,
        after: u64,
        limit: usize,
    ) -> Result<Vec<(u64, LaneState)>, StoreError>;

    /// Returns a page of dead letters.
    async fn dead_letters(&self, filter: &DeadFilter, after: u64, limit: usize) -> Result<DeadPage, StoreError>;

    /// Returns the dead letter with this id.
    async fn dead_letter(&self, id: u64) -> Result<Option<DeadLetter>, StoreError>;

    /// Puts letters in line to be delivered again, if their registration is still there. Answers which, at most `limit`.
    async fn replay(
        &self,
        filter: &DeadFilter,
        new_id: bool,
        now: Timestamp,
        after: u64,
        limit: usize,
    ) -> Result<Vec<u64>, StoreError>;

    /// Letters in line, by task and entry.
    async fn claim_replays(&self, now: Timestamp, lease: Duration, most: usize) -> Result<Vec<Replay>, StoreError>;

    /// Stores the outcome of claimed replays.
    async fn settle_replays(&self, steps: Vec<ReplayStep>) -> Result<(), StoreError>;

    /// Forgets letters. Answers how many, at most `limit`.
    async fn purge(&self, filter: &DeadFilter, limit: usize) -> Result<u64, StoreError>;

    /// The newest first, of which only a few dozen are kept for each lane.
    async fn attempts(&self, lane: u64, since: Timestamp, limit: usize) -> Result<Vec<DeliveryAttempt>, StoreError>;

    /// In the order they were given, with the number to go on after.
    async fn receipts(&self, lane: Option<u64>, after: u64, limit: usize) -> Result<Vec<(u64, Receipt)>, StoreError>;

    /// Forgets what is too old, as far as it is done with.
    async fn sweep_lanes(&self, plan: LaneSweep) -> Result<SweptLanes, StoreError>;

    /// The same secrets under another key. Answers how many changed.
    async fn reseal(&self, anew: Vec<Resealed>) -> Result<u64, StoreError>;

    /// Returns how much is stored.
    async fn outbox_load(&self) -> Result<OutboxLoad, StoreError>;
}
