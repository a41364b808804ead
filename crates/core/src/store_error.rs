//! A failure of the store, and whether waiting can help.

/// What a failure says about the store as a whole.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StoreTrouble {
    /// None: it works, and what was asked for is impossible.
    #[default]
    None,
    /// It cannot be read or written for now: a full disk, a lock, a file that cannot be opened.
    Unavailable,
    /// What it holds is damaged.
    Damaged,
    /// Another node holds the task of an append, or none does and it has to be taken first. Look again who holds it.
    HeldElsewhere,
    /// The forwarded call that the append answers does not wait any more: it was withdrawn, or its task has another holder.
    CallWithdrawn,
}

#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct StoreError {
    pub message: String,
    pub trouble: StoreTrouble,
    #[source]
    pub source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

impl StoreError {
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), trouble: StoreTrouble::None, source: None }
    }

    pub fn caused_by(message: impl Into<String>, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self { source: Some(source.into()), ..Self::new(message) }
    }

    #[must_use]
    pub fn of_trouble(self, trouble: StoreTrouble) -> Self {
        Self { trouble, ..self }
    }
}
