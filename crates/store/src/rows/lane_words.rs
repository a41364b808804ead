//! States, spans and events of lanes, as numbers and words.

use chancery_core::push::{DisableReason, LaneState, PushEvents, SpanKind};

use super::UnreadableRow;

pub(crate) const fn state_number(state: LaneState) -> i64 {
    match state {
        LaneState::Active => 1,
        LaneState::Paused => 2,
        LaneState::Disabled(_) => 3,
        LaneState::Gone => 4,
        // Those have no row.
        LaneState::Deleted => 5,
    }
}

pub(crate) fn state_names(state: LaneState) -> (i64, Option<&'static str>) {
    let reason = match state {
        LaneState::Disabled(reason) => Some(reason.as_str()),
        _ => None,
    };
    (state_number(state), reason)
}

pub(crate) fn state_named(number: i64, reason: Option<&str>) -> Result<LaneState, UnreadableRow> {
    let known = |name: &str| DisableReason::ALL.into_iter().find(|reason| reason.as_str() == name);
    match (number, reason.and_then(known)) {
        (1, _) => Ok(LaneState::Active),
        (2, _) => Ok(LaneState::Paused),
        (3, Some(reason)) => Ok(LaneState::Disabled(reason)),
        (4, _) => Ok(LaneState::Gone),
        _ => Err(UnreadableRow::new(format!("lane state {number} {reason:?}"))),
    }
}

pub(crate) const fn kind_number(kind: SpanKind) -> i64 {
    match kind {
        SpanKind::Single => 1,
        SpanKind::Merged => 2,
        SpanKind::Snapshot => 3,
    }
}

pub(crate) fn kind_numbered(number: i64) -> Result<SpanKind, UnreadableRow> {
    let known = SpanKind::ALL.into_iter().find(|kind| kind_number(*kind) == number);
    known.ok_or_else(|| UnreadableRow::new(format!("span kind {number}")))
}

pub(crate) const fn events_name(events: PushEvents) -> &'static str {
    match events {
        PushEvents::All => "all",
        PushEvents::Status => "status",
    }
}

pub(crate) fn events_named(name: &str) -> Result<PushEvents, UnreadableRow> {
    let known = [PushEvents::All, PushEvents::Status].into_iter().find(|events| events_name(*events) == name);
    known.ok_or_else(|| UnreadableRow::new(format!("events {name}")))
}

/// The state by the name that operators use. A name that no state has is 0, which no lane has.
pub(crate) fn state_of_name(name: &str) -> i64 {
    match name {
        "active" => 1,
        "paused" => 2,
        "disabled" => 3,
        "gone" => 4,
        _ => 0,
    }
}
