//! Ids made here. Those of stored things are ordered by time, so that the store writes them one after the other.

use std::hash::{BuildHasher as _, RandomState};
use std::sync::Arc;

use chancery_protocol::TraceId;
use uuid::Uuid;

/// Returns the id of a new trace.
pub fn new_trace_id() -> TraceId {
    TraceId(Uuid::new_v4().as_u128())
}

/// Returns a number that differs from call to call. It seeds choices that need not be secret.
pub fn random_seed() -> u64 {
    RandomState::new().hash_one(0)
}

pub(crate) fn fresh_id() -> Arc<str> {
    let mut buffer = Uuid::encode_buffer();
    let text: &str = Uuid::now_v7().hyphenated().encode_lower(&mut buffer);
    Arc::from(text)
}
