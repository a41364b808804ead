//! A registration and how far its deliveries have got.

use std::sync::Arc;

use chancery_protocol::Timestamp;
use chancery_rules::push::{Cursor, LaneAction, LaneChange};

use super::letter::{DeadLetter, DeliveryAttempt, Receipt};
use super::registration::Registration;
use crate::Delivered;

#[derive(Clone, Debug, PartialEq)]
pub struct Lane {
    pub registration: Arc<Registration>,
    pub cursor: Cursor,
    /// The hash of the last receipt, to chain the next one to.
    pub receipt: Option<[u8; 32]>,
}

impl Lane {
    pub fn number(&self) -> u64 {
        self.registration.lane
    }
}

/// What the holder of a lane does to it, and what is kept of that: all or nothing.
#[derive(Clone, Debug)]
pub struct LaneStep {
    pub lane: u64,
    /// Of the claim it comes from.
    pub epoch: u64,
    pub step: LaneAction,
    pub now: Timestamp,
    pub attempt: Option<DeliveryAttempt>,
    /// What was given up, if the step gives something up. The store says which entries it stands for.
    pub dead: Option<Box<DeadLetter>>,
    pub receipt: Option<Box<Receipt>>,
    /// For the record, if one is kept. Of what is given up, the store says which entries it stands for.
    pub delivered: Option<Box<Delivered>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LaneSettlement {
    /// How the lane stands now. There may be more to deliver than there was.
    Done { cursor: Cursor, change: LaneChange },
    /// Another worker has the lane by now, or it is gone or another. Nothing was written.
    Fenced,
}
