//! What is kept about deliveries: attempts for a while, receipts for those that were taken, letters for those that never will be.

use std::sync::Arc;

use chancery_protocol::{Caller, TaskId, Timestamp};

use super::registration::{Registration, RegistrationId};
use crate::Delivered;

/// A delivery that was given up. It is complete without its task, which may be deleted.
#[derive(Clone, Debug, PartialEq)]
pub struct DeadLetter {
    /// Given by the store; 0 before.
    pub id: u64,
    pub lane: u64,
    pub task: TaskId,
    pub registration: RegistrationId,
    pub owner: Caller,
    pub origin: Arc<str>,
    pub webhook_id: Arc<str>,
    /// The entries that it stands for.
    pub from: u64,
    pub to: u64,
    pub reason: Arc<str>,
    pub attempts: u32,
    pub first_at: Timestamp,
    pub last_at: Timestamp,
    pub http: Option<u16>,
    pub error: Option<Arc<str>>,
    pub body: Arc<[u8]>,
    /// Without those that hold secrets.
    pub headers: Vec<(Arc<str>, Arc<str>)>,
    /// How often it was put to the receiver again since.
    pub replays: u32,
}

/// One try. Of each lane only the newest are kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeliveryAttempt {
    pub lane: u64,
    pub seq: u64,
    /// Counted from 1.
    pub n: u32,
    pub at: Timestamp,
    pub ms: u32,
    pub outcome: Arc<str>,
    pub http: Option<u16>,
}

/// Shows that a receiver took a delivery. The receipts of a lane are a chain.
#[derive(Clone, Debug, PartialEq)]
pub struct Receipt {
    pub webhook_id: Arc<str>,
    pub lane: u64,
    pub seq: u64,
    pub task: TaskId,
    pub owner: Caller,
    pub origin: Arc<str>,
    pub body_sha256: [u8; 32],
    pub http: u16,
    pub at: Timestamp,
    /// The hash of the one before, or zeros.
    pub prev_hash: [u8; 32],
    pub hash: [u8; 32],
    pub signature: Arc<str>,
    /// What the receiver said in return.
    pub receiver_receipt: Option<Arc<str>>,
}

impl Receipt {
    /// What its hash and its signature are over: one line each, so that nothing can be moved from one to the next.
    pub fn content(&self) -> Vec<u8> {
        let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        let lines = [
            self.webhook_id.to_string(),
            self.lane.to_string(),
            self.seq.to_string(),
            self.task.to_string(),
            self.origin.to_string(),
            hex(&self.body_sha256),
            self.http.to_string(),
            self.at.to_string(),
            hex(&self.prev_hash),
            self.receiver_receipt.as_deref().unwrap_or_default().to_owned(),
        ];
        lines.join("\n").into_bytes()
    }
}

/// A dead letter that an operator wants delivered after all.
#[derive(Clone, Debug, PartialEq)]
pub struct Replay {
    pub letter: DeadLetter,
    pub registration: Arc<Registration>,
    /// Under another id, so that a receiver that knows the old one takes it again.
    pub new_id: bool,
    pub epoch: u64,
}

#[derive(Clone, Debug, PartialEq)]
pub struct ReplayStep {
    pub letter: u64,
    pub epoch: u64,
    /// Accepted letters are deleted; the others stay dead, with the result of this attempt.
    pub taken: bool,
    pub at: Timestamp,
    pub http: Option<u16>,
    pub error: Option<Arc<str>>,
    /// For the record, if one is kept.
    pub delivered: Option<Box<Delivered>>,
}
