//! Lanes, letters and receipts as operators see them: nothing secret among it.

use chancery_core::notify::OriginStanding;
use chancery_core::push::{DeadLetter, DeliveryAttempt, Lane, LaneState, Receipt};
use serde_json::{Value, json};

pub(super) fn lane(lane: &Lane) -> Value {
    let (registration, cursor) = (&lane.registration, &lane.cursor);
    let reason = match cursor.state {
        LaneState::Disabled(reason) => Some(reason.as_str()),
        _ => None,
    };
    json!({
        "lane": registration.lane,
        "task": registration.task,
        "config": registration.id,
        "caller": { "tenant": registration.owner.tenant, "name": registration.owner.name },
        "agent": registration.agent,
        "version": registration.version,
        "profile": registration.profile,
        "events": registration.events,
        "origin": registration.origin,
        "created_at": registration.created_at,
        "state": cursor.state.as_str(),
        "reason": reason,
        "head": cursor.head,
        "tail": cursor.tail,
        "pending": (cursor.tail + 1).saturating_sub(cursor.head),
        "attempt": cursor.attempt,
        "next_at": cursor.next_at,
        "failing_since": cursor.first_fail_at,
    })
}

pub(super) fn attempt(attempt: &DeliveryAttempt) -> Value {
    let DeliveryAttempt { seq, n, at, ms, outcome, http, .. } = attempt;
    json!({ "seq": seq, "n": n, "at": at, "ms": ms, "outcome": outcome, "http": http })
}

pub(super) fn origin(standing: &OriginStanding) -> Value {
    json!({
        "tenant": standing.origin.tenant,
        "origin": standing.origin.origin,
        "breaker": format!("{:?}", standing.breaker).to_lowercase(),
        "in_flight": standing.in_flight,
        "width": standing.width,
        "waiting": standing.waiting,
    })
}

pub(super) fn letter(letter: &DeadLetter) -> Value {
    json!({
        "id": letter.id,
        "lane": letter.lane,
        "task": letter.task,
        "config": letter.registration,
        "caller": { "tenant": letter.owner.tenant, "name": letter.owner.name },
        "origin": letter.origin,
        "webhook_id": letter.webhook_id,
        "from": letter.from,
        "to": letter.to,
        "reason": letter.reason,
        "attempts": letter.attempts,
        "first_at": letter.first_at,
        "last_at": letter.last_at,
        "http": letter.http,
        "error": letter.error,
        "bytes": letter.body.len(),
        "replays": letter.replays,
    })
}

pub(super) fn whole_letter(dead: &DeadLetter) -> Value {
    let mut shown = letter(dead);
    let headers: serde_json::Map<String, Value> =
        dead.headers.iter().map(|(name, value)| (name.to_string(), json!(value))).collect();
    shown["headers"] = Value::Object(headers);
    shown["body"] = json!(String::from_utf8_lossy(&dead.body));
    shown
}

pub(super) fn receipt(number: u64, receipt: &Receipt) -> Value {
    let hex = |bytes: &[u8; 32]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    json!({
        "number": number,
        "webhook_id": receipt.webhook_id,
        "lane": receipt.lane,
        "seq": receipt.seq,
        "task": receipt.task,
        "caller": { "tenant": receipt.owner.tenant, "name": receipt.owner.name },
        "origin": receipt.origin,
        "body_sha256": hex(&receipt.body_sha256),
        "http": receipt.http,
        "at": receipt.at,
        "prev_hash": hex(&receipt.prev_hash),
        "hash": hex(&receipt.hash),
        "signature": receipt.signature,
        "receiver_receipt": receipt.receiver_receipt,
    })
}
