//! How far the deliveries of one registration have got.

use std::sync::Arc;

use chancery_protocol::Timestamp;
use serde::{Deserialize, Serialize};

use super::letter::{Attempt, DeadLetter, Receipt};
use super::registration::Registration;

/// Why nothing is delivered any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DisableReason {
    /// The schedule was used up.
    Exhausted,
    /// The receiver refused our credentials again and again.
    AuthRejected,
    /// Its name led to an address that may not be called.
    BlockedAddress,
    /// It failed for days without a break.
    Failing,
    Operator,
}

impl DisableReason {
    pub const ALL: [Self; 5] = [Self::Exhausted, Self::AuthRejected, Self::BlockedAddress, Self::Failing, Self::Operator];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Exhausted => "exhausted",
            Self::AuthRejected => "auth_rejected",
            Self::BlockedAddress => "blocked_address",
            Self::Failing => "failing",
            Self::Operator => "operator",
        }
    }

    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|reason| reason.as_str() == name)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LaneState {
    Active,
    /// By the operator; what comes is kept for later.
    Paused,
    Disabled(DisableReason),
    /// The receiver said that it is gone for good.
    Gone,
}

impl LaneState {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Paused => "paused",
            Self::Disabled(_) => "disabled",
            Self::Gone => "gone",
        }
    }

    pub const fn reason(self) -> Option<DisableReason> {
        match self {
            Self::Disabled(reason) => Some(reason),
            _ => None,
        }
    }

    pub fn from_names(state: &str, reason: Option<&str>) -> Option<Self> {
        match state {
            "active" => Some(Self::Active),
            "paused" => Some(Self::Paused),
            "disabled" => reason.and_then(DisableReason::from_name).map(Self::Disabled),
            "gone" => Some(Self::Gone),
            _ => None,
        }
    }
}

/// One delivery that stands for several entries. It was attempted, so its bytes are settled, whatever comes after.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pin {
    /// It covers the entries from the lane's head to this one.
    pub upto: u64,
    /// The whole task instead of pieces put together.
    pub snapshot: bool,
}

/// A registration and its cursor over the task's log. Pending are the entries `head..=tail`.
#[derive(Clone, Debug, PartialEq)]
pub struct Lane {
    pub registration: Arc<Registration>,
    pub state: LaneState,
    /// The next entry to deliver.
    pub head: u64,
    /// The last entry there is to deliver.
    pub tail: u64,
    /// Attempts that failed since the last one that did not.
    pub attempt: u32,
    /// Not before. While the lane is claimed, the end of the lease.
    pub next_at: Timestamp,
    pub first_fail_at: Option<Timestamp>,
    /// Refusals of our credentials in a row.
    pub auth_refusals: u32,
    pub pin: Option<Pin>,
    /// It was enabled again: a picture of the whole task comes first.
    pub resync: bool,
    /// Goes up with each claim. Whoever settles with an older one is too late.
    pub epoch: u64,
    /// The hash of the last receipt, to chain the next one to.
    pub receipt: Option<[u8; 32]>,
}

impl Lane {
    pub fn is_drained(&self) -> bool {
        self.head > self.tail
    }
}

/// What becomes of a claimed lane, all or nothing.
#[derive(Clone, Debug)]
pub struct LaneStep {
    pub lane: u64,
    /// The claim it comes from.
    pub epoch: u64,
    pub change: LaneChange,
    pub attempts: Vec<Attempt>,
    pub dead: Vec<DeadLetter>,
    pub receipts: Vec<Receipt>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaneChange {
    /// Nothing leaves it as it is, also where an operator has changed it since the claim.
    pub state: Option<LaneState>,
    pub head: u64,
    pub attempt: u32,
    /// When the lane is due again; the end of the lease if its worker goes on with it.
    pub next_at: Timestamp,
    pub first_fail_at: Option<Timestamp>,
    pub auth_refusals: u32,
    pub pin: Option<Pin>,
    pub resync: bool,
}

impl LaneChange {
    /// The lane as it is.
    pub fn none(lane: &Lane) -> Self {
        Self {
            state: None,
            head: lane.head,
            attempt: lane.attempt,
            next_at: lane.next_at,
            first_fail_at: lane.first_fail_at,
            auth_refusals: lane.auth_refusals,
            pin: lane.pin,
            resync: lane.resync,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Settled {
    /// How the lane stands now. There may be more to deliver than there was.
    Done { state: LaneState, tail: u64 },
    /// Somebody else claimed the lane, or it is gone or another. Nothing was written.
    Fenced,
}
