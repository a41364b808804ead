//! A notification as the command line shows it.

use chancery::protocol::TaskEvent;
use chancery_identity::webhook::Scheme;
use chancery_receiver::{NotificationRefusal, ReceivedDelivery, SenderProof};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::super::show;

pub(super) fn as_json(delivery: &ReceivedDelivery, body: &[u8]) -> Value {
    let body: Option<Box<RawValue>> = serde_json::from_slice(body).ok();
    json!({
        "task": delivery.task().map(|task| task.as_str()),
        "event": kind(&delivery.notification.event),
        "state": state(&delivery.notification.event),
        "form": delivery.notification.form.as_str(),
        "id": delivery.id,
        "lane": delivery.lane,
        "seq": delivery.seq,
        "attempt": delivery.attempt,
        "compacted": delivery.compacted.map(|(from, to)| json!([from, to])),
        "replay": delivery.replay,
        "sent_at": delivery.sent_at,
        "proofs": delivery.proofs.iter().copied().map(proof).collect::<Vec<_>>(),
        "body": body.and_then(|body| serde_json::from_str::<Value>(body.get()).ok()),
    })
}

pub(super) fn refusal_as_json(refusal: &NotificationRefusal) -> Value {
    json!({ "refused": refusal.code(), "reason": refusal.to_string(), "status": refusal.status().as_u16() })
}

/// One line.
pub(super) fn as_line(delivery: &ReceivedDelivery) -> String {
    let task = delivery.task().map_or("no task", |task| task.as_str());
    let mut line = format!("{}  {}", show::safe(task), kind(&delivery.notification.event));
    if let Some(state) = state(&delivery.notification.event) {
        line += &format!(" {state}");
    }
    if let Some(seq) = delivery.seq {
        line += &format!("  #{seq}");
    }
    if let Some((from, to)) = delivery.compacted {
        line += &format!("  for {from}-{to}");
    }
    if let Some(attempt) = delivery.attempt.filter(|attempt| *attempt > 1) {
        line += &format!("  attempt {attempt}");
    }
    if delivery.replay {
        line += "  sent again";
    }
    let proofs: Vec<_> = delivery.proofs.iter().copied().map(proof).collect();
    line + &format!("  [{}]", if proofs.is_empty() { "unverified".to_owned() } else { proofs.join(", ") })
}

fn kind(event: &TaskEvent) -> &'static str {
    match event {
        TaskEvent::Created(_) => "task",
        TaskEvent::Status(_) => "status",
        TaskEvent::Artifact(_) => "artifact",
        TaskEvent::Said(_) | TaskEvent::Replied(_) => "message",
    }
}

fn state(event: &TaskEvent) -> Option<String> {
    match event {
        TaskEvent::Created(task) => Some(show::state(task.status.state)),
        TaskEvent::Status(change) => Some(show::state(change.status.state)),
        _ => None,
    }
}

fn proof(proof: SenderProof) -> &'static str {
    match proof {
        SenderProof::Signature(Scheme::V1) => "v1",
        SenderProof::Signature(Scheme::V1a) => "v1a",
        SenderProof::Token => "token",
        SenderProof::Credentials => "credentials",
        SenderProof::Jwt => "jwt",
        SenderProof::BodySignature => "body",
        SenderProof::NeuralPost => "neuralpost",
    }
}
