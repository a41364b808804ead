//! A registration and how far its deliveries have got.

use std::sync::Arc;

use chancery_protocol::Timestamp;
use chancery_rules::push::{Cursor, LaneAction, LaneChange};

use super::letter::{DeadLetter, DeliveryAttempt, Receipt};
use super::registration::Registration;
use crate::Delivered;

/// A registration with its cursor.
#[derive(Clone, Debug, PartialEq)]
pub struct Lane {
    /// The registration.
    pub registration: Arc<Registration>,
    /// The position in the log of the task, and the state of the lane.
    pub cursor: Cursor,
    /// The hash of the last receipt, to chain the next one to.
    pub receipt: Option<[u8; 32]>,
}

impl Lane {
    /// Returns the number of the registration.
    pub fn number(&self) -> u64 {
        self.registration.lane
    }
}

/// What the holder of a lane does to it, and what is kept of that: all or nothing.
#[derive(Clone, Debug)]
pub struct LaneStep {
    /// The number of the registration.
    pub lane: u64,
    /// Of the claim it comes from.
    pub epoch: u64,
    /// The change of the lane.
    pub step: LaneAction,
    /// The time of the step.
    pub now: Timestamp,
    /// The attempt that led to the step.
    pub attempt: Option<DeliveryAttempt>,
    /// What was given up, if the step gives something up. The store says which entries it stands for.
    pub dead: Option<Box<DeadLetter>>,
    /// The receipt of an accepted delivery.
    pub receipt: Option<Box<Receipt>>,
    /// For the record, if one is kept. Of what is given up, the store says which entries it stands for.
    pub delivered: Option<Box<Delivered>>,
}

/// The outcome of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LaneSettlement {
    /// How the lane stands now. There may be more to deliver than there was.
    Done { cursor: Cursor, change: LaneChange },
    /// Another worker has the lane by now, or it is gone or another. Nothing was written.
    Fenced,
}
