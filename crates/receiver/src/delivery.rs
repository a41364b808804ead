//! An accepted notification, held until the program reports its result.

use std::sync::Arc;

use axum::response::{IntoResponse, Response};
use chancery_protocol::{TaskId, Timestamp};
use chancery_wire::Notification;
use http::StatusCode;

use crate::proof::SenderProof;
use crate::receiver::ReceiverState;

/// Accept it when its work is done. Until then its sender gets an answer to try again. A dropped delivery is
/// forgotten, so that the next attempt is accepted.
#[must_use = "what is not accepted is sent again"]
#[derive(Debug)]
pub struct ReceivedDelivery {
    /// The notification.
    pub notification: Notification,
    /// The id of the message, the same for every attempt. Only what was signed has one.
    pub id: Option<String>,
    /// The number of the entry in the log of its task, and of the lane it came by.
    pub lane: Option<u64>,
    /// The number of the event in its task, if the sender gives it.
    pub seq: Option<u64>,
    /// Which entries it stands for, if more than one.
    pub compacted: Option<(u64, u64)>,
    /// The number of the attempt, if the sender gives it.
    pub attempt: Option<u32>,
    /// An operator sent it again.
    pub replay: bool,
    /// The time of the attempt, if the sender gives it.
    pub sent_at: Option<Timestamp>,
    /// The proofs that the receiver verified.
    pub proofs: Vec<SenderProof>,
    pub(crate) held: Option<HeldNotification>,
}

#[derive(Debug)]
pub(crate) struct HeldNotification {
    pub(crate) memory: Arc<ReceiverState>,
    pub(crate) key: String,
}

impl ReceivedDelivery {
    /// The task it is about. A message need not belong to one.
    pub fn task(&self) -> Option<&TaskId> {
        self.notification.face.as_ref().map(|face| &face.task_id)
    }

    /// It was worked on: from now on it is a copy.
    pub async fn accept(mut self) -> AcceptedDelivery {
        let (task, lane, seq) = (self.task().cloned(), self.lane, self.seq);
        if let Some(held) = self.held.take() {
            let memory = &held.memory;
            let kept = memory.guard.taken(&held.key, memory.clock.now()).await;
            // What was sent out of turn says nothing of what comes in turn.
            if let (Some(task), Some(lane), Some(seq), false) = (task, lane, seq, self.replay) {
                memory.lanes.taken(task.as_str(), lane, seq);
            }
            // What could not be kept may come again, which is better than to be sent for ever.
            return AcceptedDelivery { remembered: kept.is_ok() };
        }
        AcceptedDelivery { remembered: false }
    }
}

impl Drop for ReceivedDelivery {
    fn drop(&mut self) {
        if let Some(held) = self.held.take() {
            held.memory.guard.dropped(&held.key);
        }
    }
}

/// The answer that tells the sender that it is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AcceptedDelivery {
    /// Whether another copy will be known for one.
    pub remembered: bool,
}

impl IntoResponse for AcceptedDelivery {
    fn into_response(self) -> Response {
        StatusCode::NO_CONTENT.into_response()
    }
}
