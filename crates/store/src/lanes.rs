//! What happens to a lane, whatever it is kept in.

use std::sync::Arc;
use std::time::Duration;

use chancery_core::push::{DisableReason, Lane, LaneChange, LaneState, LaneStep, NewRegistration, Registration, StateChange};
use chancery_protocol::Timestamp;

/// So many attempts of a lane are kept, the newest.
pub(crate) const ATTEMPTS_KEPT: u64 = 32;

pub(crate) fn after(now: Timestamp, lease: Duration) -> Timestamp {
    Timestamp::from_micros(now.micros().saturating_add(i64::try_from(lease.as_micros()).unwrap_or(i64::MAX)))
}

/// Whether there is something to deliver by it.
pub(crate) fn is_due(lane: &Lane) -> bool {
    lane.state == LaneState::Active && (!lane.is_drained() || lane.resync)
}

/// A lane for the entries after `seq`.
pub(crate) fn begin(new: &NewRegistration, number: u64, seq: u64) -> Lane {
    let registration = Registration { lane: number, ..new.registration.clone() };
    Lane {
        next_at: registration.created_at,
        registration: Arc::new(registration),
        state: LaneState::Active,
        head: seq + 1,
        tail: seq,
        attempt: 0,
        first_fail_at: None,
        auth_refusals: 0,
        pin: None,
        resync: false,
        epoch: 0,
        receipt: None,
    }
}

/// Another registration by the same name takes the lane over where it is. Whoever delivers for the old one is too late.
pub(crate) fn replace(lane: &mut Lane, new: &NewRegistration) {
    let registration = Registration { lane: lane.registration.lane, ..new.registration.clone() };
    lane.next_at = registration.created_at;
    lane.registration = Arc::new(registration);
    lane.epoch += 1;
    lane.state = LaneState::Active;
    start_over(lane);
}

/// New entries are there. A lane that is backing off goes on doing so.
pub(crate) fn extend(lane: &mut Lane, tail: u64, now: Timestamp) {
    if !is_due(lane) {
        lane.next_at = now;
    }
    lane.tail = tail;
}

pub(crate) fn claim(lane: &mut Lane, lease_until: Timestamp) {
    lane.epoch += 1;
    lane.next_at = lease_until;
}

/// What the one who claimed it says. The fence is the caller's to look at.
pub(crate) fn settle(lane: &mut Lane, step: &LaneStep) {
    let LaneChange { state, head, attempt, next_at, first_fail_at, auth_refusals, pin, resync } = step.change;
    lane.state = match (lane.state, state) {
        // What an operator did meanwhile stands.
        (LaneState::Active, Some(state)) => state,
        (before, _) => before,
    };
    lane.head = head;
    lane.attempt = attempt;
    lane.next_at = next_at;
    lane.first_fail_at = first_fail_at;
    lane.auth_refusals = auth_refusals;
    lane.pin = pin;
    lane.resync = resync;
    if let Some(last) = step.receipts.last() {
        lane.receipt = Some(last.hash);
    }
}

/// Answers whether it made a difference.
pub(crate) fn change(lane: &mut Lane, change: StateChange, now: Timestamp) -> bool {
    match (change, lane.state) {
        (StateChange::Pause, LaneState::Active) => lane.state = LaneState::Paused,
        (StateChange::Resume, LaneState::Paused) => {
            lane.state = LaneState::Active;
            lane.next_at = now;
        }
        (StateChange::Disable, LaneState::Active | LaneState::Paused) => {
            lane.state = LaneState::Disabled(DisableReason::Operator);
        }
        (StateChange::Enable, LaneState::Paused | LaneState::Disabled(_) | LaneState::Gone) => {
            lane.state = LaneState::Active;
            lane.next_at = now;
            lane.resync = true;
            lane.epoch += 1;
            start_over(lane);
        }
        _ => return false,
    }
    true
}

/// What failed before says nothing any more. What was attempted keeps its form.
fn start_over(lane: &mut Lane) {
    lane.attempt = 0;
    lane.first_fail_at = None;
    lane.auth_refusals = 0;
}
