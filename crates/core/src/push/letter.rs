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
    /// The number of the registration.
    pub lane: u64,
    /// The task whose events it holds.
    pub task: TaskId,
    /// The name of the registration.
    pub registration: RegistrationId,
    /// The caller who registered the webhook.
    pub owner: Caller,
    /// The origin of the webhook.
    pub origin: Arc<str>,
    /// The id of the notification.
    pub webhook_id: Arc<str>,
    /// The entries that it stands for.
    pub from: u64,
    /// The last entry that it stands for.
    pub to: u64,
    /// Why the node stopped retrying.
    pub reason: Arc<str>,
    /// How many attempts were made.
    pub attempts: u32,
    /// The time of the first attempt.
    pub first_at: Timestamp,
    /// The time of the last attempt.
    pub last_at: Timestamp,
    /// The status of the last answer.
    pub http: Option<u16>,
    /// The fault of the last attempt.
    pub error: Option<Arc<str>>,
    /// The body.
    pub body: Arc<[u8]>,
    /// Without those that hold secrets.
    pub headers: Vec<(Arc<str>, Arc<str>)>,
    /// How often it was put to the receiver again since.
    pub replays: u32,
}

/// One try. Of each lane only the newest are kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeliveryAttempt {
    /// The number of the registration.
    pub lane: u64,
    /// The last entry that the notification covers.
    pub seq: u64,
    /// Counted from 1.
    pub n: u32,
    /// The time of the attempt.
    pub at: Timestamp,
    /// How long it took, in milliseconds.
    pub ms: u32,
    /// What came of it.
    pub outcome: Arc<str>,
    /// The status of the answer.
    pub http: Option<u16>,
}

/// Shows that a receiver took a delivery. The receipts of a lane are a chain.
#[derive(Clone, Debug, PartialEq)]
pub struct Receipt {
    /// The id of the notification.
    pub webhook_id: Arc<str>,
    /// The number of the registration.
    pub lane: u64,
    /// The last entry that the notification covers.
    pub seq: u64,
    /// The task whose events were delivered.
    pub task: TaskId,
    /// The caller who registered the webhook.
    pub owner: Caller,
    /// The origin of the webhook.
    pub origin: Arc<str>,
    /// The digest of the body.
    pub body_sha256: [u8; 32],
    /// The status of the answer.
    pub http: u16,
    /// The time of the answer.
    pub at: Timestamp,
    /// The hash of the one before, or zeros.
    pub prev_hash: [u8; 32],
    /// The hash of this receipt.
    pub hash: [u8; 32],
    /// The signature over the hash, as `KID,HEX`.
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
    /// The dead letter.
    pub letter: DeadLetter,
    /// The registration that it goes to.
    pub registration: Arc<Registration>,
    /// Under another id, so that a receiver that knows the old one takes it again.
    pub new_id: bool,
    /// The number of the claim.
    pub epoch: u64,
}

/// The outcome of one replay.
#[derive(Clone, Debug, PartialEq)]
pub struct ReplayStep {
    /// The id of the dead letter.
    pub letter: u64,
    /// The number of the claim.
    pub epoch: u64,
    /// Accepted letters are deleted; the others stay dead, with the result of this attempt.
    pub taken: bool,
    /// The time of the attempt.
    pub at: Timestamp,
    /// The status of the answer.
    pub http: Option<u16>,
    /// The fault of the attempt.
    pub error: Option<Arc<str>>,
    /// For the record, if one is kept.
    pub delivered: Option<Box<Delivered>>,
}
