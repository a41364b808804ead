//! Checks a notification, from its bytes to its delivery to the program.

use std::fmt;
use std::sync::Arc;

use arc_swap::ArcSwap;
use bytes::Bytes;
use chancery_identity::SealKey;
use chancery_identity::webhook::{PushKeys, ReplayCheck};
use chancery_protocol::TaskId;
use chancery_wire::{JsonLimits, read_notification};
use http::HeaderMap;

use crate::builder::Builder;
use crate::clock::ReceiverClock;
use crate::delivery::{HeldNotification, ReceivedDelivery};
use crate::guard::ReplayGuard;
use crate::lanes::ReceivedLanes;
use crate::proof::{Demands, SenderProof, VerifiedSender, text};
use crate::refusal::NotificationRefusal;

/// A longer body is not read.
pub const MOST_BODY_BYTES: usize = 1 << 20;

/// Takes notifications in. Cheap to clone; all clones remember together.
#[derive(Clone, Debug)]
pub struct Receiver {
    pub(crate) demands: Arc<ArcSwap<Demands>>,
    pub(crate) memory: Arc<ReceiverState>,
    pub(crate) expected: Expected,
    pub(crate) json: Arc<JsonLimits>,
    pub(crate) most_bytes: usize,
}

#[derive(Debug)]
pub(crate) struct ReceiverState {
    pub(crate) guard: Arc<dyn ReplayGuard>,
    pub(crate) clock: Arc<dyn ReceiverClock>,
    pub(crate) lanes: ReceivedLanes,
}

type Waits = dyn Fn(&TaskId) -> bool + Send + Sync;

#[derive(Clone, Default)]
pub(crate) struct Expected(pub(crate) Option<Arc<Waits>>);

impl fmt::Debug for Expected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "some tasks" } else { "every task" })
    }
}

impl Receiver {
    /// Starts with a builder that asks for no proof.
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// Returns the largest body that the receiver accepts.
    pub fn most_body_bytes(&self) -> usize {
        self.most_bytes
    }

    /// The keys its senders have published by now, in place of those before.
    pub fn set_keys(&self, keys: PushKeys) {
        self.demands.rcu(|demands| {
            let verifier = demands.verifier.clone().keys(keys.clone());
            Demands { verifier, ..Demands::clone(demands) }
        });
    }

    /// Lets a notification in, or says why not. What a sender has to show is looked at before what it says.
    pub async fn receive(&self, headers: &HeaderMap, body: Bytes) -> Result<ReceivedDelivery, NotificationRefusal> {
        if body.len() > self.most_bytes {
            return Err(NotificationRefusal::TooLarge(self.most_bytes));
        }
        let now = self.memory.clock.now();
        let VerifiedSender { proofs, verified } = self.demands.load().check(headers, &body, now)?;
        let notification = read_notification(&body, &self.json)
            .map_err(|fault| NotificationRefusal::NotANotification(fault.message.into_owned()))?;
        let task = notification.face.as_ref().map(|face| face.task_id.clone());
        if let (Some(task), Some(expected)) = (&task, &self.expected.0)
            && !expected(task)
        {
            return Err(NotificationRefusal::UnexpectedTask(task.to_string()));
        }
        let made_of = verified.as_ref().and_then(|verified| verified.made_of.as_ref());
        let replay = text(headers, "a2a-event-replay").is_some_and(|value| value == "1")
            || made_of.is_some_and(|made_of| made_of.resent.is_some());
        let mut delivery = ReceivedDelivery {
            notification,
            id: verified.as_ref().map(|verified| verified.id.clone()),
            lane: made_of.map(|made_of| made_of.lane),
            seq: made_of.map(|made_of| made_of.seq),
            compacted: text(headers, "a2a-event-compacted").and_then(range),
            attempt: text(headers, "a2a-event-attempt").and_then(|text| text.parse().ok()),
            replay,
            sent_at: verified.as_ref().map(|verified| verified.sent_at),
            proofs,
            held: None,
        };
        if let Some(key) = remembered_as(&delivery, &body) {
            match self.memory.guard.begin(&key, now).await? {
                ReplayCheck::Fresh => delivery.held = Some(HeldNotification { memory: self.memory.clone(), key }),
                ReplayCheck::Seen => return Err(NotificationRefusal::Duplicate),
                ReplayCheck::UnderWay => return Err(NotificationRefusal::UnderWay),
            }
        }
        // After the copies, so that one of those is called by its name. What an operator sends again is late on purpose.
        if let (Some(task), Some(lane), Some(seq), false) = (&task, delivery.lane, delivery.seq, replay)
            && self.memory.lanes.is_stale(task.as_str(), lane, seq)
        {
            return Err(NotificationRefusal::Stale);
        }
        Ok(delivery)
    }
}

/// The key of a notification: its signed id, or else its signed bytes. Unsigned notifications are not
/// remembered, for any client could block them.
fn remembered_as(delivery: &ReceivedDelivery, body: &[u8]) -> Option<String> {
    if let Some(id) = &delivery.id {
        return Some(id.clone());
    }
    let signed = delivery
        .proofs
        .iter()
        .any(|proof| matches!(proof, SenderProof::BodySignature | SenderProof::NeuralPost | SenderProof::Jwt));
    signed.then(|| SealKey::digest(body).iter().map(|byte| format!("{byte:02x}")).collect())
}

fn range(text: &str) -> Option<(u64, u64)> {
    let (from, to) = text.split_once('-')?;
    Some((from.parse().ok()?, to.parse().ok()?))
}
