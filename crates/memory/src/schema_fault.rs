//! Why schemas cannot be used.

/// What is wrong with a schema.
#[derive(Debug, thiserror::Error)]
#[error("{file}: {reason}")]
pub struct SchemaFault {
    /// The path of the file.
    pub file: String,
    /// What is wrong with the file.
    pub reason: String,
}
