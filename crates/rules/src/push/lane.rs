//! A lane: how far one registration has got in the log of its task, and who may move it.
//!
//! Transitions are plain, so that every store can be held against them. A claim raises the epoch; only the holder of the newest epoch
//! moves the head, and only while it holds the lease, so a worker that was frozen and comes back changes nothing.

use std::time::Duration;

use chancery_protocol::Timestamp;
use serde::{Deserialize, Serialize};

use super::outcome::{DeadReason, DisableReason};
use super::span::Span;

/// No lease: no worker has the lane.
pub const FREE: Timestamp = Timestamp::from_micros(0);

/// The state of a webhook.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LaneState {
    /// Events are delivered.
    Active,
    /// Deliveries are paused.
    Paused,
    /// Nothing is sent until it is enabled again.
    Disabled(DisableReason),
    /// The receiver said 410.
    Gone,
    /// The webhook is deleted.
    Deleted,
}

impl LaneState {
    /// Returns the name of the state.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Paused => "paused",
            Self::Disabled(_) => "disabled",
            Self::Gone => "gone",
            Self::Deleted => "deleted",
        }
    }
}

/// The part of a registration that moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cursor {
    /// The state of the webhook.
    pub state: LaneState,
    /// The next entry to deliver. More than `tail` when all are delivered.
    pub head: u64,
    /// The last entry of the log.
    pub tail: u64,
    /// Attempts that failed since the last answer that did not.
    pub attempt: u32,
    /// Answers in a row that did not take our credentials.
    pub refusals: u32,
    /// The time of the next attempt.
    pub next_at: Timestamp,
    /// The time of the first failure since the last success.
    pub first_fail_at: Option<Timestamp>,
    /// The number of the last claim. A holder of an older claim cannot write.
    pub epoch: u64,
    /// The time until which the holder of the claim has the lane.
    pub lease_until: Timestamp,
    /// What is sent for the head, once it may have been sent: from then on neither its id nor its bytes change.
    pub span: Option<Span>,
}

/// Leave to work on a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaneClaim {
    /// The number of the claim.
    pub epoch: u64,
    /// The first entry to deliver.
    pub head: u64,
    /// The entries of an earlier attempt that may have arrived.
    pub span: Option<Span>,
}

/// What the holder of a lane does to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LaneAction {
    /// Before several entries go out as one for the first time: they stay one.
    Pin {
        /// The entries that stay one delivery.
        span: Span,
        /// The time until which the lease goes on.
        keep: Timestamp,
    },
    /// Delivered. `keep` is how long the lease goes on, if the holder wants the next entry too.
    Ack {
        /// The delivered entries.
        span: Span,
        /// The time until which the lease goes on.
        keep: Option<Timestamp>,
    },
    /// The head is not for this registration.
    Skip {
        /// The last entry that is skipped.
        to: u64,
        /// The time until which the lease goes on.
        keep: Option<Timestamp>,
    },
    /// The attempt failed, and another one follows.
    Retry {
        /// The entries of the attempt.
        span: Span,
        /// The time of the next attempt.
        next_at: Timestamp,
    },
    /// Given up, and on to the next, unless the lane is turned off with it.
    Reject {
        /// The entries that are given up.
        span: Span,
        /// Why the entries are given up.
        reason: DeadReason,
        /// Whether the receiver rejected the node's credentials.
        unauthorized: bool,
        /// Why the lane is turned off, if it is.
        disable: Option<DisableReason>,
        /// The time until which the lease goes on.
        keep: Option<Timestamp>,
    },
    /// Not tried, because the origin is left alone until then.
    Park {
        /// The time of the next attempt.
        next_at: Timestamp,
    },
    /// Stopped on the way; with the span if it may have arrived.
    Release {
        /// The entries that may have arrived.
        span: Option<Span>,
        /// The time of the next attempt.
        next_at: Timestamp,
    },
    /// Everything that was pending when the letter was written is given up and the lane turned off. What came since stays.
    GiveUp {
        /// Why the lane is turned off.
        reason: DisableReason,
        /// The last entry that is given up.
        to: u64,
    },
    /// The receiver answered that it does not exist any more.
    Gone {
        /// The last entry that is given up.
        to: u64,
    },
    /// The lane is turned off; what is pending stays.
    Disable {
        /// Why the lane is turned off.
        reason: DisableReason,
    },
}

/// Entries that were given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeadSpan {
    /// The first event.
    pub from: u64,
    /// The last event.
    pub to: u64,
    /// Why the events were not delivered.
    pub reason: DeadReason,
}

/// What an action changed beside the cursor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LaneChange {
    /// The entries that were given up.
    pub dead: Option<DeadSpan>,
    /// The lease goes on and the head is there to be sent.
    pub goes_on: bool,
}

/// Another worker has the lane by now, or none has; nothing was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fenced;

impl Cursor {
    /// A lane that has everything after `seen` to deliver.
    pub fn new(seen: u64, tail: u64, now: Timestamp) -> Self {
        Self {
            state: LaneState::Active,
            head: seen + 1,
            tail,
            attempt: 0,
            refusals: 0,
            next_at: now,
            first_fail_at: None,
            epoch: 0,
            lease_until: FREE,
            span: None,
        }
    }

    /// Returns whether entries wait for delivery.
    pub fn is_pending(&self) -> bool {
        self.head <= self.tail
    }

    /// Returns whether a worker has the lane.
    pub fn is_held(&self) -> bool {
        self.lease_until != FREE
    }

    /// The log has grown. A lane that waits to try again goes on waiting; one that is off goes on counting.
    pub fn append(&mut self, seq: u64, now: Timestamp) {
        if self.state == LaneState::Deleted {
            return;
        }
        if !self.is_pending() {
            self.next_at = now;
        }
        self.tail = self.tail.max(seq);
    }

    /// Returns whether an attempt can be made now.
    pub fn is_due(&self, now: Timestamp) -> bool {
        self.state == LaneState::Active && self.is_pending() && self.next_at <= now && self.lease_until <= now
    }

    /// Claims the lane for a time, if an attempt is due.
    pub fn claim(&mut self, now: Timestamp, lease: Duration) -> Option<LaneClaim> {
        if !self.is_due(now) {
            return None;
        }
        self.orphan();
        self.epoch += 1;
        self.lease_until = now + lease;
        Some(LaneClaim { epoch: self.epoch, head: self.head, span: self.span })
    }

    /// Notes that the holder of an expired lease disappeared. It may have sent the head before. Returns
    /// whether there was one.
    pub fn orphan(&mut self) -> bool {
        let held = self.is_held();
        if held {
            self.span = self.span.or(Some(Span::single(self.head)));
            self.lease_until = FREE;
        }
        held
    }

    /// Applies the result of the holder of a claim. An older claim is rejected.
    pub fn settle(&mut self, epoch: u64, step: LaneAction, now: Timestamp) -> Result<LaneChange, Fenced> {
        if epoch != self.epoch || !self.is_held() || self.state == LaneState::Deleted {
            return Err(Fenced);
        }
        let mut change = LaneChange::default();
        match step {
            LaneAction::Pin { span, keep } => {
                self.span = Some(self.span.unwrap_or(span));
                change.goes_on = self.hold_on(Some(keep), now);
            }
            LaneAction::Ack { span, keep } => {
                self.refusals = 0;
                self.pass(span.to);
                change.goes_on = self.hold_on(keep, now);
            }
            LaneAction::Skip { to, keep } => {
                self.pass(to);
                change.goes_on = self.hold_on(keep, now);
            }
            LaneAction::Retry { span, next_at } => {
                self.attempt = self.attempt.saturating_add(1);
                self.first_fail_at = self.first_fail_at.or(Some(now));
                self.span = Some(span);
                self.let_go(next_at);
            }
            LaneAction::Reject { span, reason, unauthorized, disable, keep } => {
                change.dead = Some(DeadSpan { from: self.head, to: span.to.min(self.tail), reason });
                self.refusals = if unauthorized { self.refusals.saturating_add(1) } else { 0 };
                self.pass(span.to);
                if let Some(reason) = disable {
                    self.state = LaneState::Disabled(reason);
                }
                change.goes_on = self.hold_on(keep, now);
            }
            LaneAction::Park { next_at } => self.let_go(next_at),
            LaneAction::Release { span, next_at } => {
                self.span = self.span.or(span);
                self.let_go(next_at);
            }
            LaneAction::GiveUp { reason, to } => {
                change.dead = self.give_up(to, DeadReason::Exhausted);
                self.state = LaneState::Disabled(reason);
                self.let_go(now);
            }
            LaneAction::Gone { to } => {
                change.dead = self.give_up(to, DeadReason::Gone);
                self.state = LaneState::Gone;
                self.let_go(now);
            }
            LaneAction::Disable { reason } => {
                self.state = LaneState::Disabled(reason);
                self.let_go(now);
            }
        }
        Ok(change)
    }

    /// What is under way may end; nothing new begins. Tells whether it changed anything.
    pub fn pause(&mut self) -> bool {
        let active = self.state == LaneState::Active;
        if active {
            self.state = LaneState::Paused;
        }
        active
    }

    /// Starts deliveries again, and returns whether that changed the lane.
    pub fn resume(&mut self, now: Timestamp) -> bool {
        let paused = self.state == LaneState::Paused;
        if paused {
            self.state = LaneState::Active;
            self.next_at = now;
        }
        paused
    }

    /// By an operator.
    pub fn disable(&mut self) -> bool {
        let on = matches!(self.state, LaneState::Active | LaneState::Paused);
        if on {
            self.state = LaneState::Disabled(DisableReason::Operator);
        }
        on
    }

    /// A receiver that was disabled for long wants the current task rather than all earlier events: a
    /// snapshot goes first.
    pub fn enable(&mut self, now: Timestamp) -> bool {
        if !matches!(self.state, LaneState::Disabled(_) | LaneState::Gone) {
            return false;
        }
        self.state = LaneState::Active;
        self.begin_with_snapshot();
        self.attempt = 0;
        self.refusals = 0;
        self.first_fail_at = None;
        self.next_at = now;
        self.fence();
        true
    }

    /// How the task stands goes out first, in place of everything that led there.
    pub fn begin_with_snapshot(&mut self) {
        self.head = self.head.min(self.tail.max(1));
        self.span = (self.tail > 0).then(|| Span::snapshot(self.tail));
    }

    /// Ends the lane permanently. Deliveries in flight are fenced off.
    pub fn delete(&mut self) -> bool {
        let there = self.state != LaneState::Deleted;
        self.state = LaneState::Deleted;
        self.fence();
        there
    }

    fn fence(&mut self) {
        self.epoch += 1;
        self.lease_until = FREE;
    }

    fn pass(&mut self, to: u64) {
        self.head = self.head.max(to.min(self.tail) + 1);
        self.attempt = 0;
        self.first_fail_at = None;
        self.span = None;
    }

    fn hold_on(&mut self, keep: Option<Timestamp>, now: Timestamp) -> bool {
        match keep.filter(|until| *until > now && self.state == LaneState::Active && self.is_pending()) {
            Some(until) => self.lease_until = until,
            None => self.let_go(now),
        }
        self.is_held()
    }

    fn let_go(&mut self, next_at: Timestamp) {
        self.lease_until = FREE;
        self.next_at = next_at;
    }

    fn give_up(&mut self, to: u64, reason: DeadReason) -> Option<DeadSpan> {
        let to = to.min(self.tail);
        let dead = (self.head <= to).then_some(DeadSpan { from: self.head, to, reason });
        self.pass(to);
        dead
    }
}
