//! The evidence adapter against the fact sheet it is built from; numbers in tables are the sheet's sections or the freezes' matrices.

mod canonical_form;
mod golden;
mod input_rules;
mod negative_matrices;
mod output_rules;
mod properties;
mod raw_payloads;
mod wording;

use std::cell::Cell;

use chancery_evidence::adapter::{
    Adapter, AdapterCaps, AdapterError, Batch, ConversionMode, Input, Options, RawPayloadRef, RawPayloads, Stamps,
};
use serde_json::{Value, json};

const BOTH: [ConversionMode; 2] = [ConversionMode::Strict, ConversionMode::Lenient];

/// The stamps with which the sheet's digests of whole payloads were made.
fn adapter() -> Adapter {
    let version = || "5.4.0".to_owned();
    Adapter::new(Stamps { adapter_version: version(), producer_version: version(), git: "unknown".to_owned() })
}

/// Refers to what it is given under the media type it is given, and counts how often it is asked.
#[derive(Default)]
struct Echo {
    asked: Cell<usize>,
}

impl RawPayloads for Echo {
    fn keep(&self, bytes: &[u8], media_type: &str) -> Result<RawPayloadRef, AdapterError> {
        self.asked.set(self.asked.get() + 1);
        Ok(RawPayloadRef::of(bytes, media_type))
    }
}

fn convert(payload: &[u8], mode: ConversionMode) -> Result<Batch, AdapterError> {
    adapter().convert(&Input::json(payload), &Options::from(mode), &Echo::default())
}

fn convert_capped(payload: &[u8], mode: ConversionMode, caps: AdapterCaps) -> Result<Batch, AdapterError> {
    adapter().convert(&Input::json(payload), &Options { mode, caps }, &Echo::default())
}

fn converted(packet: &Value, mode: ConversionMode) -> Batch {
    convert(packet.to_string().as_bytes(), mode).unwrap_or_else(|error| panic!("{mode:?} {packet}: {error}"))
}

fn refused(packet: &Value, mode: ConversionMode) -> String {
    convert(packet.to_string().as_bytes(), mode).map(|_| ()).expect_err("refused").to_string()
}

fn data(batch: &Batch) -> Value {
    serde_json::to_value(&batch.events[0].data).unwrap()
}

/// A packet that is complete for any event type, with `changes` over it: `null` takes a member away.
fn packet(event_type: &str, changes: Value) -> Value {
    let mut packet = json!({"protocol": "a2a", "version": "0.2", "event_type": event_type, "agent": {"id": "agent-1"},
        "task": {"id": "task-1"}, "artifact": {"id": "artifact-1"}, "message": {"id": "message-1"}});
    let members = packet.as_object_mut().unwrap();
    for (key, change) in changes.as_object().unwrap() {
        match change {
            Value::Null => members.remove(key),
            change => members.insert(key.clone(), change.clone()),
        };
    }
    packet
}
