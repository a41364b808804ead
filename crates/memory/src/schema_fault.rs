//! Why schemas cannot be used.

/// What is wrong with a schema.
#[derive(Debug, thiserror::Error)]
#[error("{file}: {reason}")]
pub struct SchemaFault {
    pub file: String,
    pub reason: String,
}
