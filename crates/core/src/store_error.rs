//! A failure of the store, and whether waiting can help.

/// What a failure says about the store as a whole.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StoreTrouble {
    /// None: it works, and what was asked for is impossible.
    #[default]
    None,
    /// It cannot be read or written for now: a full disk, a lock, a file that cannot be opened.
    Unavailable,
    /// It cannot be reached for now, and works again by itself: the same can be asked again. The last answer may be lost.
    Away,
    /// What it holds is damaged.
    Damaged,
    /// Another node holds the task of an append, or none does and it has to be taken first. Look again who holds it.
    HeldElsewhere,
    /// The forwarded call that the append answers does not wait any more: it was withdrawn, or its task has another holder.
    CallWithdrawn,
}

/// A failure of a store, with its cause and whether waiting can help.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct StoreError {
    /// What failed.
    pub message: String,
    /// What the failure says about the store.
    pub trouble: StoreTrouble,
    /// The error of the database or the file.
    #[source]
    pub source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

impl StoreError {
    /// Makes an error without a cause, of a store that works.
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), trouble: StoreTrouble::None, source: None }
    }

    /// Makes an error with its cause, of a store that works.
    pub fn caused_by(message: impl Into<String>, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self { source: Some(source.into()), ..Self::new(message) }
    }

    /// Sets what the failure says about the store.
    #[must_use]
    pub fn of_trouble(self, trouble: StoreTrouble) -> Self {
        Self { trouble, ..self }
    }
}
