//! Decisions as JSON bodies.

use std::sync::Arc;

use chancery_core::{Decision, StoreError};
use chancery_protocol::Timestamp;

use super::UnreadableRow;

/// A decision that is ready to be written.
#[derive(Debug)]
pub(crate) struct EncodedDecision {
    pub(crate) decision: Arc<Decision>,
    pub(crate) body: String,
}

impl EncodedDecision {
    pub(crate) fn new(decision: Arc<Decision>) -> Result<Self, StoreError> {
        let body = serde_json::to_string(&*decision)
            .map_err(|error| StoreError::new(format!("a decision cannot be written as JSON: {error}")))?;
        Ok(Self { decision, body })
    }
}

/// The body has only milliseconds, so the time comes from a column of its own.
pub(crate) fn decode(body: &str, at: Timestamp) -> Result<Decision, UnreadableRow> {
    let read: Decision = serde_json::from_str(body).map_err(|error| UnreadableRow::new(format!("a decision: {error}")))?;
    Ok(Decision { at, ..read })
}
