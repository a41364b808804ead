//! The changes of a lane, the same for every store.

use std::sync::Arc;

use chancery_core::push::{
    Cursor, Lane, LaneChange, LaneSettlement, LaneState, LaneStep, NewRegistration, Registration, StateChange,
};
use chancery_core::{Appended, RecordNote};
use chancery_protocol::Timestamp;

/// So many attempts of a lane are kept, the newest.
pub(crate) const ATTEMPTS_KEPT: u64 = 32;

/// When it can be claimed, if there is something to deliver by it.
pub(crate) fn due_at(cursor: &Cursor) -> Option<Timestamp> {
    let pending = cursor.state == LaneState::Active && cursor.is_pending();
    pending.then(|| cursor.next_at.max(cursor.lease_until))
}

/// What an append says after which an origin is due sooner than before, or some of its lanes have something to deliver.
pub(crate) fn appended(sooner: bool, behind: bool) -> Appended {
    match (sooner, behind) {
        (true, _) => Appended::RecordedToTell,
        (false, true) => Appended::RecordedBehind,
        (false, false) => Appended::Recorded,
    }
}

/// A lane for the entries after `seq`.
pub(crate) fn begin(new: &NewRegistration, number: u64, seq: u64) -> Lane {
    let registration = Registration { lane: number, ..new.registration.clone() };
    Lane { registration: Arc::new(registration), cursor: first_cursor(new, seq), receipt: None }
}

/// Where it begins.
pub(crate) fn first_cursor(new: &NewRegistration, seq: u64) -> Cursor {
    let mut cursor = Cursor::new(seq, seq, new.registration.created_at);
    if new.snapshot {
        cursor.begin_with_snapshot();
    }
    cursor
}

/// Another registration by the same name replaces the lane's registration at its position. A worker of the
/// old one is too late.
pub(crate) fn replace(lane: &mut Lane, new: &NewRegistration) {
    let registration = Registration { lane: lane.number(), ..new.registration.clone() };
    let Cursor { head, tail, epoch, span, .. } = lane.cursor;
    lane.cursor = Cursor { head, tail, span, epoch: epoch + 1, ..Cursor::new(tail, tail, registration.created_at) };
    lane.registration = Arc::new(registration);
}

/// What the one who claimed it says.
pub(crate) fn settle(lane: &mut Lane, step: &LaneStep) -> LaneSettlement {
    match lane.cursor.settle(step.epoch, step.step, step.now) {
        Ok(change) => {
            if let Some(receipt) = &step.receipt {
                lane.receipt = Some(receipt.hash);
            }
            LaneSettlement::Done { cursor: lane.cursor, change }
        }
        Err(_) => LaneSettlement::Fenced,
    }
}

/// What the record says of a step that was done. Of what was given up it is known only now which entries it was.
pub(crate) fn told(step: &LaneStep, change: &LaneChange) -> Option<RecordNote> {
    let mut delivered = step.delivered.clone()?;
    if delivered.given_up.is_some() {
        (delivered.from, delivered.seq) = change.dead.map(|dead| (dead.from, dead.to))?;
    }
    Some(RecordNote::Delivered(delivered))
}

/// Answers whether it made a difference.
pub(crate) fn change(cursor: &mut Cursor, change: StateChange, now: Timestamp) -> bool {
    match change {
        StateChange::Pause => cursor.pause(),
        StateChange::Resume => cursor.resume(now),
        StateChange::Disable => cursor.disable(),
        StateChange::Enable => cursor.enable(now),
    }
}
