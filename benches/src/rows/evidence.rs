//! What evidence costs: a packet converted, and the share of a durable send that the record of it takes.

use std::hint::black_box;

use anyhow::Result;
use chancery_evidence::adapter::{AdapterError, ConversionMode, RawPayloadRef, RawPayloads, convert as convert_packet};

use super::gateway::program;
use super::identity::{BATCH, line as plain_line, timed};
use super::rate::{line, rounds_of};
use super::{Match, Rate, Row};
use crate::contestant::{Contestant, StoreKind};
use crate::report::{MeasuredRow, Pair, RowTarget, Unit};
use crate::request::RequestKind;

/// The share of a send that its record may take.
const RECORD_AT_MOST: f64 = 0.05;

const PACKET: &str = r#"{"protocol":"a2a","version":"0.3","event_type":"task.requested","timestamp":"2026-11-15T10:00:00Z",
"agent":{"id":"agent://planner","name":"Planner","role":"assistant"},"task":{"id":"t-1","status":"submitted","kind":"delegation"},
"message":{"id":"m-1","role":"user"},"attributes":{"priority":"high","session":"alpha","tags":["b","a"]}}"#;

/// Only names what it is given.
struct Nowhere;

impl RawPayloads for Nowhere {
    fn keep(&self, bytes: &[u8], media_type: &str) -> Result<RawPayloadRef, AdapterError> {
        Ok(RawPayloadRef::of(bytes, media_type))
    }
}

/// Conversions by the second, beside reading the same JSON.
pub(super) fn convert(row: &Row, this: &Match<'_>) -> Result<MeasuredRow> {
    let batch = || Ok(vec![(); BATCH]);
    let read = timed(this.effort.rounds, batch, |()| {
        black_box(serde_json::from_str::<serde_json::Value>(black_box(PACKET))?);
        Ok(())
    })?;
    let converted = timed(this.effort.rounds, batch, |()| {
        black_box(convert_packet(black_box(PACKET.as_bytes()), ConversionMode::Strict, &Nowhere).map_err(anyhow::Error::msg)?);
        Ok(())
    })?;
    let value = Pair { yardstick: 1e6 / read, chancery: 1e6 / converted };
    let note = format!("{converted:.1} µs for a packet of {} bytes, its digest included", PACKET.len());
    Ok(plain_line(row, Unit::PerSecond, value, read / converted, None, note))
}

/// Durable sends by the second with a record, beside those without: what is missing to 1 is the share of the record. One caller
/// waits for the disk with a record and without; with more callers than a core can serve it is the record's share of the processor.
pub(super) fn recording(row: &Row, connections: usize, this: &Match<'_>) -> Result<MeasuredRow> {
    let rate = Rate { kind: RequestKind::Send, store: StoreKind::Sqlite, connections, least: None, processor_at_most: None };
    let unrecorded = Contestant::Unrecorded(program(this)?);
    let rounds = rounds_of(this, rate, [&unrecorded, this.subject])?;
    let line = line(row, &rounds, Unit::PerSecond, |figures| figures.per_second);
    Ok(MeasuredRow { target: Some(RowTarget::RatioAtLeast(1.0 - RECORD_AT_MOST)), ..line })
}
