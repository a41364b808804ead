//! The contract of the outbox: registrations, lanes, and what is kept of deliveries.

mod alike;
mod delivering;
mod durable;
mod forgetting;
mod letters;
mod recorded;
mod registering;

use std::sync::Arc;
use std::time::Duration;

use chancery_core::push::{
    DeadLetter, DeliveryAttempt, Lane, LaneAction, LaneStep, NewRegistration, Outbox, PushEvents, PushProfile, Receipt,
    Registration, RegistrationId, RegistrationLimits, SealedSecret, Span,
};
use chancery_core::{Append, TaskRecord};
use chancery_protocol::{Caller, Timestamp, TraceId, Version};

use crate::contract::sample::{at, creation};

const LEASE: Duration = Duration::from_secs(20);
const LIMITS: RegistrationLimits = RegistrationLimits { per_task: 10, per_tenant: 10_000 };

/// With everything that there can be.
fn registration(task: &TaskRecord, id: &str, origin: &str) -> Registration {
    Registration {
        lane: 0,
        task: task.id.clone(),
        id: RegistrationId::new(id),
        owner: task.owner.clone(),
        agent: task.agent.clone(),
        version: Version::V0_3,
        profile: PushProfile::NeuralPost,
        events: PushEvents::Status,
        url: format!("{origin}/hook?x=1").into(),
        origin: origin.into(),
        scheme: Some("Bearer".into()),
        sealed: Some(SealedSecret { kek_id: "k1".into(), bytes: [1, 0, 255].into() }),
        created_at: at(5_000),
        trace: TraceId(7),
    }
}

pub(crate) fn new(task: &TaskRecord, id: &str, origin: &str) -> NewRegistration {
    NewRegistration { registration: registration(task, id, origin), limits: LIMITS, held: false, snapshot: false }
}

pub(crate) const ORIGIN: &str = "https://hooks.example:443";

/// A webhook of that name.
pub(crate) fn new_registration(task: &TaskRecord, id: &str) -> NewRegistration {
    new(task, id, ORIGIN)
}

/// Makes a task with a webhook.
pub(crate) fn told_creation(task: &Arc<TaskRecord>, held: bool) -> Append {
    let register = NewRegistration { held, ..new(task, "w", ORIGIN) };
    Append { register: Some(Box::new(register)), ..creation(task) }
}

pub(crate) async fn claim(outbox: &dyn Outbox, now: Timestamp) -> Vec<Lane> {
    outbox.claim(now, LEASE, 100, 100, &[]).await.unwrap()
}

pub(crate) fn step(lane: &Lane, step: LaneAction, now: Timestamp) -> LaneStep {
    LaneStep {
        lane: lane.number(),
        epoch: lane.cursor.epoch,
        step,
        now,
        attempt: None,
        dead: None,
        receipt: None,
        delivered: None,
    }
}

fn ack(lane: &Lane, seq: u64, now: Timestamp) -> LaneStep {
    step(lane, LaneAction::Ack { span: Span::single(seq), keep: None }, now)
}

fn letter(lane: &Lane, at: Timestamp) -> Box<DeadLetter> {
    let registration = &lane.registration;
    Box::new(DeadLetter {
        id: 0,
        lane: lane.number(),
        task: registration.task.clone(),
        registration: registration.id.clone(),
        owner: registration.owner.clone(),
        origin: Arc::clone(&registration.origin),
        webhook_id: format!("msg_{}_{}", lane.number(), lane.cursor.head).into(),
        from: 0,
        to: 0,
        reason: "rejected".into(),
        attempts: 1,
        first_at: at,
        last_at: at,
        http: Some(404),
        error: Some("not found".into()),
        body: b"{}".as_slice().into(),
        headers: vec![("webhook-id".into(), "a \"b\"".into())],
        replays: 0,
    })
}

pub(crate) fn attempt(lane: &Lane, n: u32, at: Timestamp) -> DeliveryAttempt {
    DeliveryAttempt { lane: lane.number(), seq: lane.cursor.head, n, at, ms: 3, outcome: "retry".into(), http: Some(503) }
}

pub(crate) fn receipt(lane: &Lane, seq: u64, hash: u8, at: Timestamp) -> Box<Receipt> {
    let registration = &lane.registration;
    Box::new(Receipt {
        webhook_id: format!("msg_{seq}").into(),
        lane: lane.number(),
        seq,
        task: registration.task.clone(),
        owner: Caller::clone(&registration.owner),
        origin: Arc::clone(&registration.origin),
        body_sha256: [9; 32],
        http: 204,
        at,
        prev_hash: lane.receipt.unwrap_or_default(),
        hash: [hash; 32],
        signature: "sig".into(),
        receiver_receipt: Some("theirs".into()),
    })
}
